package envelope_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// world is a world whose agent may be admitted, touch files below Work and ask for
// a human.
func world(t *testing.T, more ...contract.Grant) (*kerneltest.World, *kerneltest.Plane) {
	t.Helper()
	work := kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "*").Obj()
	w := kerneltest.New(append([]contract.Grant{kerneltest.Admission(), kerneltest.Escalation(), work}, more...)...)
	plane := &kerneltest.Plane{}
	w.Options.Tools = kerneltest.FilesTools(plane)
	return w, plane
}

// open opens a turn over the world; its timers run on the world's clock.
func open(t *testing.T, w *kerneltest.World, opts envelope.Options, change ...func(r *contract.ExecutionRequest)) *envelope.Execution {
	t.Helper()
	opts.AfterFunc = w.Clock.AfterFunc
	req := w.Request()
	for _, c := range change {
		c(&req)
	}
	return envelope.New(w.Kernel(t), opts).Open(t.Context(), req)
}

// start opens a turn that must be admitted, and starts it.
func start(t *testing.T, w *kerneltest.World, opts envelope.Options, change ...func(r *contract.ExecutionRequest)) *envelope.Execution {
	t.Helper()
	x := open(t, w, opts, change...)
	if r, ended := x.Ended(); ended {
		t.Fatalf("the turn was refused: %+v", r.Error)
	}
	x.Start(t.Context())
	return x
}

func options(o contract.ExecutionOptions) func(r *contract.ExecutionRequest) {
	return func(r *contract.ExecutionRequest) { r.Options = &o }
}

func read(id string) contract.ToolCall { return kerneltest.Call(id, "files.read", `{"path":["Work"]}`) }

func completed(output string) envelope.Outcome {
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(output)}
}

func codeOf(e *contract.ProtocolError) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// types lists the events' types.
func types(events []contract.ExecutionEvent) []contract.EventType {
	out := make([]contract.EventType, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// field is one member of the last event's data.
func field(t *testing.T, events []contract.ExecutionEvent, name string) any {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(events[len(events)-1].Data, &data); err != nil {
		t.Fatal(err)
	}
	return data[name]
}

// wellRecorded checks what holds of every ending.
func wellRecorded(t *testing.T, w *kerneltest.World, r contract.ExecutionResult) {
	t.Helper()
	if err := r.Validate(); err != nil {
		t.Errorf("the result is malformed: %v", err)
	}
	for i, e := range r.Events {
		if e.Sequence != int64(i) {
			t.Errorf("event %d has sequence %d", i, e.Sequence)
		}
	}
	ended := 0
	for _, e := range w.Audit.Events() {
		if e.Type == audit.TurnEnded {
			ended++
			want := audit.Outcome(r.Status)
			if r.Status == contract.StatusCancelled {
				want = audit.Failed
			}
			if e.Outcome != want || e.Reason != codeOf(r.Error) || e.OperationID != r.ExecutionID || e.Source != audit.SourceEnvelope {
				t.Errorf("turn.ended says %s %q of %s", e.Outcome, e.Reason, e.OperationID)
			}
		}
	}
	if ended > 1 {
		t.Errorf("%d endings are on record", ended)
	}
}

// runtime adapts a function.
type runtime func(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error)

func (f runtime) Run(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
	return f(ctx, req, host)
}

func failAudit(w *kerneltest.World, kind audit.Type) {
	w.Audit.Fail = func(e audit.Event) error {
		if e.Type == kind {
			return kerneltest.ErrPort
		}
		return nil
	}
}

func withTools(w *kerneltest.World, tool kernel.Tool) {
	w.Options.Tools = append(w.Options.Tools, tool)
}
