package envelope_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestAdmission(t *testing.T) {
	t.Parallel()
	bob := contract.Agent("bob-assistant")
	tests := map[string]struct {
		world   func(w *kerneltest.World)
		change  func(r *contract.ExecutionRequest)
		status  contract.Status
		code    string
		loads   int
		onPaper bool
	}{
		"no context":       {change: func(r *contract.ExecutionRequest) { r.Context = nil }, status: "denied", code: "invalid_context"},
		"no purpose":       {change: func(r *contract.ExecutionRequest) { r.Context.Purpose = "" }, status: "denied", code: "invalid_context"},
		"malformed":        {change: func(r *contract.ExecutionRequest) { r.Version = "2" }, status: "denied", code: "invalid_request", onPaper: true},
		"too many steps":   {change: options(contract.ExecutionOptions{MaxSteps: new(int64(1001))}), status: "denied", code: "invalid_request", onPaper: true},
		"another actor":    {change: func(r *contract.ExecutionRequest) { r.Agent, r.Message.Receiver = bob, bob }, status: "denied", code: "actor_mismatch", onPaper: true},
		"another receiver": {change: func(r *contract.ExecutionRequest) { r.Message.Receiver = bob }, status: "denied", code: "receiver_mismatch", onPaper: true},
		"another purpose":  {change: func(r *contract.ExecutionRequest) { r.Message.Purpose = "x" }, status: "denied", code: "message_context_mismatch", onPaper: true},
		"another trace":    {change: func(r *contract.ExecutionRequest) { r.Message.TraceID = "x" }, status: "denied", code: "message_context_mismatch", onPaper: true},
		"no authority":     {world: func(w *kerneltest.World) { w.Grants.Err = kerneltest.ErrPort }, status: "denied", code: "authority_unavailable", loads: 1, onPaper: true},
		"not admitted":     {world: func(w *kerneltest.World) { w.Grants.Set() }, status: "denied", code: "no_matching_grant", loads: 1, onPaper: true},
		"catalogue fails": {world: func(w *kerneltest.World) {
			w.Options.Tools = nil
			w.Options.Providers = append(w.Options.Providers, failing{})
		}, status: "failed", code: "tool_catalog_unavailable", loads: 1, onPaper: true},
		"authority on paper":   {world: func(w *kerneltest.World) { failAudit(w, audit.AuthorityResolved) }, status: "failed", code: "audit_unavailable", loads: 1, onPaper: true},
		"decision on paper":    {world: func(w *kerneltest.World) { failAudit(w, audit.AuthorizationChecked) }, status: "failed", code: "audit_unavailable", loads: 1, onPaper: true},
		"catalogue on paper":   {world: func(w *kerneltest.World) { failAudit(w, audit.ToolCatalogListed) }, status: "failed", code: "audit_unavailable", loads: 1, onPaper: true},
		"refusal not on paper": {world: func(w *kerneltest.World) { w.Grants.Set(); failAudit(w, audit.TurnEnded) }, status: "failed", code: "audit_unavailable", loads: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, plane := world(t)
			if tt.world != nil {
				tt.world(w)
			}
			change := func(*contract.ExecutionRequest) {}
			if tt.change != nil {
				change = tt.change
			}
			x := open(t, w, envelope.Options{}, change)
			r, ended := x.Ended()
			if !ended || r.Status != tt.status || codeOf(r.Error) != tt.code {
				t.Fatalf("ended %t, %s %+v; want %s %s", ended, r.Status, r.Error, tt.status, tt.code)
			}
			kind := contract.EventTurnDenied
			if tt.status == "failed" {
				kind = contract.EventTurnFailed
			}
			if diff := cmp.Diff([]contract.EventType{kind}, types(r.Events)); diff != "" || field(t, r.Events, "code") != tt.code {
				t.Errorf("events: %s", diff)
			}
			if w.Grants.Loads() != tt.loads {
				t.Errorf("authority was loaded %d times, want %d", w.Grants.Loads(), tt.loads)
			}
			x.Start(t.Context())
			if c := x.Invoke(t.Context(), read("c"), nil); c.Status != "denied" || codeOf(c.Error) != "turn_ended" || len(plane.Operations()) != 0 {
				t.Errorf("a call on a refused turn: %+v", c)
			}
			if after, _ := x.Ended(); len(after.Events) != 1 {
				t.Errorf("events after the ending: %v", types(after.Events))
			}
			if tt.code != "invalid_context" && name != "malformed" {
				wellRecorded(t, w, r)
			}
			found := false
			var ending audit.Event
			for _, e := range w.Audit.Events() {
				if e.Type == audit.TurnEnded {
					found, ending = true, e
				}
			}
			if found != tt.onPaper {
				t.Errorf("the ending is on record: %t, want %t", found, tt.onPaper)
			}
			if tt.code == "no_matching_grant" {
				if ending.RequestedAuthority == nil || ending.RequestedAuthority.Capabilities[0].Resource.Namespace != "sharedos.execution" {
					t.Errorf("the ending asks for %+v", ending.RequestedAuthority)
				}
			}
		})
	}
}

