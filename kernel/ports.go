package kernel

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// MaxGrants is the most grants one context may hold; more makes its authority
// unavailable.
const MaxGrants = 4096

// GrantSource answers from the issuing store with exactly the grants that
// ac.Authority issued to ac.Actor inside ac.NamespaceID. A superset is refused
// as a whole, so a source must not return more.
type GrantSource interface {
	Load(ctx context.Context, ac contract.AccessContext) ([]contract.Grant, error)
}

// Use names one use of a bounded grant.
type Use struct {
	NamespaceID string
	GrantID     string
	// MaxUses is the grant's bound, at least 1.
	MaxUses int64
}

// UsageStore counts the uses of bounded grants.
type UsageStore interface {
	// Consume atomically spends one use. It answers false, with no error, when
	// none is left; it never lets more than MaxUses calls succeed.
	Consume(ctx context.Context, use Use) (bool, error)
	// Remaining reads how many uses are left and spends none.
	Remaining(ctx context.Context, use Use) (int64, error)
}

// ErrGrantNotFound is what a [DelegationResolver] returns for an ancestor that
// does not exist, as opposed to one it could not look for.
var ErrGrantNotFound = errors.New("grant not found")

// DelegationResolver loads an ancestor of a derived grant from a trusted store.
type DelegationResolver interface {
	Resolve(ctx context.Context, namespaceID, grantID string) (contract.Grant, error)
}

// CeilingQuery is what a [HostCeiling] is asked about: a grant that otherwise
// allows the requirement.
type CeilingQuery struct {
	Context     contract.AccessContext
	Requirement contract.CapabilityRequirement
	GrantID     string
	// Discovery is true when nothing is about to be executed; the requirement is
	// then a tool's declared ceiling or the question of a check.
	Discovery bool
}

// HostCeiling is the host's own policy. It can only narrow, must answer at once
// and without side effects, and an error from it denies.
type HostCeiling interface {
	Permits(q CeilingQuery) (bool, error)
}

// HostCeilingFunc adapts a function to [HostCeiling].
type HostCeilingFunc func(q CeilingQuery) (bool, error)

// Permits implements [HostCeiling].
func (f HostCeilingFunc) Permits(q CeilingQuery) (bool, error) { return f(q) }

// GrantVerifier checks a grant's own proof (a signature, say) when authority is
// loaded. A grant it does not vouch for is inactive.
type GrantVerifier interface {
	Verify(grant contract.Grant) bool
}

// ToolProvider yields the tools of one context, such as a brokered catalogue. It
// is called once per turn and what it returned is held for that turn.
type ToolProvider interface {
	Tools(ctx context.Context, ac contract.AccessContext) ([]Tool, error)
}

// ResourceProvider executes authorized operations on one resource plane. The
// operation carries its Context. A provider honours ctx before it commits an effect.
type ResourceProvider interface {
	Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error)
}

// MessageTransport delivers an authorized message. Delivering never runs an agent
// by itself: a transport that does so asks for that authority first.
type MessageTransport interface {
	Send(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error)
}

// ReplyRouter correlates a reply with the message it answers.
type ReplyRouter interface {
	// Expect prepares for the reply to m before m is sent.
	Expect(ctx context.Context, m contract.MessageEnvelope) (PendingReply, error)
}

// PendingReply is one awaited reply.
type PendingReply interface {
	// Await returns the reply, or ctx's error.
	Await(ctx context.Context) (contract.MessageEnvelope, error)
	// Close stops waiting. It is always called, also after Await returned.
	Close()
}

// NamespaceStore persists which tool namespaces a context has enabled. It applies
// the update atomically against fresh state, may narrow it, and returns every
// namespace that is enabled afterwards.
type NamespaceStore interface {
	UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) ([]string, error)
}

// Observer is told when a unit of kernel work begins and, by calling end, how it
// ended. It never sees arguments, outputs or grants.
type Observer interface {
	Start(ctx context.Context, span Span) (_ context.Context, end func(status contract.Status, code string))
}

// Span describes one unit of kernel work.
type Span struct {
	// Name is one of load, catalog, invoke, resource, message.
	Name string
	// Tool is set for invoke.
	Tool string
	// TraceID is the context's.
	TraceID string
}
