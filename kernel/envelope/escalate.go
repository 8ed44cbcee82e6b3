package envelope

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// escalationNote tells the harness what its asking did.
const escalationNote = "A human will decide. This turn has ended by asking: no further call runs on it, and nothing was granted."

// Escalate latches the turn as asking for a human, as a call to sharedos.escalate
// does. Its error is a [*kernel.Refusal].
func (x *Execution) Escalate(ctx context.Context, ask Ask) error {
	if !ask.valid() {
		return refusal(contract.CodeInvalidToolArguments)
	}
	return x.ask(ctx, ask, "")
}

func (a *Ask) valid() bool {
	return a.Reason != "" && utf8.ValidString(a.Reason) &&
		(a.RequestedAuthority == nil || a.RequestedAuthority.Validate() == nil)
}

// pending is the escalation the turn has made, if any.
func (x *Execution) pending() *contract.Escalation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.escalation
}

// askedByCall answers a call to sharedos.escalate. It never reaches the kernel.
func (x *Execution) askedByCall(ctx context.Context, call contract.ToolCall) contract.ToolResult {
	if call.ValidateFrame() != nil {
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeInvalidRequest, true)
	}
	if call.TraceID != x.ac.TraceID {
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeTraceMismatch, true)
	}
	ask, ok := x.askOf(call)
	if !ok {
		return x.refuse(ctx, call, contract.StatusFailed, contract.CodeInvalidToolArguments, true)
	}
	if err := x.ask(ctx, ask, call.ID); err != nil {
		if codeOf(err) == contract.CodeEscalationPending {
			return x.refuse(ctx, call, contract.StatusDenied, contract.CodeEscalationPending, true)
		}
		return x.refuse(ctx, call, contract.StatusFailed, codeOf(err), true)
	}
	output, err := json.Marshal(map[string]any{"escalated": true, "reason": cut(ask.Reason, contract.MaxReason), "note": escalationNote})
	if err != nil {
		output = []byte(`{"escalated":true}`) // unreachable: strings always encode
	}
	return x.completed(ctx, kernel.Report{Result: contract.ToolResult{
		CallID: call.ID, Tool: call.Tool, Status: contract.StatusSucceeded, Output: output, CompletedAt: x.now(),
	}}, nil, true)
}

func (x *Execution) askOf(call contract.ToolCall) (Ask, bool) {
	args, err := kernel.ParseArguments(call.Arguments)
	if err != nil || !x.catalog.ValidArguments(contract.EscalateTool, args) {
		return Ask{}, false
	}
	var wire struct {
		Reason             string                          `json:"reason"`
		RequestedAuthority *contract.CapabilityRequirement `json:"requestedAuthority,omitempty"`
	}
	if args.Decode(&wire) != nil {
		return Ask{}, false
	}
	ask := Ask{Reason: wire.Reason, RequestedAuthority: wire.RequestedAuthority}
	return ask, ask.valid()
}

// latch is an escalation that is being recorded and persisted. From the moment it
// exists no other call runs.
type latch struct {
	recorded chan struct{} // closed once the record is kept, or is known not to be
	kept     bool          // whether it is; read after recorded
	cancel   context.CancelFunc
}

// ask records and persists the escalation; only a failure of that undoes it. The
// caller's going away does not: what it asked for stands.
func (x *Execution) ask(ctx context.Context, ask Ask, callID string) error {
	x.mu.Lock()
	code := x.shut()
	switch {
	case code != "":
	case x.escalation != nil || x.latch != nil:
		code = contract.CodeEscalationPending
	case !x.catalog.Has(contract.EscalateTool):
		code = contract.CodeToolUnavailable
	}
	if code != "" {
		x.mu.Unlock()
		return refusal(code)
	}
	persistCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	l := &latch{recorded: make(chan struct{}), cancel: cancel}
	x.latch = l
	x.mu.Unlock()

	e := x.escalationOf(ask)
	l.kept = x.recordEscalation(context.WithoutCancel(ctx), e, callID) == nil
	x.mu.Lock()
	if l.kept {
		x.escalation = e
	} else {
		x.latch = nil
	}
	close(l.recorded)
	x.mu.Unlock()
	if !l.kept {
		x.end(ctx, *failedBy(contract.CodeAuditUnavailable))
		return refusal(contract.CodeAuditUnavailable)
	}
	return x.persist(persistCtx, e)
}

// persist hands the escalation to the host; a checkpoint holds it by now. A turn
// that ends meanwhile keeps it: its ending is persisted with it.
func (x *Execution) persist(ctx context.Context, e *contract.Escalation) error {
	var err error
	if hook := x.env.opts.OnEscalation; hook != nil {
		err = hook(ctx, x.req.ExecutionID, *e)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.latch = nil
	if err == nil || x.closed {
		return nil
	}
	x.escalation = nil
	return refusal(contract.CodeEscalationNotRecorded)
}

func (x *Execution) escalationOf(ask Ask) *contract.Escalation {
	now := x.now()
	e := &contract.Escalation{
		Reason: cut(ask.Reason, contract.MaxReason), Reviewer: x.ac.Authority,
		RequestedAt: now, Status: contract.EscalationPending,
	}
	if need := ask.RequestedAuthority; need != nil {
		described, err := contract.DescribeAuthority(contract.CapabilityRequest{
			NamespaceID: x.ac.NamespaceID, Requester: x.ac.Actor, Owner: x.ac.Owner,
			Capabilities: []contract.Capability{{
				Resource: need.Resource, Actions: []string{need.Action}, Scope: contract.ScopeExact,
			}},
			Purpose: x.ac.Purpose, RequestedAt: now,
		})
		if err == nil {
			e.RequestedAuthority = &described
		}
	}
	return e
}

func (x *Execution) recordEscalation(ctx context.Context, e *contract.Escalation, callID string) error {
	return x.turn.Record(ctx, audit.Event{
		Type: audit.EscalationRequested, Outcome: audit.Escalated, Tool: contract.EscalateTool, OperationID: callID,
		Source: audit.SourceEnvelope, RequestedAuthority: e.RequestedAuthority, AuthorityHash: x.turn.AuthorityHash(),
	})
}

// cut shortens s to n code points.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if n == 0 {
			break
		}
		b.WriteRune(r)
		n--
	}
	return b.String()
}

func refusal(code string) *kernel.Refusal {
	return &kernel.Refusal{Code: code, Message: kernel.MessageFor(code)}
}
