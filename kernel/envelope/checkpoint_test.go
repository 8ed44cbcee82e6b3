package envelope_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// handOver writes a checkpoint and reads it again, as another process does.
func handOver(t *testing.T, x *envelope.Execution) envelope.Checkpoint {
	t.Helper()
	raw, err := json.Marshal(x.Checkpoint())
	if err != nil {
		t.Fatal(err)
	}
	var c envelope.Checkpoint
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func resume(t *testing.T, w *kerneltest.World, from envelope.Checkpoint, change ...func(r *contract.ExecutionRequest)) *envelope.Execution {
	t.Helper()
	req := w.Request()
	for _, c := range change {
		c(&req)
	}
	return envelope.New(w.Kernel(t), envelope.Options{AfterFunc: w.Clock.AfterFunc}).Resume(t.Context(), req, from)
}

func TestResumeGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	budget := options(contract.ExecutionOptions{MaxSteps: new(int64(2)), MaxToolCalls: new(int64(4)), TimeoutMs: new(int64(60000))})
	x := start(t, w, envelope.Options{}, budget)
	x.Invoke(t.Context(), read("c1"), new(int64(1)))
	x.Invoke(t.Context(), kerneltest.Call("c2", "files.delete", `{"path":["Work"]}`), new(int64(0)))
	from := handOver(t, x)
	if from.ExecutionID != "execution-1" || !cmp.Equal(from.Steps, []int64{0, 1}) || !from.Unsafe || from.NextSequence != 5 || len(from.Events) != 5 {
		t.Errorf("checkpoint = %+v", from)
	}
	w.Clock.Advance(30 * time.Second)
	y := resume(t, w, from, budget)
	if r, ended := y.Ended(); ended {
		t.Fatalf("ended: %+v", r.Error)
	}
	if diff := cmp.Diff(x.Admission(), y.Admission()); diff != "" {
		t.Errorf("admission: %s", diff)
	}
	if r := y.Invoke(t.Context(), read("c3"), new(int64(7))); codeOf(r.Error) != "step_limit_exceeded" {
		t.Errorf("a new step: %+v", r)
	}
	if r := y.Invoke(t.Context(), read("c4"), new(int64(1))); r.Status != "succeeded" {
		t.Errorf("an old step: %+v", r.Error)
	}
	if r := y.Invoke(t.Context(), read("c5"), nil); r.Status != "succeeded" {
		t.Errorf("the last call: %+v", r.Error)
	}
	if r := y.Invoke(t.Context(), read("c6"), nil); codeOf(r.Error) != "tool_call_limit_exceeded" {
		t.Errorf("one call too many: %+v", r)
	}
	w.Clock.Advance(29*time.Second + 999*time.Millisecond)
	if _, ended := y.Ended(); ended {
		t.Error("the turn ended before its deadline")
	}
	w.Clock.Advance(time.Millisecond)
	r, ended := y.Ended()
	if !ended || r.Status != "cancelled" || *r.Error.Retryable {
		t.Errorf("at the deadline: %t %s %+v", ended, r.Status, r.Error)
	}
	if !r.StartedAt.Equal(kerneltest.Epoch) || len(r.Events) != 5+8+1 {
		t.Errorf("started %s, %d events", r.StartedAt, len(r.Events))
	}
	for i, e := range r.Events {
		if e.Sequence != int64(i) {
			t.Errorf("event %d has sequence %d", i, e.Sequence)
		}
	}
}

