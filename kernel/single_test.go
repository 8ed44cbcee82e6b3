package kernel_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestATurnOfOneOperationEach asks through every entry outside a turn, with and
// without authority.
func TestATurnOfOneOperationEach(t *testing.T) {
	t.Parallel()
	ask := func(k *kernel.Kernel, ac contract.AccessContext) map[string]string {
		codes := map[string]string{}
		note := func(name string, status string, e *contract.ProtocolError) {
			codes[name] = status
			if e != nil {
				codes[name] += " " + e.Code
			}
		}
		d := k.Authorize(context.Background(), ac, kerneltest.Need("files", "read", "Work"))
		codes["authorize"] = d.ReasonCode
		c, err := k.Tools(context.Background(), ac)
		codes["tools"] = codeOf(err)
		if err == nil {
			codes["tools"] = c.Names()[0]
		}
		r := k.InvokeTool(context.Background(), ac, kerneltest.Call("call-1", "files.read", `{"path":["Work"]}`))
		note("call", string(r.Status), r.Error)
		o := k.InvokeResource(context.Background(), ac, operation("read", "Work"))
		note("resource", string(o.Status), o.Error)
		m := k.SendMessage(context.Background(), ac, message())
		note("message", m.Status, m.Error)
		reach := k.Reach(context.Background(), ac)
		codes["reach"] = reach.Status + reach.ReasonCode
		return codes
	}
	build := func() *kerneltest.World {
		w := kerneltest.New(readGrant("a").Obj(), mayMessage().Obj())
		plane := &kerneltest.Plane{}
		w.Options.Tools = kerneltest.FilesTools(plane)
		w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
		w.Options.Transport = &post{}
		return w
	}
	tests := map[string]struct {
		world   func(w *kerneltest.World)
		context func(ac *contract.AccessContext)
		want    map[string]string
		denied  int
	}{
		"allowed": {want: map[string]string{
			"authorize": "allowed", "tools": "files.read", "call": "succeeded", "resource": "succeeded", "message": "accepted", "reach": "computed",
		}},
		"no authority": {world: func(w *kerneltest.World) { w.Grants.Err = kerneltest.ErrPort }, denied: 5, want: map[string]string{
			"authorize": "authority_unavailable", "tools": "authority_unavailable", "call": "denied authority_unavailable",
			"resource": "denied authority_unavailable", "message": "denied authority_unavailable", "reach": "unavailableauthority_unavailable",
		}},
		"no record": {world: func(w *kerneltest.World) { w.Audit.Fail = func(audit.Event) error { return kerneltest.ErrPort } }, want: map[string]string{
			"authorize": "audit_unavailable", "tools": "audit_unavailable", "call": "failed audit_unavailable",
			"resource": "failed audit_unavailable", "message": "failed audit_unavailable", "reach": "unavailableauthority_unavailable",
		}},
		"only refusals unrecorded": {world: func(w *kerneltest.World) {
			w.Grants.Err = kerneltest.ErrPort
			w.Audit.Fail = func(e audit.Event) error {
				if e.Type != audit.AuthorityResolved {
					return kerneltest.ErrPort
				}
				return nil
			}
		}, want: map[string]string{
			"authorize": "audit_unavailable", "tools": "audit_unavailable", "call": "failed audit_unavailable",
			"resource": "failed audit_unavailable", "message": "failed audit_unavailable", "reach": "unavailableauthority_unavailable",
		}},
		"no context": {context: func(ac *contract.AccessContext) { ac.TraceID = "" }, want: map[string]string{
			"authorize": "invalid_context", "tools": "invalid_context", "call": "denied invalid_context",
			"resource": "denied invalid_context", "message": "denied invalid_context", "reach": "unavailableauthority_unavailable",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := build()
			if tt.world != nil {
				tt.world(w)
			}
			ac := w.Context()
			if tt.context != nil {
				tt.context(&ac)
			}
			if diff := cmp.Diff(tt.want, ask(w.Kernel(t), ac)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			denied := 0
			for _, e := range w.Audit.Events() {
				if e.Outcome == audit.Denied {
					denied++
					if !e.FailClosed {
						t.Errorf("%s is recorded as a denial by policy", e.Type)
					}
				}
			}
			if denied != tt.denied {
				t.Errorf("%d denials are on record, want %d", denied, tt.denied)
			}
		})
	}
}

// TestFactsOutsideATurnAreWaitedFor uses a sink that can defer.
func TestFactsAreDeferredOnlyInsideATurn(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	sink := &deferring{}
	w.Options.Audit = sink
	k := w.Kernel(t)
	if r := k.InvokeTool(t.Context(), w.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`)); r.Status != "succeeded" {
		t.Fatalf("%+v", r.Error)
	}
	if len(sink.deferred) != 0 {
		t.Errorf("outside a turn %v were deferred", sink.deferred)
	}
	turn, err := k.OpenTurn(t.Context(), w.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`)); r.Status != "succeeded" {
		t.Fatalf("%+v", r.Error)
	}
	if diff := cmp.Diff([]audit.Type{audit.ToolInvoked}, sink.deferred); diff != "" {
		t.Errorf("inside a turn: %s", diff)
	}
	if last := sink.recorded[len(sink.recorded)-1]; last != audit.AuthorizationChecked {
		t.Errorf("the decision was not waited for: last record is %s", last)
	}
	sink.err = kerneltest.ErrPort
	if r := turn.Call(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`)); !r.AuditFailed || r.Result.Error.Code != "audit_unavailable" {
		t.Errorf("a fact that could not be deferred: %+v", r)
	}
}

type deferring struct {
	recorded, deferred []audit.Type
	err                error
}

func (d *deferring) Record(_ context.Context, e audit.Event) error {
	d.recorded = append(d.recorded, e.Type)
	return nil
}

func (d *deferring) Defer(_ context.Context, e audit.Event) error {
	d.deferred = append(d.deferred, e.Type)
	return d.err
}

// spans is an observer.
type spans struct{ seen []string }

func (s *spans) Start(ctx context.Context, span kernel.Span) (context.Context, func(contract.Status, string)) {
	return ctx, func(status contract.Status, code string) {
		s.seen = append(s.seen, span.Name+" "+span.Tool+" "+string(status)+" "+code)
	}
}

func TestObserverSeesWorkAndItsEnd(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	s := &spans{}
	w.Options.Observer = s
	turn := w.Turn(t)
	if _, err := turn.Catalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`))
	turn.Invoke(t.Context(), kerneltest.Call("c", "files.list", `{"path":["Work"]}`))
	turn.InvokeResource(t.Context(), operation("read", "Work"))
	turn.Send(t.Context(), message())
	want := []string{
		"load  succeeded ", "catalog  succeeded ", "invoke files.read succeeded ", "invoke files.list denied tool_unavailable",
		"resource  failed resource_provider_not_configured", "message  failed message_transport_not_configured",
	}
	if diff := cmp.Diff(want, s.seen); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	w.Grants.Err = kerneltest.ErrPort
	_, _ = w.Kernel(t).OpenTurn(t.Context(), w.Context())
	if last := s.seen[len(s.seen)-1]; last != "load  failed authority_unavailable" {
		t.Errorf("last span = %q", last)
	}
}

