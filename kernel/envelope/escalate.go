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
	return x.latch(ctx, ask, "")
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
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeInvalidRequest)
	}
	if call.TraceID != x.ac.TraceID {
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeTraceMismatch)
	}
	ask, ok := x.askOf(call)
	if !ok {
		return x.refuse(ctx, call, contract.StatusFailed, contract.CodeInvalidToolArguments)
	}
	if err := x.latch(ctx, ask, call.ID); err != nil {
		if codeOf(err) == contract.CodeEscalationPending {
			return x.refuse(ctx, call, contract.StatusDenied, contract.CodeEscalationPending)
		}
		return x.refuse(ctx, call, contract.StatusFailed, codeOf(err))
	}
	output, err := json.Marshal(map[string]any{"escalated": true, "reason": x.pending().Reason, "note": escalationNote})
	if err != nil {
		output = []byte(`{"escalated":true}`) // unreachable: strings always encode
	}
	return x.completed(ctx, kernel.Report{Result: contract.ToolResult{
		CallID: call.ID, Tool: call.Tool, Status: contract.StatusSucceeded, Output: output, CompletedAt: x.now(),
	}}, nil)
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

// latch records and persists the escalation. From the moment it begins no other
// call runs; only a failure to record or persist it undoes that.
func (x *Execution) latch(ctx context.Context, ask Ask, callID string) error {
	x.mu.Lock()
	code := x.shut()
	switch {
	case code != "":
	case x.escalation != nil || x.escalating:
		code = contract.CodeEscalationPending
	case !x.catalog.Has(contract.EscalateTool):
		code = contract.CodeToolUnavailable
	}
	if code != "" {
		x.mu.Unlock()
		return refusal(code)
	}
	x.escalating = true
	x.mu.Unlock()

	e := x.escalationOf(ask)
	if err := x.recordEscalation(ctx, e, callID); err != nil {
		x.unlatch()
		x.end(ctx, *failedBy(sourceEnvelope, contract.CodeAuditUnavailable))
		return refusal(contract.CodeAuditUnavailable)
	}
	x.mu.Lock()
	x.escalation = e
	x.mu.Unlock()
	if persist := x.env.opts.OnEscalation; persist != nil {
		if err := persist(ctx, x.req.ExecutionID, *e); err != nil {
			x.unlatch()
			return refusal(contract.CodeEscalationNotRecorded)
		}
	}
	return nil
}

// unlatch undoes a latch that could not be kept, unless the turn has ended with it.
func (x *Execution) unlatch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.escalation, x.escalating = nil, false
	}
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