func TestResumeJudgesAtItsOwnAdmission(t *testing.T) {
	t.Parallel()
	early := kerneltest.MakeGrant("later").Descendants("files", []string{"Later"}, "read").NotBefore(time.Minute).Obj()
	w, _ := world(t, early)
	from := handOver(t, start(t, w, envelope.Options{}))
	w.Clock.Advance(90 * time.Second)
	y := resume(t, w, from, func(r *contract.ExecutionRequest) { r.Context.Now = contract.At(w.Clock.Now()) })
	if r := y.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Later"]}`), nil); codeOf(r.Error) != "no_matching_grant" {
		t.Errorf("a window that opened after admission: %+v", r)
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	work := kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "*").Obj()
	for name, tt := range map[string]struct {
		world  func(w *kerneltest.World)
		from   func(c *envelope.Checkpoint)
		change func(r *contract.ExecutionRequest)
		status contract.Status
		code   string
	}{
		"another execution": {from: func(c *envelope.Checkpoint) { c.ExecutionID = "x" }, status: "denied", code: "invalid_request"},
		"another actor":     {change: func(r *contract.ExecutionRequest) { r.Context.Actor = contract.Agent("x") }, status: "denied", code: "actor_mismatch"},
		"no authority":      {world: func(w *kerneltest.World) { w.Grants.Err = kerneltest.ErrPort }, status: "failed", code: "authority_unavailable"},
		"a grant is gone":   {world: func(w *kerneltest.World) { w.Grants.Set(kerneltest.Admission(), kerneltest.Escalation()) }, status: "failed", code: "catalog_changed"},
		"a tool is gone":    {world: func(w *kerneltest.World) { w.Options.Tools = w.Options.Tools[1:] }, status: "failed", code: "catalog_changed"},
		"catalogue fails":   {world: func(w *kerneltest.World) { w.Options.Providers = append(w.Options.Providers, failing{}) }, status: "failed", code: "tool_catalog_unavailable"},
		"a grant was widened": {world: func(w *kerneltest.World) {
			w.Grants.Set(kerneltest.Admission(), kerneltest.Escalation(), kerneltest.MakeGrant("work").Descendants("files", nil, "*").Obj())
		}, status: "failed", code: "catalog_changed"},
		"a grant was added": {world: func(w *kerneltest.World) {
			w.Grants.Set(kerneltest.Admission(), kerneltest.Escalation(), work, kerneltest.MakeGrant("more").Descendants("files", nil, "*").Obj())
		}},
	} {
		w, _ := world(t)
		from := handOver(t, start(t, w, envelope.Options{}))
		if tt.world != nil {
			tt.world(w)
		}
		if tt.from != nil {
			tt.from(&from)
		}
		change := func(*contract.ExecutionRequest) {}
		if tt.change != nil {
			change = tt.change
		}
		y := resume(t, w, from, change)
		r, ended := y.Ended()
		if ended != (tt.code != "") || r.Status != tt.status || codeOf(r.Error) != tt.code {
			t.Errorf("%s: %t %s %+v", name, ended, r.Status, r.Error)
		}
		if ended && (len(r.Events) != 2 || r.Events[1].Sequence != 1) {
			t.Errorf("%s: events %v", name, types(r.Events))
		}
		if !ended {
			if r := y.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Other"]}`), nil); codeOf(r.Error) != "no_matching_grant" {
				t.Errorf("%s: it was gained: %+v", name, r)
			}
		}
	}
}

func TestCheckpointWhileACallRuns(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	entered, release := make(chan struct{}), make(chan struct{})
	withTools(w, blocking("files.slow", contract.ClassWrite, entered, release))
	x := start(t, w, envelope.Options{})
	if x.Checkpoint().Unsafe {
		t.Error("nothing has happened yet")
	}
	answer := make(chan contract.ToolResult)
	go func() {
		answer <- x.Invoke(context.Background(), kerneltest.Call("slow", "files.slow", `{"path":["Work"]}`), nil)
	}()
	<-entered
	if !x.Checkpoint().Unsafe {
		t.Error("a running write may be repeated")
	}
	close(release)
	<-answer
	x.Cancel(t.Context(), "x")
}

func TestResumeKeepsTheEscalationAndTheStart(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	if err := x.Escalate(t.Context(), envelope.Ask{Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	x.Invoke(t.Context(), read("c"), nil)
	from := handOver(t, x)
	y := resume(t, w, from)
	if r := y.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "escalation_pending" {
		t.Errorf("a call on a resumed escalation: %+v", r)
	}
	if r := y.Finish(t.Context(), completed(`1`)); r.Status != "escalated" || r.Escalation.Reason != "why" || y.Usage().CallsAfterEscalation != 2 {
		t.Errorf("%s %+v %+v", r.Status, r.Escalation, y.Usage())
	}
	// One that was not started is still to be started, and an expired one ends at once.
	unstarted := handOver(t, open(t, w, envelope.Options{}))
	z := resume(t, w, unstarted)
	if r := z.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "turn_not_started" {
		t.Errorf("%+v", r)
	}
	z.Start(t.Context())
	if r := z.Invoke(t.Context(), read("c"), nil); r.Status != "succeeded" {
		t.Errorf("%+v", r.Error)
	}
	late := handOver(t, z)
	w.Clock.Advance(time.Hour)
	v := resume(t, w, late)
	w.Clock.Advance(0)
	if r, ended := v.Ended(); !ended || r.Status != "cancelled" {
		t.Errorf("resumed past its deadline: %t %s", ended, r.Status)
	}
}
