package envelope

import (
	"context"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Invoke runs one call inside the turn. A nil step declares none: the call is then
// bounded by the number of calls alone. A refusal by a budget is an ordinary denied
// result; the turn goes on.
func (x *Execution) Invoke(ctx context.Context, call contract.ToolCall, step *int64) contract.ToolResult {
	x.mu.Lock()
	if code := x.shut(); code != "" {
		x.mu.Unlock()
		return x.late(ctx, call, code)
	}
	x.requested(&call, step)
	if x.escalation != nil || x.escalating {
		x.usage.CallsAfterEscalation++
		x.mu.Unlock()
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeEscalationPending)
	}
	if call.Tool == contract.EscalateTool && x.catalog.Has(contract.EscalateTool) {
		x.mu.Unlock()
		return x.askedByCall(ctx, call)
	}
	if code := x.budget(step); code != "" {
		x.mu.Unlock()
		return x.refuse(ctx, call, contract.StatusDenied, code)
	}
	if !x.catalog.Has(call.Tool) {
		x.mu.Unlock()
		return x.refuse(ctx, call, contract.StatusDenied, contract.CodeToolUnavailable)
	}
	handlerCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	running := &runningCall{cancel: cancel, repeatable: x.catalog.Repeatable(call.Tool)}
	x.running[running] = struct{}{}
	x.mu.Unlock()

	report := x.turn.Call(handlerCtx, call)
	return x.completed(ctx, report, running)
}

// shut reports why no call is taken at all. The caller holds the lock.
func (x *Execution) shut() string {
	switch {
	case x.closed:
		return contract.CodeTurnEnded
	case x.startedAt == nil:
		return contract.CodeTurnNotStarted
	default:
		return ""
	}
}

// requested emits tool.requested. The caller holds the lock.
func (x *Execution) requested(call *contract.ToolCall, step *int64) {
	data := map[string]any{"callId": call.ID, "tool": call.Tool}
	if step != nil {
		data["step"] = *step
	}
	x.emit(contract.EventToolRequested, data)
}

// budget spends one call and its step, or says what is used up. The caller holds
// the lock.
func (x *Execution) budget(step *int64) string {
	if x.draining {
		return contract.CodeTurnDraining
	}
	if step != nil {
		_, seen := x.steps[*step]
		if *step < 0 || *step >= x.limits.steps || (!seen && int64(len(x.steps)) >= x.limits.steps) {
			return contract.CodeStepLimitExceeded
		}
	}
	if x.usage.ToolCalls >= x.limits.calls {
		return contract.CodeToolCallLimitExceeded
	}
	x.usage.ToolCalls++
	if step != nil {
		x.steps[*step] = struct{}{}
	}
	return ""
}

// refuse answers a call that does not reach the kernel, and records it.
func (x *Execution) refuse(ctx context.Context, call contract.ToolCall, status contract.Status, code string) contract.ToolResult {
	failure := errorFor(code)
	report := x.turn.Refuse(ctx, call, status, *failure)
	return x.completed(ctx, report, nil)
}

// late answers a call outside the turn's life: it is recorded, but a record that
// is closed takes no event.
func (x *Execution) late(ctx context.Context, call contract.ToolCall, code string) contract.ToolResult {
	failure := errorFor(code)
	if x.turn == nil {
		return contract.ToolResult{
			CallID: call.ID, Tool: call.Tool, Status: contract.StatusDenied, Error: failure, CompletedAt: x.now(),
		}
	}
	return x.turn.Refuse(ctx, call, contract.StatusDenied, *failure).Result
}

// completed takes an answer into the record, unless the turn has ended meanwhile:
// a late result is discarded.
func (x *Execution) completed(ctx context.Context, report kernel.Report, running *runningCall) contract.ToolResult {
	x.mu.Lock()
	delete(x.running, running)
	if x.closed {
		x.mu.Unlock()
		return x.discarded(&report.Result)
	}
	result := &report.Result
	data := map[string]any{"callId": result.CallID, "tool": result.Tool, "status": result.Status}
	if result.Error != nil {
		data["code"] = result.Error.Code
	}
	x.emit(contract.EventToolCompleted, data)
	if result.Status == contract.StatusDenied {
		x.usage.Denied++
	} else if running != nil && !running.repeatable {
		x.unsafe = true
	}
	x.mu.Unlock()
	if report.AuditFailed {
		x.end(ctx, *failedBy(sourceEnvelope, contract.CodeAuditUnavailable))
	}
	return *result
}

func (x *Execution) discarded(r *contract.ToolResult) contract.ToolResult {
	return contract.ToolResult{
		CallID: r.CallID, Tool: r.Tool, Status: contract.StatusFailed,
		Error: errorFor(contract.CodeTurnEnded), CompletedAt: x.now(),
	}
}

// errorFor is the fixed text of a code the envelope answers with.
func errorFor(code string) *contract.ProtocolError {
	e := &contract.ProtocolError{Code: code, Message: kernel.MessageFor(code)}
	switch code {
	case contract.CodeEscalationPending, contract.CodeTurnEnded, contract.CodeToolCallLimitExceeded,
		contract.CodeStepLimitExceeded, contract.CodeTurnDraining:
		no := false
		e.Retryable = &no
	}
	return e
}
