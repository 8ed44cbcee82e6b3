package envelope_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// place is the action and the place that a denied call needed.
func place(t *testing.T, d envelope.DeniedCall) string {
	t.Helper()
	if d.Required == nil {
		return ""
	}
	request, err := contract.Unmarshal[contract.CapabilityRequest](d.Required)
	if err != nil {
		t.Fatalf("%s: %v", d.Required, err)
	}
	c := request.Capabilities[0]
	return c.Actions[0] + " " + c.Resource.Namespace + ":" + strings.Join(c.Resource.Path, "/")
}

func TestDeniedCallsAreKeptWithWhatTheyNeeded(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{}, options(contract.ExecutionOptions{MaxToolCalls: new(int64(3))}))
	x.Invoke(t.Context(), read("ok"), nil)
	x.Invoke(t.Context(), kerneltest.Call("no-grant", "files.read", `{"path":["Other"]}`), nil)
	x.Invoke(t.Context(), kerneltest.Call("bad", "files.read", `{"path":"Other"}`), nil) // failed, not denied
	x.Invoke(t.Context(), kerneltest.Call("too-many", "files.read", `{"path":["hunter2"]}`), nil)
	x.Invoke(t.Context(), kerneltest.Call("\xff"+strings.Repeat("é", 300), strings.Repeat("é", 300), `{"secret":"hunter2"}`), nil)
	got := x.Checkpoint().Denied
	type row struct{ Code, Place string }
	rows := make([]row, 0, len(got))
	for _, d := range got {
		rows = append(rows, row{d.Code, place(t, d)})
		if !utf8.ValidString(d.CallID) || utf8.RuneCountInString(d.CallID) > contract.MaxIdentifier || utf8.RuneCountInString(d.Tool) > contract.MaxIdentifier {
			t.Errorf("%q of %q is not bounded text", d.CallID, d.Tool)
		}
	}
	want := []row{{"no_matching_grant", "read files:Other"}, {"tool_call_limit_exceeded", ""}, {"tool_call_limit_exceeded", ""}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// An entry is found by the event of its call.
	events := x.Checkpoint().Events
	if id := field(t, events, "callId"); id != got[len(got)-1].CallID {
		t.Errorf("the last event is of call %q, the last entry of %q", id, got[len(got)-1].CallID)
	}
	if int64(len(got)) != x.Usage().Denied {
		t.Errorf("%d are kept, %d were denied", len(got), x.Usage().Denied)
	}
	raw, err := json.Marshal(got)
	if err != nil || strings.Contains(string(raw), "hunter2") {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestDeniedCallsAreBounded(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{}, options(contract.ExecutionOptions{MaxToolCalls: new(int64(1000))}))
	long := strings.Repeat(`"`+strings.Repeat("x", contract.MaxSegment)+`",`, envelope.MaxRequiredAuthority/contract.MaxSegment)
	x.Invoke(t.Context(), kerneltest.Call("long", "files.read", `{"path":[`+long+`"x"]}`), nil)
	const more = 8
	for i := range envelope.MaxDeniedCalls + more {
		x.Invoke(t.Context(), kerneltest.Call(fmt.Sprint(i), "files.read", `{"path":["Other"]}`), nil)
	}
	got := x.Checkpoint().Denied
	if len(got) != envelope.MaxDeniedCalls || x.Usage().Denied != envelope.MaxDeniedCalls+more+1 {
		t.Fatalf("%d are kept of %d", len(got), x.Usage().Denied)
	}
	if got[0].CallID != "long" || got[0].Code != "no_matching_grant" || got[0].Required != nil {
		t.Errorf("what is too long: %+v", got[0])
	}
	if last := got[len(got)-1]; last.CallID != fmt.Sprint(envelope.MaxDeniedCalls-2) || place(t, last) != "read files:Other" {
		t.Errorf("the last that is kept: %+v; want the first ones", last)
	}
}

func TestDeniedCallsSurviveAHandOver(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	x.Invoke(t.Context(), kerneltest.Call("before", "files.read", `{"path":["Other"]}`), nil)
	from := handOver(t, x)

	y := resume(t, w, from)
	y.Invoke(t.Context(), kerneltest.Call("after", "files.read", `{"path":["Other"]}`), nil)
	got := y.Checkpoint().Denied
	if len(got) != 2 || got[0].CallID != "before" || got[1].CallID != "after" || place(t, got[0]) != "read files:Other" {
		t.Errorf("%+v", got)
	}
	if len(x.Checkpoint().Denied) != 1 {
		t.Error("the checkpoint is shared with the turn that went on")
	}

	many := from
	for range envelope.MaxDeniedCalls {
		many.Denied = append(many.Denied, from.Denied[0])
	}
	if got := resume(t, w, many).Checkpoint().Denied; len(got) != envelope.MaxDeniedCalls {
		t.Errorf("%d entries were taken over, want at most %d", len(got), envelope.MaxDeniedCalls)
	}
}

// TestATurnThatCannotGoOnKeepsItsRecord: what it did is told, and may have been more.
func TestATurnThatCannotGoOnKeepsItsRecord(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	x.Invoke(t.Context(), kerneltest.Call("before", "files.read", `{"path":["Other"]}`), nil)
	from := handOver(t, x)
	w.Options.Tools = w.Options.Tools[1:]
	y := resume(t, w, from)
	r, ended := y.Ended()
	if !ended || codeOf(r.Error) != contract.CodeCatalogChanged {
		t.Fatalf("%t %+v", ended, r.Error)
	}
	if r.Error.Retryable == nil || *r.Error.Retryable {
		t.Error("a turn that may have written is called repeatable")
	}
	if diff := cmp.Diff(from.Usage, y.Usage()); diff != "" {
		t.Errorf("usage: %s", diff)
	}
	if diff := cmp.Diff(from.Denied, y.Checkpoint().Denied); diff != "" {
		t.Errorf("denied: %s", diff)
	}
}
