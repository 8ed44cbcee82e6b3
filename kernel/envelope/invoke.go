package envelope

import (
	"bytes"
	"context"
	"strconv"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/canonical"
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
	asks := call.Tool == contract.EscalateTool && x.catalog.Has(contract.EscalateTool)
	code := x.admit(&call, step, asks)
	listed := x.list(&call, step, code != "" || asks)
	switch {
	case code == "" && asks && listed:
		x.mu.Unlock()
		return x.askedByCall(ctx, call)
	case code == "" && asks:
		code = contract.CodeToolCallLimitExceeded
	}
	if code != "" {
		x.mu.Unlock()
		return x.refuse(ctx, call, contract.StatusDenied, code, listed)
	}
	handlerCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	running := &runningCall{cancel: cancel, repeatable: x.catalog.Repeatable(call.Tool)}
	x.running[running] = struct{}{}
	x.mu.Unlock()

	report := x.turn.Call(handlerCtx, call)
	return x.completed(ctx, report, running, true)
}

// admit is why the envelope refuses a call, or nothing. The caller holds the lock.
func (x *Execution) admit(call *contract.ToolCall, step *int64, asks bool) string {
	if x.escalation != nil || x.latch != nil {
		x.usage.CallsAfterEscalation++
		return contract.CodeEscalationPending
	}
	if asks {
		return "" // asking is not a step of the work and costs no budget
	}
	if code := x.budget(step); code != "" {
		return code
	}
	if !x.catalog.Has(call.Tool) {
		return contract.CodeToolUnavailable
	}
	return ""
}

// list takes a call into the turn's events and reports whether it did: what never
// reaches the kernel costs no budget, so a harness could fill memory with it. The
// caller holds the lock.
func (x *Execution) list(call *contract.ToolCall, step *int64, bounded bool) bool {
	if bounded {
		if x.refused >= MaxRefusals {
			return false
		}
		x.refused++
	}
	x.requested(call, step)
	return true
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
	data := appendText(append(x.scratch[:0], '{'), "callId", call.ID)
	if step != nil {
		data = strconv.AppendInt(append(data, `,"step":`...), *step, 10)
	}
	data = append(appendText(append(data, ','), "tool", call.Tool), '}')
	x.scratch = data
	x.emitRaw(contract.EventToolRequested, bytes.Clone(data))
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
func (x *Execution) refuse(ctx context.Context, call contract.ToolCall, status contract.Status, code string, listed bool) contract.ToolResult {
	failure := errorFor(code)
	report := x.turn.Refuse(ctx, call, status, *failure)
	return x.completed(ctx, report, nil, listed)
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
func (x *Execution) completed(ctx context.Context, report kernel.Report, running *runningCall, listed bool) contract.ToolResult {
	x.mu.Lock()
	delete(x.running, running)
	if x.closed {
		x.mu.Unlock()
		return x.discarded(&report.Result)
	}
	result := &report.Result
	if listed {
		x.emitCompleted(result)
	}
	if result.Status == contract.StatusDenied {
		x.usage.Denied++
		x.keepDenied(&report)
	} else if running != nil && !running.repeatable {
		x.unsafe = true
	}
	x.mu.Unlock()
	if report.AuditFailed {
		x.end(ctx, *failedBy(contract.CodeAuditUnavailable))
	}
	return *result
}

func (x *Execution) emitCompleted(r *contract.ToolResult) {
	data := appendText(append(x.scratch[:0], '{'), "callId", r.CallID)
	if r.Error != nil {
		data = appendText(append(data, ','), "code", r.Error.Code)
	}
	data = appendText(append(data, ','), "status", string(r.Status))
	data = append(appendText(append(data, ','), "tool", r.Tool), '}')
	x.scratch = data
	x.emitRaw(contract.EventToolCompleted, bytes.Clone(data))
}

// appendText appends a member whose value a caller may have chosen. Two events of
// every call are written this way.
func appendText(dst []byte, name, value string) []byte {
	dst = append(canonical.AppendString(dst, name), ':')
	return canonical.AppendString(dst, boundedText(value))
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