// failing is a provider of tools that fails.
type failing struct{}

func (failing) Tools(context.Context, contract.AccessContext) ([]kernel.Tool, error) {
	return nil, kerneltest.ErrPort
}

func TestEndings(t *testing.T) {
	t.Parallel()
	boom := &contract.ProtocolError{Code: "model_refused", Message: "m", Details: contract.Object(`{"k":1}`)}
	tests := map[string]struct {
		end       func(x *envelope.Execution, w *kerneltest.World)
		world     func(w *kerneltest.World)
		status    contract.Status
		code      string
		kind      contract.EventType
		source    any
		endedBy   string
		output    string
		retryable any
	}{
		"completed": {
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Finish(context.Background(), completed(`{"n":12345678901234567890}`))
			},
			status: "succeeded", kind: "turn.completed", endedBy: "runtime", output: `{"n":12345678901234567890}`,
		},
		"reported failure": {
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeFailed, Error: boom})
			},
			status: "failed", code: "model_refused", kind: "turn.failed", source: "runtime", endedBy: "runtime", retryable: true,
		},
		"the host says so": {
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Fail(context.Background(), contract.ProtocolError{Code: "harness_not_started", Message: "m"})
			},
			status: "failed", code: "harness_not_started", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true,
		},
		"the host says nonsense": {
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Fail(context.Background(), contract.ProtocolError{})
			},
			status: "failed", code: "runtime_failed", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true,
		},
		"nothing":   {end: func(x *envelope.Execution, _ *kerneltest.World) { x.Finish(context.Background(), envelope.Outcome{}) }, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"no output": {end: func(x *envelope.Execution, _ *kerneltest.World) { x.Finish(context.Background(), completed(``)) }, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"two readings": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), completed(`{"a":1,"a":2}`))
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"two outcomes": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			o := completed(`1`)
			o.Error = boom
			x.Finish(context.Background(), o)
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"failed, no error": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeFailed})
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"bad metadata": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			o := completed(`1`)
			o.Metadata = contract.Object(`[]`)
			x.Finish(context.Background(), o)
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"asks for nothing": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{}})
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"an unknown kind": {end: func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), envelope.Outcome{Kind: "won"})
		}, status: "failed", code: "invalid_runtime_outcome", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true},
		"escalated": {
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "why"}})
			}, status: "escalated", kind: "turn.escalated", endedBy: "runtime",
		},
		"escalated without the affordance": {
			world: func(w *kerneltest.World) { w.Grants.Set(kerneltest.Admission()) },
			end: func(x *envelope.Execution, _ *kerneltest.World) {
				x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "why"}})
			}, status: "failed", code: "tool_unavailable", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true,
		},
		"escalated without a record": {
			end: func(x *envelope.Execution, w *kerneltest.World) {
				failAudit(w, audit.EscalationRequested)
				x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "why"}})
			}, status: "failed", code: "audit_unavailable", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: true,
		},
		"a decision without a record": {
			end: func(x *envelope.Execution, w *kerneltest.World) {
				failAudit(w, audit.AuthorizationChecked)
				x.Invoke(context.Background(), read("c"), nil)
			}, status: "failed", code: "audit_unavailable", kind: "turn.failed", source: "envelope", endedBy: "envelope", retryable: false,
		},
		"an ending without a record": {
			end: func(x *envelope.Execution, w *kerneltest.World) {
				failAudit(w, audit.TurnEnded)
				x.Finish(context.Background(), completed(`1`))
			}, status: "failed", code: "audit_unavailable", kind: "turn.failed", source: "envelope", retryable: true,
		},
		"deadline": {
			end:    func(_ *envelope.Execution, w *kerneltest.World) { w.Clock.Advance(envelope.DefaultTimeout) },
			status: "cancelled", code: "turn_cancelled", kind: "turn.cancelled", endedBy: "deadline", retryable: true,
		},
		"the host cancels": {
			end:    func(x *envelope.Execution, _ *kerneltest.World) { x.Cancel(context.Background(), "operator asked") },
			status: "cancelled", code: "turn_cancelled", kind: "turn.cancelled", endedBy: "host", retryable: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := world(t)
			if tt.world != nil {
				tt.world(w)
			}
			x := start(t, w, envelope.Options{})
			tt.end(x, w)
			<-x.Done()
			r, _ := x.Ended()
			if r.Status != tt.status || codeOf(r.Error) != tt.code || string(r.Output) != tt.output {
				t.Fatalf("%s %+v %s; want %s %s", r.Status, r.Error, r.Output, tt.status, tt.code)
			}
			if last := r.Events[len(r.Events)-1]; last.Type != tt.kind {
				t.Errorf("last event is %s, want %s", last.Type, tt.kind)
			}
			if got := field(t, r.Events, "source"); got != tt.source {
				t.Errorf("source = %v, want %v", got, tt.source)
			}
			if got := field(t, r.Events, "retryable"); name != "a decision without a record" && got != tt.retryable {
				t.Errorf("retryable = %v, want %v", got, tt.retryable)
			}
			wellRecorded(t, w, r)
			for _, e := range w.Audit.Events() {
				if e.Type == audit.TurnEnded && (e.EndedBy != tt.endedBy || len(e.AuthorityHash) != 64 || len(e.CatalogHash) != 64) {
					t.Errorf("ended by %q with hashes %q and %q", e.EndedBy, e.AuthorityHash, e.CatalogHash)
				}
			}
			// Only the first ending counts.
			again := x.Finish(t.Context(), completed(`"other"`))
			x.Cancel(t.Context(), "late")
			x.Fail(t.Context(), *boom)
			w.Clock.Advance(time.Hour)
			final, _ := x.Ended()
			if diff := cmp.Diff(r, again); diff != "" {
				t.Errorf("a second ending: %s", diff)
			}
			if diff := cmp.Diff(r, final); diff != "" {
				t.Errorf("after more endings: %s", diff)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	tests := map[string]struct {
		runtime runtime
		cancel  bool
		status  contract.Status
		code    string
	}{
		"works": {func(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
			if r := host.Invoke(ctx, "files.read", contract.Object(`{"path":["Work"]}`), new(int64(0))); r.Status != "succeeded" {
				return envelope.Outcome{}, errors.New(r.Error.Code)
			}
			if err := host.Observe(contract.Object(`{"thought":1}`)); err != nil {
				return envelope.Outcome{}, err
			}
			return completed(`"` + req.Message.ID + `"`), nil
		}, false, "succeeded", ""},
		"fails": {func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
			return completed(`1`), errors.New("secret")
		}, false, "failed", "runtime_failed"},
		"panics": {func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) { panic("secret") }, false, "failed", "runtime_failed"},
		"exits": {func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
			goruntime.Goexit()
			return envelope.Outcome{}, nil
		}, false, "failed", "runtime_failed"},
		"is cancelled": {func(ctx context.Context, _ envelope.Request, _ envelope.Host) (envelope.Outcome, error) {
			<-ctx.Done()
			return envelope.Outcome{}, ctx.Err()
		}, true, "cancelled", "turn_cancelled"},
		"does not come back": {func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
			<-release
			return completed(`1`), nil
		}, true, "cancelled", "turn_cancelled"},
	}
	for name, tt := range tests {
		w, _ := world(t)
		ctx, cancel := context.WithCancel(t.Context())
		if tt.cancel {
			inner := tt.runtime
			tt.runtime = func(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
				cancel()
				return inner(ctx, req, host)
			}
		}
		r := envelope.New(w.Kernel(t), envelope.Options{AfterFunc: w.Clock.AfterFunc}).Run(ctx, w.Request(), tt.runtime)
		cancel()
		if r.Status != tt.status || codeOf(r.Error) != tt.code {
			t.Errorf("%s: %s %+v, want %s %s", name, r.Status, r.Error, tt.status, tt.code)
		}
		if r.Error != nil && strings.Contains(r.Error.Message, "secret") {
			t.Errorf("%s: the message tells %q", name, r.Error.Message)
		}
		wellRecorded(t, w, r)
	}
	w, _ := world(t)
	w.Grants.Set()
	r := envelope.New(w.Kernel(t), envelope.Options{}).Run(t.Context(), w.Request(), runtime(func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
		t.Error("a refused turn ran")
		return envelope.Outcome{}, nil
	}))
	if r.Status != "denied" {
		t.Errorf("refused turn: %s", r.Status)
	}
}