func TestEveryCodeHasAText(t *testing.T) {
	t.Parallel()
	fallback := kernel.MessageFor("no such code")
	seen := map[string]string{}
	for _, code := range allCodes {
		text := kernel.MessageFor(code)
		if text == fallback || text == "" {
			t.Errorf("%s has no text of its own", code)
		}
		if other, dup := seen[text]; dup {
			t.Errorf("%s and %s share a text", code, other)
		}
		seen[text] = code
	}
	if r := (&kernel.Refusal{Code: "c", Message: "m"}).Error(); r != "c: m" {
		t.Errorf("refusal = %q", r)
	}
	if f := (&kernel.Failure{Err: contract.ProtocolError{Code: "c", Message: "m"}}).Error(); f != "c: m" {
		t.Errorf("failure = %q", f)
	}
}

// allCodes are the codes that the kernel and the envelope answer with.
var allCodes = []string{
	contract.CodeInvalidContext, contract.CodeInvalidRequest, contract.CodeAuthorityUnavailable, contract.CodeUsageStoreUnavailable,
	contract.CodeHostPolicyUnavailable, contract.CodeDelegationChainUnverified, contract.CodeDelegationChainInvalid, contract.CodeHostPolicyDenied,
	contract.CodeGrantExhausted, contract.CodeNoMatchingGrant, contract.CodeToolUnavailable, contract.CodeToolCatalogUnavailable,
	contract.CodeTraceMismatch, contract.CodeInvalidToolArguments, contract.CodeToolRequirementFailed, contract.CodeInvalidToolRequirement,
	contract.CodeToolExecutionFailed, contract.CodeInvalidToolResult, contract.CodeResourceProviderMissing, contract.CodeResourceExecutionFailed,
	contract.CodeInvalidResourceResult, contract.CodeAuditUnavailable, contract.CodeToolNamespacesNotConfigured, contract.CodeToolNamespaceUpdateFailed,
	contract.CodeInvalidToolNamespaceResponse, contract.CodeMessageContextMismatch, contract.CodeMessageTransportMissing, contract.CodeMessageDeliveryFailed,
	contract.CodeInvalidMessageReceipt, contract.CodeMessageRequestNotPrepared, contract.CodeMessageRequestNotAccepted, contract.CodeMessageReplyFailed,
	contract.CodeInvalidMessageReply, contract.CodeActorMismatch, contract.CodeReceiverMismatch, contract.CodeTurnDraining, contract.CodeStepLimitExceeded,
	contract.CodeToolCallLimitExceeded, contract.CodeEscalationPending, contract.CodeEscalationNotTerminated, contract.CodeEscalationNotRecorded,
	contract.CodeTurnEnded, contract.CodeTurnNotStarted, contract.CodeTurnCancelled, contract.CodeRuntimeFailed, contract.CodeInvalidRuntimeOutcome,
	contract.CodeCatalogChanged,
}
