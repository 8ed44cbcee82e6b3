package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/console/consoletest"
)

// every is a path of every page.
var every = []string{
	"/", "/turns", "/turns/team-atlas/budget-question", "/reach?world=team-atlas", "/reach?world=team-atlas&principal=alice-assistant",
	"/refusals", "/escalations", "/no-such-page",
}

// TestPages compares what the pages say with goldens; the frame is in one of them.
func TestPages(t *testing.T) {
	h := handler(t, consoletest.World())
	for name, path := range map[string]string{
		"start.html": "/", "turns.html": "/turns?world=team-borealis", "turn.html": "/turns/team-atlas/budget-question",
		"reach.html": "/reach?world=team-atlas&principal=alice-assistant", "refusals.html": "/refusals?world=team-borealis",
		"escalations.html": "/escalations?world=team-atlas", "pending.html": "/turns/team-borealis/queued",
	} {
		r := get(h, path)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d", path, r.StatusCode)
		}
		page := r.body
		if name == "start.html" {
			head, _, _ := strings.Cut(page, "<h1>")
			golden(t, "frame.html", head)
		}
		golden(t, name, mainOf(page))
	}
}

func TestTurnsAreFilteredAndPaged(t *testing.T) {
	h := handler(t, consoletest.World())
	for path, want := range map[string]struct {
		count string
		next  string
	}{
		"/turns":                     {"1 to 50 of 67", "/turns?page=2"},
		"/turns?page=2":              {"51 to 67 of 67", ""},
		"/turns?world=team-borealis": {"1 to 3 of 3", ""},
		"/turns?world=team-atlas&principal=release-bot":            {"1 to 1 of 1", ""},
		"/turns?state=Running":                                     {"1 to 1 of 1", ""},
		"/turns?world=team-atlas&state=&principal=&page=1&other=x": {"1 to 50 of 64", "/turns?page=2&amp;world=team-atlas"},
	} {
		page := get(h, path).body
		if !strings.Contains(page, ">"+want.count+"<") {
			t.Errorf("%s does not show %s", path, want.count)
		}
		if has := strings.Contains(page, `rel="next"`); has != (want.next != "") || !strings.Contains(page, want.next) {
			t.Errorf("%s: next page %t, want %q", path, has, want.next)
		}
	}
	if page := get(h, "/turns?state=Admitted").body; !strings.Contains(page, "No Turn matches") {
		t.Error("an empty list is not said to be empty")
	}
}

func TestFaultyQuestions(t *testing.T) {
	h := handler(t, consoletest.World())
	for path, want := range map[string]int{
		"/turns?page=0": 400, "/turns?page=x": 400, "/turns?page=99": 404, "/turns?state=running": 400, "/turns?world=a&world=b": 400,
		"/turns?world=No_Name": 400, "/turns?world=elsewhere": 404, "/reach?world=elsewhere": 404, "/refusals?world=elsewhere": 404,
		"/escalations?world=elsewhere": 404, "/reach?world=team-atlas&principal=nobody": 404, "/turns?principal=%3Cb%3E": 400,
		"/refusals?hours=25": 400, "/reach?purpose=%ff": 400, "/turns/team-atlas/nothing": 404, "/turns/team-atlas": 404, "/favicon.ico": 404,
		"/reach?world=team-atlas&principal=alice-assistant&purpose=unlisted": 200,
	} {
		if got := get(h, path).StatusCode; got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}
	page := get(h, "/reach?world=team-atlas&principal=alice-assistant&purpose=unlisted").body
	if !strings.Contains(page, "It can reach nothing now") {
		t.Error("a purpose that the Principal may not declare reaches something")
	}
}

// TestReadErrorsStayInTheLog: what the API server said is no business of a page.
func TestReadErrorsStayInTheLog(t *testing.T) {
	world := consoletest.World()
	world.Err = errors.New("secret detail of a server")
	h := handler(t, world)
	for _, path := range every[:len(every)-1] {
		r := get(h, path)
		page := r.body
		if r.StatusCode != http.StatusServiceUnavailable || strings.Contains(page, "secret detail") || !strings.Contains(page, "try again") {
			t.Errorf("%s answers %d with %d bytes", path, r.StatusCode, len(page))
		}
	}
}

