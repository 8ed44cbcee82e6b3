package contract

import "github.com/sharedos-dev/operator/kernel/strictjson"

// Validate implements [Validator].
func (o ResourceOperation) Validate() error {
	var c checks
	c.identifier("operationId", o.OperationID)
	c.nested("resource", o.Resource.Validate())
	c.text("action", o.Action, MaxAction)
	c.value("input", o.Input, false)
	c.object("metadata", o.Metadata, false)
	if o.Context != nil {
		c.nested("context", o.Context.Validate())
	}
	return c.result()
}

// Validate implements [Validator].
func (r ResourceResult) Validate() error {
	var c checks
	c.identifier("operationId", r.OperationID)
	c.answer(r.Status, r.Output, r.Error)
	c.instant("completedAt", r.CompletedAt)
	c.object("metadata", r.Metadata, false)
	return c.result()
}

// Validate implements [Validator].
func (m MessageEnvelope) Validate() error {
	var c checks
	c.version(m.Version)
	c.identifier("id", m.ID)
	c.nested("sender", m.Sender.Validate())
	c.nested("receiver", m.Receiver.Validate())
	c.text("purpose", m.Purpose, MaxPurpose)
	c.value("payload", m.Payload, true)
	c.identifier("traceId", m.TraceID)
	c.instant("createdAt", m.CreatedAt)
	c.optionalIdentifier("replyTo", m.ReplyTo)
	if p := m.Provenance; p != nil {
		c.identifier("provenance.source", p.Source)
		c.texts("provenance.parentIds", p.ParentIDs, 0, MaxListEntries, MaxIdentifier)
		c.object("provenance.metadata", p.Metadata, false)
	}
	return c.result()
}

// Validate implements [Validator].
func (r MessageDeliveryResult) Validate() error {
	var c checks
	c.identifier("messageId", r.MessageID)
	c.instant("timestamp", r.Timestamp)
	switch r.Status {
	case DeliveryAccepted, DeliveryDelivered:
		if r.Error != nil {
			c.fail("error", RuleValue, "must be absent unless denied or failed")
		}
	case DeliveryDenied, DeliveryFailed:
		if r.Error == nil {
			c.fail("error", strictjson.RuleRequired, "is required when denied or failed")
		} else {
			c.nested("error", r.Error.Validate())
		}
	default:
		c.fail("status", RuleValue, "must be accepted, delivered, denied or failed")
	}
	c.object("metadata", r.Metadata, false)
	return c.result()
}

// The statuses of a [MessageDeliveryResult].
const (
	DeliveryAccepted  = "accepted"
	DeliveryDelivered = "delivered"
	DeliveryDenied    = "denied"
	DeliveryFailed    = "failed"
)

// Limits of [ExecutionOptions].
const (
	MaxSteps     = 1000
	MaxToolCalls = 10000
	MaxTimeoutMs = 600000
)

// Validate implements [Validator].
func (o ExecutionOptions) Validate() error {
	var c checks
	c.within("maxSteps", o.MaxSteps, MaxSteps)
	c.within("maxToolCalls", o.MaxToolCalls, MaxToolCalls)
	c.within("timeoutMs", o.TimeoutMs, MaxTimeoutMs)
	return c.result()
}

func (c *checks) within(field string, n *int64, high int64) {
	if n != nil && (*n < 1 || *n > high) {
		c.fail(field, RuleValue, "must be 1 to %d", high)
	}
}

// Validate implements [Validator].
func (r ExecutionRequest) Validate() error {
	var c checks
	c.version(r.Version)
	c.identifier("executionId", r.ExecutionID)
	c.nested("agent", r.Agent.Validate())
	if r.Agent.Kind != KindAgent {
		c.fail("agent.kind", RuleValue, "must be agent")
	}
	if r.Context != nil {
		c.nested("context", r.Context.Validate())
	}
	c.nested("message", r.Message.Validate())
	c.items("tools", len(r.Tools), 0, MaxCatalogueTools)
	for i := range r.Tools {
		if c.err != nil {
			break
		}
		c.nested("tools"+strictjson.Index(i), r.Tools[i].Validate())
	}
	c.value("state", r.State, false)
	if r.Options != nil {
		c.nested("options", r.Options.Validate())
	}
	c.object("metadata", r.Metadata, false)
	return c.result()
}

// Validate implements [Validator].
func (e ExecutionEvent) Validate() error {
	var c checks
	c.version(e.Version)
	c.identifier("eventId", e.EventID)
	c.identifier("executionId", e.ExecutionID)
	c.identifier("traceId", e.TraceID)
	if e.Sequence < 0 {
		c.fail("sequence", RuleValue, "must not be negative")
	}
	if !e.Type.known() {
		c.fail("type", RuleValue, "is not an event type")
	}
	c.object("data", e.Data, true)
	c.instant("occurredAt", e.OccurredAt)
	return c.result()
}

func (t EventType) known() bool {
	switch t {
	case EventTurnStarted, EventToolRequested, EventToolCompleted, EventRuntime, EventTurnCompleted,
		EventTurnEscalated, EventTurnFailed, EventTurnDenied, EventTurnCancelled:
		return true
	default:
		return false
	}
}

// EscalationPending is the only status of an [Escalation].
const EscalationPending = "pending"

// Validate implements [Validator].
func (e Escalation) Validate() error {
	var c checks
	c.length("reason", e.Reason, MaxReason)
	c.nested("reviewer", e.Reviewer.Validate())
	c.instant("requestedAt", e.RequestedAt)
	if e.RequestedAuthority != nil {
		c.nested("requestedAuthority", e.RequestedAuthority.Validate())
	}
	if e.Status != EscalationPending {
		c.fail("status", RuleValue, "must be pending")
	}
	return c.result()
}

// Validate implements [Validator].
func (r ExecutionResult) Validate() error {
	var c checks
	c.version(r.Version)
	c.identifier("executionId", r.ExecutionID)
	c.identifier("traceId", r.TraceID)
	c.ending(r)
	for i := range r.Events {
		if c.err != nil {
			break
		}
		c.nested("events"+strictjson.Index(i), r.Events[i].Validate())
	}
	c.instant("startedAt", r.StartedAt)
	c.instant("completedAt", r.CompletedAt)
	c.object("metadata", r.Metadata, false)
	return c.result()
}

func (c *checks) ending(r ExecutionResult) {
	switch r.Status {
	case StatusSucceeded, StatusDenied, StatusFailed:
		c.answer(r.Status, r.Output, r.Error)
	case StatusCancelled:
		if r.Error != nil {
			c.nested("error", r.Error.Validate())
		}
	case StatusEscalated:
		if r.Escalation == nil {
			c.fail("escalation", strictjson.RuleRequired, "is required when escalated")
			return
		}
		c.nested("escalation", r.Escalation.Validate())
		if r.Error != nil {
			c.fail("error", RuleValue, "must be absent when escalated")
		}
	default:
		c.fail("status", RuleValue, "is not a turn's status")
	}
	if r.Status != StatusEscalated && r.Escalation != nil {
		c.fail("escalation", RuleValue, "must be absent unless escalated")
	}
	if r.Status != StatusSucceeded && len(r.Output) > 0 {
		c.fail("output", RuleValue, "must be absent unless succeeded")
	}
}
