package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/console/consoletest"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TestReachIsTheKernels: what the page shows follows the Grants as the kernel reads
// them, not their conditions.
func TestReachIsTheKernels(t *testing.T) {
	const path = "/reach?world=team-atlas&principal=alice-assistant"
	for name, tt := range map[string]struct {
		change     func(w *consoletest.Reader)
		query      string
		has, lacks string
	}{
		"as it is":           {func(*consoletest.Reader) {}, "", ">notes.md<", ">budget<"},
		"another purpose":    {func(*consoletest.Reader) {}, "&purpose=atlas-planning", ">atlas<", ">notes.md<"},
		"spent":              {func(w *consoletest.Reader) { w.Grants[3].Status.Uses = 5 }, "", ">atlas<", ">notes.md<"},
		"revoked":            {func(w *consoletest.Reader) { w.Grants[1].Spec.Revoked = true }, "", ">notes.md<", ">grep<"},
		"condition is stale": {func(w *consoletest.Reader) { w.Grants[6].Status.Conditions[0].Reason = "Active" }, "", ">atlas<", ">budget<"},
		"a parent is gone":   {func(w *consoletest.Reader) { w.Grants[4].Spec.ParentGrant = "gone" }, "", ">notes.md<", ">main<"},
		"a shared address": {func(w *consoletest.Reader) { w.Principals[2].Spec.Address = w.Principals[1].Spec.Address }, "",
			"another principal has the same address", ">atlas<"},
		"its authority is gone": {func(w *consoletest.Reader) { w.Principals[1].Spec.Authority = "nobody" }, "", "It can reach nothing now", ">atlas<"},
	} {
		world := consoletest.World()
		tt.change(world)
		page := get(handler(t, world), path+tt.query).body
		tree, _, _ := strings.Cut(page, `id="grants"`)
		if !strings.Contains(tree, tt.has) || strings.Contains(tree, tt.lacks) {
			t.Errorf("%s: has %q %t, has %q %t", name, tt.has, strings.Contains(tree, tt.has), tt.lacks, strings.Contains(tree, tt.lacks))
		}
	}
}

