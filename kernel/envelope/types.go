package envelope

import (
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Request is the sanitised request: who and what, never with whose authority.
type Request struct {
	ExecutionID string
	NamespaceID string
	Agent       contract.Address
	Owner       contract.Address
	Purpose     string
	TraceID     string
	Message     contract.MessageEnvelope
	State       contract.Value
	Catalogue   contract.Catalogue
	// Reach describes where the offered tools may operate; it permits nothing.
	Reach    contract.ReachResult
	MaxSteps int64
	MaxCalls int64
	Timeout  time.Duration
}

// OutcomeKind is how a runtime says it ended.
type OutcomeKind string

// The kinds.
const (
	OutcomeCompleted OutcomeKind = "completed"
	OutcomeFailed    OutcomeKind = "failed"
	OutcomeEscalate  OutcomeKind = "escalate"
)

// Outcome is what a runtime ended with. Exactly the field of its kind is set.
type Outcome struct {
	Kind OutcomeKind
	// Output belongs to completed: any JSON value.
	Output contract.Value
	// Error belongs to failed.
	Error *contract.ProtocolError
	// Escalation belongs to escalate.
	Escalation *Ask
	// Metadata is an optional JSON object kept in the result's metadata as "runtime".
	Metadata contract.Object
}

// Ask is a request for a human's decision.
type Ask struct {
	// Reason is at least one character; more than 512 are cut.
	Reason string
	// RequestedAuthority is the resource and action it would need, if it said.
	RequestedAuthority *contract.CapabilityRequirement
}

// Admission is what opening a turn established.
type Admission struct {
	At            contract.Timestamp   `json:"at"`
	AuthorityHash string               `json:"authorityHash"`
	Grants        []kernel.GrantRef    `json:"grants"`
	CatalogHash   string               `json:"catalogHash"`
	ToolCount     int                  `json:"toolCount"`
	Reach         contract.ReachResult `json:"reach"`
}

// Usage counts a turn's calls.
type Usage struct {
	// ToolCalls counts the calls that were within the budgets.
	ToolCalls int64 `json:"toolCalls"`
	// Denied counts the calls answered denied, by the envelope or the kernel.
	Denied               int64 `json:"denied"`
	CallsAfterEscalation int64 `json:"callsAfterEscalation"`
}

// Checkpoint is what another process needs to continue a turn.
type Checkpoint struct {
	ExecutionID string    `json:"executionId"`
	Admission   Admission `json:"admission"`
	// StartedAt is absent if the turn was not started.
	StartedAt *contract.Timestamp `json:"startedAt,omitempty"`
	Usage     Usage               `json:"usage"`
	// Denied are the first [MaxDeniedCalls] calls that were denied.
	Denied []DeniedCall `json:"denied,omitempty"`
	// Steps are the distinct steps seen, ascending.
	Steps []int64 `json:"steps,omitempty"`
	// Unsafe is true once a call that must not be repeated came back anything but
	// denied, or was running.
	Unsafe     bool                      `json:"unsafe,omitempty"`
	Escalation *contract.Escalation      `json:"escalation,omitempty"`
	Events     []contract.ExecutionEvent `json:"events,omitempty"`
	// NextSequence is the sequence of the next event.
	NextSequence int64 `json:"nextSequence"`
}
