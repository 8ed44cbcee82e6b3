package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/console/consoletest"
)

// evaluate is the value of a JavaScript expression, or of the promise it is.
func evaluate[T any](t *testing.T, page *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(page, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("evaluate %.100s: %v", expression, err)
	}
	return value
}

// TestKeyboard walks from the top of the page to an answer without a pointer: the
// skip link, the filter, the tree, and the command to copy.
func TestKeyboard(t *testing.T) {
	page := tabOf(chromium(t), t, serve(t, consoletest.World()))
	focused := func() string {
		t.Helper()
		return evaluate[string](t, page,
			`(e => (e.id || e.tagName) + " " + (e.value || e.textContent || "").trim().slice(0, 40))(document.activeElement)`)
	}
	press := func(keys string) {
		t.Helper()
		if err := chromedp.Do(page, chromedp.KeyEvent(keys)); err != nil {
			t.Fatal(err)
		}
	}
	if err := page.open("/turns", 1280, "light"); err != nil {
		t.Fatal(err)
	}
	press(kb.Tab)
	if got := focused(); got != "A Skip to the content" {
		t.Fatalf("the first stop is %q", got)
	}
	press(kb.Enter)
	if got := focused(); !strings.HasPrefix(got, "main ") {
		t.Fatalf("the skip link leads to %q", got)
	}
	press(kb.Tab)
	if got := focused(); !strings.HasPrefix(got, "world") {
		t.Fatalf("after the skip link comes %q", got)
	}
	press("team-b")
	press(kb.Tab)
	press("Canc")
	press(kb.Tab)
	press(kb.Tab)
	if got := focused(); got != "BUTTON Show" {
		t.Fatalf("after the fields comes %q", got)
	}
	if _, err := chromedp.RunResponse(page, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	at, count := evaluate[string](t, page, `location.href`), evaluate[string](t, page, `document.querySelector("#count").innerText`)
	if !strings.HasSuffix(at, "/turns?world=team-borealis&state=Cancelled&principal=") || count != "1 to 1 of 1" {
		t.Errorf("the filter leads to %s with %q", at, count)
	}

	if err := page.open("/escalations", 1280, "light"); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		press(kb.Tab)
		if strings.HasPrefix(focused(), "approve-") {
			break
		}
	}
	selected := evaluate[string](t, page, `(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.activeElement)`)
	if want := "kubectl sharedos approve budget-question --namespace team-atlas"; selected != want {
		t.Errorf("the field of the command has %q selected, want all of %q", selected, want)
	}
	for _, fault := range page.done() {
		t.Error(fault)
	}
}

// TestHostileText puts text that acts into everything a page shows. Nothing of it
// becomes an element, and nothing runs.
func TestHostileText(t *testing.T) {
	world := consoletest.World()
	turn := &world.Turns[2]
	turn.Spec.Message.Text = consoletest.Hostile
	turn.Spec.Purpose = consoletest.Hostile
	turn.Status.Output = new(consoletest.Hostile)
	turn.Status.Escalation.Reason = consoletest.Hostile
	turn.Status.Error = &v1alpha1.TurnError{Code: consoletest.Hostile, Message: consoletest.Hostile}
	turn.Status.Pod.Name = consoletest.Hostile
	world.Grants[1].Spec.Capabilities[0].Resource.Path = []v1alpha1.PathSegment{consoletest.Hostile}
	world.Grants[1].Name = consoletest.Hostile
	world.Principals[1].Spec.Purposes = []v1alpha1.Purpose{consoletest.Hostile}
	page := tabOf(chromium(t), t, serve(t, world))
	for _, path := range []string{
		"/", "/turns", "/turns/team-atlas/budget-question", "/reach?world=team-atlas&principal=alice-assistant", "/refusals", "/escalations",
	} {
		if err := page.open(path, 1280, "light"); err != nil {
			t.Fatal(err)
		}
		made := evaluate[int](t, page, `document.querySelectorAll("script, img:not(.brand img), iframe, object").length`)
		text := evaluate[string](t, page, `document.documentElement.outerHTML`)
		if made != 0 || strings.ContainsAny(text, "\x1b\x07\u202e\u2066") {
			t.Errorf("%s: %d elements were made of text, or characters that act are in the page", path, made)
		}
		for _, fault := range page.done() {
			t.Errorf("%s: %s", path, fault)
		}
	}
}