func TestTree(t *testing.T) {
	got := tree([]contract.ReachEntry{
		{Namespace: "files", Path: contract.Path{}, Actions: []string{"stat"}, Scope: contract.ScopeExact},
		{Namespace: "files", Path: contract.Path{"a"}, Actions: []string{"read"}, Scope: contract.ScopeDescendants},
		{Namespace: "files", Path: contract.Path{"a"}, Actions: []string{"write"}, Scope: contract.ScopeExact},
		{Namespace: "files", Path: contract.Path{"a", "b"}, Actions: []string{"*"}, Scope: contract.ScopeExact},
		{Namespace: "repo", Path: contract.Path{"a"}, Actions: []string{"read"}, Scope: contract.ScopeExact},
	})
	want := []*node{
		{Name: "files", Rights: []rights{{[]string{"stat"}, "only this"}}, Nodes: []*node{{
			Name: "a", Rights: []rights{{[]string{"read"}, "and everything below"}, {[]string{"write"}, "only this"}},
			Nodes: []*node{{Name: "b", Rights: []rights{{[]string{"every action"}, "only this"}}}},
		}}},
		{Name: "repo", Nodes: []*node{{Name: "a", Rights: []rights{{[]string{"read"}, "only this"}}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestEscalationsWaitUntilAllowed: a Grant for what was asked ends the waiting; one
// for less, for something else or for another purpose does not.
func TestEscalationsWaitUntilAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		grant v1alpha1.Grant
		waits bool
	}{
		"exactly":         {consoletest.Grant("team-atlas", "new", "alice", "alice-assistant", "files", "read", false, "Work", "budget", "2026.csv"), false},
		"more":            {consoletest.Grant("team-atlas", "new", "alice", "alice-assistant", "files", "*", true, "Work"), false},
		"another action":  {consoletest.Grant("team-atlas", "new", "alice", "alice-assistant", "files", "list", false, "Work", "budget", "2026.csv"), true},
		"another place":   {consoletest.Grant("team-atlas", "new", "alice", "alice-assistant", "files", "read", false, "Work", "budget"), true},
		"another subject": {consoletest.Grant("team-atlas", "new", "alice", "release-bot", "files", "read", false, "Work", "budget", "2026.csv"), true},
		"another world":   {consoletest.Grant("team-borealis", "new", "alice", "alice-assistant", "files", "read", false, "Work", "budget", "2026.csv"), true},
	} {
		world := consoletest.World()
		world.Grants = append(world.Grants, tt.grant)
		h := handler(t, world)
		page := get(h, "/escalations").body
		waits := strings.Contains(page, "kubectl sharedos approve budget-question --namespace team-atlas")
		if waits != tt.waits || strings.Contains(page, "Allowed since") == tt.waits {
			t.Errorf("%s: waits %t, want %t", name, waits, tt.waits)
		}
		if start := get(h, "/").body; strings.Contains(start, `aria-label="1 escalations waiting in team-atlas"`) != tt.waits {
			t.Errorf("%s: the overview counts otherwise", name)
		}
	}
}

func TestApproveCommandIsOneCommand(t *testing.T) {
	if got, want := approveCommand("w", "a'; rm -rf ~ #"), `kubectl sharedos approve 'a'\''; rm -rf ~ #' --namespace w`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCounter(t *testing.T) {
	now := consoletest.Now()
	c := newCounter(now, 24)
	turn := consoletest.Turn("w", "t", "p", v1alpha1.TurnStateSucceeded, 90*time.Minute) // at 14:50
	turn.Status.Usage.Denied = 4                                                         // one is listed
	if got := c.add(&turn); got != 4 {
		t.Errorf("counted %d, want the listed one and three that are only counted", got)
	}
	denied := consoletest.Turn("w", "d", "p", v1alpha1.TurnStateDenied, time.Minute)
	old := consoletest.Turn("w", "o", "p", v1alpha1.TurnStateDenied, 24*time.Hour)
	edge := consoletest.Turn("w", "e", "p", v1alpha1.TurnStateDenied, 23*time.Hour) // 17:20 of the day before
	if a, b, e := c.add(&denied), c.add(&old), c.add(&edge); a != 1 || b != 0 || e != 1 {
		t.Errorf("counted %d, %d and %d", a, b, e)
	}
	if c.hours[21] != (hourCount{Start: c.hours[21].Start, Calls: 4}) || c.hours[23].Turns != 1 || c.hours[0].Turns != 1 {
		t.Errorf("hours %+v", c.hours)
	}
	if !c.hours[21].Start.Equal(time.Date(2026, 9, 30, 14, 0, 0, 0, time.UTC)) {
		t.Errorf("hour 21 starts at %s", c.hours[21].Start)
	}
	codes := c.byCode()
	if len(codes) != 2 || codes[0].Code != contract.CodeNoMatchingGrant || codes[0].Total() != 3 || codes[1].Code != unlisted || codes[1].Calls != 3 {
		t.Errorf("codes %+v", codes)
	}
	// What only looks like a denial is none.
	for _, data := range []string{`"denied"`, `{"status":"succeeded","tool":"\"status\":\"denied\""}`} {
		if _, ok := deniedCode(&v1alpha1.TurnEvent{Type: "tool.completed", Data: v1alpha1.JSONText(data)}); ok {
			t.Errorf("%s counts as a denial", data)
		}
	}
}

func TestChart(t *testing.T) {
	hours := newCounter(consoletest.Now(), 24).hours
	hours[2].Calls, hours[2].Turns, hours[5].Turns = 3, 1, 2
	c := draw(hours)
	if c.Max != 4 || len(c.Bars) != 2 || c.Bars[0].CallsY != 25 || c.Bars[0].TurnsY != 0 || c.Bars[1].TurnsTall != 50 || c.Bars[1].X != 51 {
		t.Errorf("chart %+v", c)
	}
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 4, 9: 10, 11: 12, 13: 16, 17: 20, 21: 40, 161: 200} {
		if got := niceMax(n); got != want {
			t.Errorf("the scale for %d ends at %d, want %d", n, got, want)
		}
	}
}

// TestTimelineShowsGaps: events that the status leaves out are missed, not hidden.
func TestTimelineShowsGaps(t *testing.T) {
	turn := consoletest.Turn("w", "t", "p", v1alpha1.TurnStateSucceeded, time.Hour)
	e := turn.Status.Events
	e.Items = append(e.Items[:3:3], e.Items[6:]...) // without the second call
	e.Ref = &v1alpha1.LocalReference{Name: "t-events"}
	var got []string
	for _, s := range timeline(&turn, consoletest.Now()) {
		got = append(got, strings.Join(strings.Fields(strings.Join([]string{s.Title, s.Tool, s.Status, s.Code, s.Detail}, " ")), " "))
	}
	want := []string{
		"Created", "Admitted 3 grants held, 6 tools in the catalogue", "Agent started", "Call files.list succeeded",
		"3 events not listed in the status ConfigMap t-events has all of them.", "Call files.read denied no_matching_grant",
		`Said by the agent's runtime {"thought":"The budget is not mine to read."}`, "Call files.grep failed invalid_tool_arguments", "Ended succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
