package envelope

import (
	"context"
	"encoding/json"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Who ended a turn; audit only.
const (
	endedByRuntime  = "runtime"
	endedByEnvelope = "envelope"
	endedByDeadline = "deadline"
	endedByHost     = "host"
)

// Sources of turn.failed.
const (
	sourceRuntime  = "runtime"
	sourceEnvelope = "envelope"
)

// ending is one row of the endings table.
type ending struct {
	status   contract.Status
	output   contract.Value
	failure  *contract.ProtocolError
	source   string // of a failure
	by       string
	required *contract.CapabilityRequest
	reason   string // of a cancellation
	metadata contract.Object
}

func deniedWith(code string) *ending {
	return &ending{status: contract.StatusDenied, failure: errorFor(code), by: endedByEnvelope}
}

func failedBy(code string) *ending {
	return &ending{status: contract.StatusFailed, failure: errorFor(code), source: sourceEnvelope, by: endedByEnvelope}
}

func cancelledBy(who, reason string) ending {
	return ending{
		status: contract.StatusCancelled, failure: errorFor(contract.CodeTurnCancelled), by: who, reason: reason,
	}
}

// Finish ends the turn with the runtime's outcome and returns the result. A turn
// that has ended already keeps the ending it has.
func (x *Execution) Finish(ctx context.Context, o Outcome) contract.ExecutionResult {
	return x.end(ctx, x.judge(ctx, &o))
}

// Cancel ends the turn by the host's decision. The reason is for the record and
// must not carry secrets.
func (x *Execution) Cancel(ctx context.Context, reason string) contract.ExecutionResult {
	return x.end(ctx, cancelledBy(endedByHost, reason))
}

// Fail ends the turn with a failure that the host of the runtime established, such
// as harness_not_started. A malformed one becomes runtime_failed.
func (x *Execution) Fail(ctx context.Context, failure contract.ProtocolError) contract.ExecutionResult {
	end := failedBy(contract.CodeRuntimeFailed)
	if failure.Validate() == nil {
		end.failure = &failure
	}
	return x.end(ctx, *end)
}

// judge turns a runtime's outcome into an ending.
func (x *Execution) judge(ctx context.Context, o *Outcome) ending {
	if !wellFormed(o) {
		return *failedBy(contract.CodeInvalidRuntimeOutcome)
	}
	switch o.Kind {
	case OutcomeCompleted:
		return ending{status: contract.StatusSucceeded, output: o.Output, by: endedByRuntime, metadata: o.Metadata}
	case OutcomeFailed:
		failure := *o.Error
		return ending{
			status: contract.StatusFailed, failure: &failure, source: sourceRuntime, by: endedByRuntime, metadata: o.Metadata,
		}
	default:
		return x.judgeEscalation(ctx, o)
	}
}

func (x *Execution) judgeEscalation(ctx context.Context, o *Outcome) ending {
	if x.pending() == nil {
		err := x.ask(ctx, *o.Escalation, "")
		if err != nil && codeOf(err) != contract.CodeEscalationPending {
			return *failedBy(codeOf(err))
		}
	}
	return ending{status: contract.StatusEscalated, by: endedByRuntime, metadata: o.Metadata}
}

// wellFormed checks that exactly the field of the kind is set, and is valid.
func wellFormed(o *Outcome) bool {
	if len(o.Metadata) > 0 {
		if node, err := strictjson.Parse(o.Metadata); err != nil || node.Kind != strictjson.Object {
			return false
		}
	}
	switch o.Kind {
	case OutcomeCompleted:
		return o.Error == nil && o.Escalation == nil && strictjson.Check(o.Output) == nil
	case OutcomeFailed:
		return o.Output == nil && o.Escalation == nil && o.Error != nil && o.Error.Validate() == nil
	case OutcomeEscalate:
		return o.Output == nil && o.Error == nil && o.Escalation != nil && o.Escalation.valid()
	default:
		return false
	}
}

// end closes everything the runtime was handed, records the ending and publishes
// the result. Only the first ending counts; others wait for it.
func (x *Execution) end(ctx context.Context, e ending) contract.ExecutionResult {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		<-x.done
		return x.result
	}
	x.closed = true
	for _, stop := range x.stops {
		stop()
	}
	for call := range x.running {
		x.unsafe = x.unsafe || !call.repeatable
		call.cancel()
	}
	if l := x.latch; l != nil { // it asked and left: whether it asked is on record
		x.mu.Unlock()
		<-l.recorded
		x.mu.Lock()
		l.cancel()
		if !l.kept {
			e = *failedBy(contract.CodeAuditUnavailable)
		}
	}
	e, harness := x.escalated(e)
	retryable := !x.unsafe
	x.mu.Unlock()

	e = x.recordEnding(context.WithoutCancel(ctx), e)

	x.mu.Lock()
	defer x.mu.Unlock()
	x.finalEvent(&e, retryable)
	x.result = x.resultOf(&e, retryable, harness)
	close(x.done)
	return x.result
}

