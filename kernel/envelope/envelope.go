// Package envelope is the fixed security boundary around a replaceable runtime.
// It owns one turn's order, budgets, deadline, events and ending; the runtime owns
// the loop. A runtime receives no grant, no issuer and no handle on the kernel.
package envelope

import (
	"context"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Options configure an [Envelope]. The zero value works.
type Options struct {
	// DrainGrace is how long before the deadline new calls are refused.
	DrainGrace time.Duration
	// AfterFunc runs f once d has passed unless stop is called first; the default
	// is [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// OnEscalation persists the latch before the harness is answered. Its error
	// undoes the escalation.
	OnEscalation func(ctx context.Context, executionID string, e contract.Escalation) error
	// OnEvent sees every event as it happens, in order. It must not block.
	OnEvent func(e contract.ExecutionEvent)
}

// Envelope runs turns over one kernel.
type Envelope struct {
	k    *kernel.Kernel
	opts Options
}

// New returns an envelope over k.
func New(k *kernel.Kernel, opts Options) *Envelope { return &Envelope{k: k, opts: opts} }

// Open validates the request, loads authority, admits the turn and resolves its
// catalogue and reach. A turn that was refused comes back already ended. The
// request must carry its context.
func (e *Envelope) Open(ctx context.Context, req contract.ExecutionRequest) *Execution {
	return &Execution{}
}

// Resume reopens a turn that was admitted by another process.
func (e *Envelope) Resume(ctx context.Context, req contract.ExecutionRequest, from Checkpoint) *Execution {
	return &Execution{}
}

// Run is one whole turn of an in-process runtime.
func (e *Envelope) Run(ctx context.Context, req contract.ExecutionRequest, r Runtime) contract.ExecutionResult {
	return contract.ExecutionResult{}
}

// Runtime is a replaceable agent loop.
type Runtime interface {
	Run(ctx context.Context, req Request, host Host) (Outcome, error)
}

// Host is all that a runtime is handed.
type Host interface {
	// Invoke runs one tool call. A nil step declares none.
	Invoke(ctx context.Context, tool string, arguments contract.Object, step *int64) contract.ToolResult
	// Observe records an observation of the runtime's own.
	Observe(data contract.Object)
}

// Request is the sanitised request: who and what, never with whose authority.
type Request struct {
	ExecutionID string
	NamespaceID string
	Agent       contract.Address
	Purpose     string
	TraceID     string
	Message     contract.MessageEnvelope
	State       contract.Value
	Catalogue   contract.Catalogue
	Reach       contract.ReachResult
	MaxSteps    int64
	MaxCalls    int64
	Timeout     time.Duration
}

// OutcomeKind is how a runtime says it ended.
type OutcomeKind string

// The kinds.
const (
	OutcomeCompleted OutcomeKind = "completed"
	OutcomeFailed    OutcomeKind = "failed"
	OutcomeEscalate  OutcomeKind = "escalate"
)

// Outcome is what a runtime ended with.
type Outcome struct {
	Kind OutcomeKind
	// Output belongs to completed: any JSON value.
	Output contract.Value
	// Error belongs to failed.
	Error *contract.ProtocolError
	// Escalation belongs to escalate.
	Escalation *Ask
	// Metadata goes into the result's metadata under "runtime".
	Metadata contract.Object
}

// Ask is a request for a human's decision.
type Ask struct {
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
	ToolCalls            int64 `json:"toolCalls"`
	Denied               int64 `json:"denied"`
	CallsAfterEscalation int64 `json:"callsAfterEscalation"`
}

// Checkpoint is what another process needs to continue a turn.
type Checkpoint struct {
	ExecutionID string             `json:"executionId"`
	Admission   Admission          `json:"admission"`
	StartedAt   contract.Timestamp `json:"startedAt,omitzero"`
	Usage       Usage              `json:"usage"`
	// Steps are the distinct steps seen.
	Steps []int64 `json:"steps,omitempty"`
	// Unsafe is true once a call that cannot be repeated came back anything but denied.
	Unsafe     bool                      `json:"unsafe,omitempty"`
	Escalation *contract.Escalation      `json:"escalation,omitempty"`
	Events     []contract.ExecutionEvent `json:"events,omitempty"`
	// NextSequence is the sequence of the next event.
	NextSequence int64 `json:"nextSequence"`
}

// Execution is one turn. It is safe for concurrent use.
type Execution struct{}

// Ended returns the result once the turn has ended.
func (x *Execution) Ended() (contract.ExecutionResult, bool) { return contract.ExecutionResult{}, true }

// Done is closed when the turn has ended.
func (x *Execution) Done() <-chan struct{} { return nil }

// Admission returns what opening established.
func (x *Execution) Admission() Admission { return Admission{} }

// Catalog returns the effective catalogue.
func (x *Execution) Catalog() contract.Catalogue { return contract.Catalogue{} }

// Request returns the sanitised request.
func (x *Execution) Request() Request { return Request{} }

// Usage returns the counters so far.
func (x *Execution) Usage() Usage { return Usage{} }

// Start records turn.started; the deadline counts from here. A second Start does nothing.
func (x *Execution) Start(ctx context.Context) {}

// Invoke runs one call inside the turn. A nil step declares none.
func (x *Execution) Invoke(ctx context.Context, call contract.ToolCall, step *int64) contract.ToolResult {
	return contract.ToolResult{}
}

// Observe records a runtime's observation, a JSON object, as a runtime.event.
func (x *Execution) Observe(data contract.Object) {}

// Escalate latches the turn as asking for a human.
func (x *Execution) Escalate(ctx context.Context, ask Ask) error { return nil }

// Finish ends the turn with the runtime's outcome and returns the result. A turn
// that has ended already keeps the ending it has.
func (x *Execution) Finish(ctx context.Context, o Outcome) contract.ExecutionResult {
	return contract.ExecutionResult{}
}

// Cancel ends the turn by the host's decision.
func (x *Execution) Cancel(ctx context.Context, reason string) contract.ExecutionResult {
	return contract.ExecutionResult{}
}

// Fail ends the turn with a failure the envelope's host established, such as
// harness_not_started.
func (x *Execution) Fail(ctx context.Context, failure contract.ProtocolError) contract.ExecutionResult {
	return contract.ExecutionResult{}
}

// Checkpoint returns what another process needs to continue the turn.
func (x *Execution) Checkpoint() Checkpoint { return Checkpoint{} }