// TestHostileText puts text that acts into everything that a page shows.
func TestHostileText(t *testing.T) {
	world := consoletest.World()
	const evil = consoletest.Hostile
	turn := &world.Turns[2]
	turn.Spec.Message.Text, turn.Spec.Purpose, turn.Spec.Principal = evil, evil, "alice-assistant"
	turn.Status.Output, turn.Status.Escalation.Reason, turn.Status.TraceID = new(evil), evil, evil
	turn.Status.Error = &v1alpha1.TurnError{Code: evil, Message: evil}
	turn.Status.Pod.Name, turn.Status.Conditions[0].Reason = evil, evil
	turn.Status.Admission.Context.Purpose, turn.Status.Admission.Grants[0].Name = evil, evil
	turn.Status.Events.Items[2].Data = `{"callId":"1","tool":"` + "<script>x" + `","status":"denied","code":"<script>y"}`
	world.Principals[1].Spec.Purposes = []v1alpha1.Purpose{evil}
	world.Grants[1].Name = evil
	world.Grants[1].Spec.Capabilities[0].Resource.Path = []v1alpha1.PathSegment{evil}
	world.Grants[1].Spec.Capabilities[0].Actions = []v1alpha1.Action{evil}
	h := handler(t, world)
	for _, path := range every {
		page := get(h, path).body
		for _, bad := range []string{"<script", "<img src=x", "\x1b", "\x07", "\u202e", "\u2066", `"'><`} {
			if strings.Contains(page, bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
	}
	page := get(h, "/turns/team-atlas/budget-question").body
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(page, `\u001b]0;owned\u0007\u202eevil\u2066`) {
		t.Error("the text is not shown as it is")
	}
}

func TestLargeOutputIsCut(t *testing.T) {
	world := consoletest.World()
	world.Turns[1].Status.Output = new(strings.Repeat("é", maxOutput) + "end")
	page := get(handler(t, world), "/turns/team-atlas/status-report-7").body
	if strings.Contains(page, "éend") || !strings.Contains(page, strings.Repeat("é", maxOutput)) || !strings.Contains(page, "Only the beginning is shown") {
		t.Error("a large output is not cut, or not said to be")
	}
	world.Turns[1].Status.TurnOutput = v1alpha1.TurnOutput{
		OutputRef: &v1alpha1.DataReference{Name: "status-report-7-output", Key: "content"}, OutputSize: new(int64(123456)), OutputTruncated: true,
	}
	page = get(handler(t, world), "/turns/team-atlas/status-report-7").body
	if !strings.Contains(page, "ConfigMap status-report-7-output, key content, 123456 bytes, cut") {
		t.Error("an output beside the status is not named")
	}
}

// thousands is a world of 2,000 Turns with a full record each.
func thousands() *consoletest.Reader {
	world := consoletest.World()
	world.Turns = nil
	for i := range 2000 {
		state := states[1+i%(len(states)-1)]
		world.Turns = append(world.Turns, consoletest.Turn("team-atlas", fmt.Sprintf("turn-%d", i), "alice-assistant", state, time.Duration(i)*time.Minute))
		if e := world.Turns[i].Status.Events; e != nil {
			for len(e.Items) < v1alpha1.MaxFirstEvents+v1alpha1.MaxLastEvents {
				e.Items = append(e.Items, e.Items[len(e.Items)%9])
			}
		}
	}
	return world
}

func BenchmarkPages(b *testing.B) {
	h := handler(b, thousands())
	for name, path := range map[string]string{
		"start": "/", "turns": "/turns?page=20", "turn": "/turns/team-atlas/turn-4", "refusals": "/refusals?hours=168",
		"reach": "/reach?world=team-atlas&principal=alice-assistant", "escalations": "/escalations",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := get(h, path); r.StatusCode != http.StatusOK {
					b.Fatalf("%s answers %d", path, r.StatusCode)
				}
			}
		})
	}
}
