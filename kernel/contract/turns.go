package contract

// ResourceOperation asks a resource provider for one operation. On the public
// HTTP API it travels without Context.
type ResourceOperation struct {
	OperationID string         `json:"operationId"`
	Resource    ResourceRef    `json:"resource"`
	Action      string         `json:"action"`
	Input       Value          `json:"input,omitempty"`
	Metadata    Object         `json:"metadata,omitempty"`
	Context     *AccessContext `json:"context,omitempty"`
}

// ResourceResult answers one [ResourceOperation].
type ResourceResult struct {
	OperationID string         `json:"operationId"`
	Status      Status         `json:"status"`
	Output      Value          `json:"output,omitempty"`
	Error       *ProtocolError `json:"error,omitempty"`
	CompletedAt Timestamp      `json:"completedAt"`
	Metadata    Object         `json:"metadata,omitempty"`
}

// Provenance says where a message came from.
type Provenance struct {
	Source    string   `json:"source"`
	ParentIDs []string `json:"parentIds"`
	Metadata  Object   `json:"metadata,omitempty"`
}

// MessageEnvelope carries one message. Messages coordinate; they never carry authority.
type MessageEnvelope struct {
	Version    string      `json:"version"`
	ID         string      `json:"id"`
	Sender     Address     `json:"sender"`
	Receiver   Address     `json:"receiver"`
	Purpose    string      `json:"purpose"`
	Payload    Value       `json:"payload"`
	TraceID    string      `json:"traceId"`
	CreatedAt  Timestamp   `json:"createdAt"`
	ReplyTo    string      `json:"replyTo,omitempty"`
	Provenance *Provenance `json:"provenance,omitempty"`
}

// MessageDeliveryResult is a transport's receipt.
type MessageDeliveryResult struct {
	MessageID string         `json:"messageId"`
	Timestamp Timestamp      `json:"timestamp"`
	Status    string         `json:"status"` // accepted, delivered, denied, failed
	Error     *ProtocolError `json:"error,omitempty"`
	Metadata  Object         `json:"metadata,omitempty"`
}

// ExecutionOptions bound one turn: validated, never clamped.
type ExecutionOptions struct {
	MaxSteps     *int64 `json:"maxSteps,omitempty"`     // 1..1000
	MaxToolCalls *int64 `json:"maxToolCalls,omitempty"` // 1..10000
	TimeoutMs    *int64 `json:"timeoutMs,omitempty"`    // 1..600000
}

// ExecutionRequest asks for one turn. On the public HTTP API it travels without
// Context and Tools.
type ExecutionRequest struct {
	Version     string            `json:"version"`
	ExecutionID string            `json:"executionId"`
	Agent       Address           `json:"agent"`
	Context     *AccessContext    `json:"context,omitempty"`
	Message     MessageEnvelope   `json:"message"`
	Tools       []ToolDefinition  `json:"tools,omitempty"`
	State       Value             `json:"state,omitempty"`
	Options     *ExecutionOptions `json:"options,omitempty"`
	Metadata    Object            `json:"metadata,omitempty"`
}

// EventType is one of the nine lifecycle events.
type EventType string

// The nine event types.
const (
	EventTurnStarted   EventType = "turn.started"
	EventToolRequested EventType = "tool.requested"
	EventToolCompleted EventType = "tool.completed"
	EventRuntime       EventType = "runtime.event"
	EventTurnCompleted EventType = "turn.completed"
	EventTurnEscalated EventType = "turn.escalated"
	EventTurnFailed    EventType = "turn.failed"
	EventTurnDenied    EventType = "turn.denied"
	EventTurnCancelled EventType = "turn.cancelled"
)

// ExecutionEvent is one entry of a turn's record; Sequence has no gaps.
type ExecutionEvent struct {
	Version     string    `json:"version"`
	EventID     string    `json:"eventId"`
	ExecutionID string    `json:"executionId"`
	TraceID     string    `json:"traceId"`
	Sequence    int64     `json:"sequence"`
	Type        EventType `json:"type"`
	Data        Object    `json:"data"`
	OccurredAt  Timestamp `json:"occurredAt"`
}

// Escalation is a turn's request for a human's decision.
type Escalation struct {
	Reason             string             `json:"reason"`
	Reviewer           Address            `json:"reviewer"`
	RequestedAt        Timestamp          `json:"requestedAt"`
	RequestedAuthority *CapabilityRequest `json:"requestedAuthority,omitempty"`
	Status             string             `json:"status"` // "pending"
}

// ExecutionResult is how one turn ended, with its whole record.
type ExecutionResult struct {
	Version     string           `json:"version"`
	ExecutionID string           `json:"executionId"`
	TraceID     string           `json:"traceId"`
	Status      Status           `json:"status"`
	Output      Value            `json:"output,omitempty"`
	Error       *ProtocolError   `json:"error,omitempty"`
	Escalation  *Escalation      `json:"escalation,omitempty"`
	Events      []ExecutionEvent `json:"events"`
	StartedAt   Timestamp        `json:"startedAt"`
	CompletedAt Timestamp        `json:"completedAt"`
	Metadata    Object           `json:"metadata,omitempty"`
}