// escalated replaces the ending of a turn that asked for a human: how its harness
// wound down is kept beside it. The caller holds the lock.
func (x *Execution) escalated(e ending) (ending, map[string]any) {
	if e.status == contract.StatusEscalated && x.escalation == nil { // undone meanwhile
		return *failedBy(contract.CodeEscalationNotRecorded), nil
	}
	if x.escalation == nil || (e.failure != nil && e.failure.Code == contract.CodeAuditUnavailable) {
		return e, nil
	}
	if e.status == contract.StatusEscalated {
		return e, nil
	}
	harness := map[string]any{"status": e.status}
	if e.failure != nil {
		harness["code"] = e.failure.Code
		if len(e.failure.Details) > 0 {
			harness["details"] = e.failure.Details
		}
	}
	if e.output != nil {
		harness["output"] = e.output
	}
	return ending{status: contract.StatusEscalated, by: e.by, metadata: e.metadata}, harness
}

// recordEnding writes turn.ended. A turn whose ending cannot be recorded failed.
func (x *Execution) recordEnding(ctx context.Context, e ending) ending {
	if x.ac.Validate() != nil {
		return e // nobody to record it for
	}
	event := audit.Event{
		Type: audit.TurnEnded, Outcome: audit.Outcome(e.status), OperationID: x.req.ExecutionID,
		Source: audit.SourceEnvelope, EndedBy: e.by, Cause: e.reason, RequestedAuthority: e.required,
	}
	if e.status == contract.StatusCancelled {
		event.Outcome = audit.Failed
	}
	if e.failure != nil {
		event.Reason = e.failure.Code
	}
	if x.turn != nil {
		event.AuthorityHash = x.turn.AuthorityHash()
	}
	if x.catalog != nil {
		event.CatalogHash = x.catalog.Hash()
	}
	if err := x.env.k.Record(ctx, x.ac, event); err != nil {
		return *failedBy(contract.CodeAuditUnavailable)
	}
	return e
}

// finalEvent emits the one event of the ending. The caller holds the lock.
func (x *Execution) finalEvent(e *ending, retryable bool) {
	data := map[string]any{}
	if e.failure != nil {
		data["code"] = e.failure.Code
	}
	switch e.status {
	case contract.StatusSucceeded:
		x.emit(contract.EventTurnCompleted, data)
	case contract.StatusDenied:
		x.emit(contract.EventTurnDenied, data)
	case contract.StatusFailed:
		data["source"], data["retryable"] = e.source, retryable
		x.emit(contract.EventTurnFailed, data)
	case contract.StatusCancelled:
		data["reason"], data["retryable"] = e.by, retryable
		x.emit(contract.EventTurnCancelled, data)
	case contract.StatusEscalated:
		data["status"] = contract.EscalationPending
		x.emit(contract.EventTurnEscalated, data)
	}
}

func (x *Execution) resultOf(e *ending, retryable bool, harness map[string]any) contract.ExecutionResult {
	r := contract.ExecutionResult{
		Version: contract.Version, ExecutionID: x.req.ExecutionID, TraceID: x.ac.TraceID, Status: e.status,
		Output: e.output, Events: x.events, StartedAt: x.openedAt, CompletedAt: x.now(),
	}
	if x.startedAt != nil {
		r.StartedAt = *x.startedAt
	}
	if e.failure != nil {
		failure := *e.failure
		if e.status != contract.StatusDenied {
			failure.Retryable = &retryable
		}
		r.Error = &failure
	}
	if e.status == contract.StatusEscalated {
		r.Escalation = x.escalation
	}
	r.Metadata = x.metadata(e, harness)
	return r
}

func (x *Execution) metadata(e *ending, harness map[string]any) contract.Object {
	m := map[string]any{}
	if harness != nil {
		m["harnessOutcome"] = harness
	}
	if x.escalation != nil {
		m["callsAfterEscalation"] = x.usage.CallsAfterEscalation
	}
	if len(e.metadata) > 0 {
		m["runtime"] = e.metadata
	}
	if len(m) == 0 {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}
