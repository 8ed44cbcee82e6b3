// Package audit defines the operator's own record: one event per fact, never
// shown to a caller, and the sinks that keep it.
package audit

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Type is the kind of fact an [Event] records.
type Type string

// Every event type.
const (
	AuthorityResolved    Type = "authority.resolved"
	AuthorizationChecked Type = "authorization.checked"
	EscalationRequested  Type = "escalation.requested"
	ResourceInvoked      Type = "resource.invoked"
	ToolInvoked          Type = "tool.invoked"
	MessageSent          Type = "message.sent"
	ToolCatalogListed    Type = "tool.catalog.listed"
	NamespacesListed     Type = "tool.namespace.catalog.listed"
	NamespacesUpdated    Type = "tool.namespace.selection.updated"
	TurnEnded            Type = "turn.ended"
)

// Outcome is how the recorded fact came out.
type Outcome string

// Every outcome.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Escalated Outcome = "escalated"
)

// Source says who refused or recorded.
type Source string

// The sources.
const (
	SourceKernel   Source = "kernel"
	SourceEnvelope Source = "envelope"
)

// RejectedGrant is one grant that did not allow, and its first failing condition.
type RejectedGrant struct {
	GrantID string `json:"grantId"`
	Reason  string `json:"reason"`
}

// Event is one fact. Arguments, outputs, payloads, tokens and credentials never
// appear in it. The fields after Purpose are set where they apply.
type Event struct {
	Version     string             `json:"version"`
	ID          string             `json:"id"`
	Type        Type               `json:"type"`
	Outcome     Outcome            `json:"outcome"`
	At          contract.Timestamp `json:"at"`
	TraceID     string             `json:"traceId"`
	NamespaceID string             `json:"namespaceId"`
	Actor       contract.Address   `json:"actor"`
	Authority   contract.Address   `json:"authority"`
	Owner       contract.Address   `json:"owner"`
	Purpose     string             `json:"purpose"`

	Resource      *contract.ResourceRef `json:"resource,omitempty"`
	Action        string                `json:"action,omitempty"`
	GrantID       string                `json:"grantId,omitempty"`
	AuthorityHash string                `json:"authorityHash,omitempty"`
	CatalogHash   string                `json:"catalogHash,omitempty"`
	OperationID   string                `json:"operationId,omitempty"`
	Tool          string                `json:"tool,omitempty"`
	MessageID     string                `json:"messageId,omitempty"`
	Receiver      *contract.Address     `json:"receiver,omitempty"`
	// Reason is the code the caller got; Cause is which situation it stood for.
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Source Source `json:"source,omitempty"`
	// FailClosed marks a denial by infrastructure rather than by policy.
	FailClosed bool `json:"failClosed,omitempty"`
	// Consumed is true when a bounded use was spent.
	Consumed bool `json:"consumed,omitempty"`
	// EndedBy is runtime, envelope, deadline or host.
	EndedBy            string                      `json:"endedBy,omitempty"`
	RequestedAuthority *contract.CapabilityRequest `json:"requestedAuthority,omitempty"`
	RejectedGrants     []RejectedGrant             `json:"rejectedGrants,omitempty"`
	// GrantsResolved is how many grants the context held; nil when it does not apply.
	GrantsResolved *int `json:"grantsResolved,omitempty"`
	// MissingDependency is usageStore or delegationResolver.
	MissingDependency string          `json:"missingDependency,omitempty"`
	Metadata          contract.Object `json:"metadata,omitempty"`
}

// Sink keeps events. Record returns nil only once the event is kept as firmly as
// the sink can; the effect an event allows waits for that.
type Sink interface {
	Record(ctx context.Context, e Event) error
}

// Deferrer is a Sink that can also take an event in order without waiting for it
// to be kept. A later Record that returns nil vouches for everything deferred
// before it. The kernel uses it for facts that follow an effect inside a turn.
type Deferrer interface {
	Sink
	Defer(ctx context.Context, e Event) error
}
