package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sharedos-dev/operator/console/consoletest"
	"github.com/sharedos-dev/operator/test/peers/npm"
)

// shown is every page, by the name of its picture.
var shown = map[string]string{
	"overview":    "/",
	"turns":       "/turns?world=team-atlas",
	"turns-none":  "/turns?state=Admitted",
	"turn":        "/turns/team-atlas/status-report-7",
	"turn-asks":   "/turns/team-atlas/budget-question",
	"turn-denied": "/turns/team-atlas/nightly-release",
	"reach":       "/reach?world=team-atlas",
	"reach-tree":  "/reach?world=team-atlas&principal=alice-assistant&purpose=atlas-status",
	"refusals":    "/refusals",
	"escalations": "/escalations",
}

// audit asks axe-core about the whole page: WCAG 2.2 A and AA, and its best
// practices. What it could not decide counts too, but for the contrast of a single
// character, which it never decides.
const audit = `axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(r => {
	const short = n => n.any.some(a => a.data && a.data.messageKey === "shortTextContent")
	const told = r.violations.concat(r.incomplete).map(v => ({rule: v.id, help: v.help,
		nodes: v.nodes.filter(n => !short(n)).map(n => n.html.slice(0, 200) + " " + n.any.map(a => a.message).join("; "))}))
	return JSON.stringify(told.filter(v => v.nodes.length > 0))
})`

type violation struct {
	Rule  string   `json:"rule"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"`
}

func TestPages(t *testing.T) {
	axe, err := os.ReadFile(filepath.Join(npm.Install(t, "js"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	browser := chromium(t)
	base := serve(t, consoletest.World())
	pictures := screenshots(t)
	for name, path := range shown {
		for _, width := range []int64{320, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s-%d-%s", name, width, scheme), func(t *testing.T) {
					page := tabOf(browser, t, base)
					if err := page.open(path, width, scheme); err != nil { //nolint:contextcheck // the page is the context
						t.Fatal(err)
					}
					wide := evaluate[int64](t, page, `document.documentElement.scrollWidth`)
					if wide > width {
						t.Errorf("the page is %d pixels wide at a width of %d", wide, width)
					}
					if err := page.shoot(pictures, fmt.Sprintf("%s-%d-%s", name, width, scheme)); err != nil { //nolint:contextcheck // the page is the context
						t.Error(err)
					}
					for _, fault := range page.done() {
						t.Error(fault)
					}
					for _, v := range violations(t, page, string(axe)) { //nolint:contextcheck // the page is the context
						t.Errorf("%s: %s\n%q", v.Rule, v.Help, v.Nodes)
					}
				})
			}
		}
	}
}

// violations is what axe-core has against the page. It is put in by the debugger,
// because the page's own policy lets no script in.
func violations(t *testing.T, page *tab, axe string) []violation {
	t.Helper()
	evaluate[int](t, page, axe+";0")
	text := evaluate[string](t, page, audit)
	var out []violation
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
