package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Options configure a [Kernel]. Grants, Audit, Clock and NewID are required; an
// absent optional port denies what would need it.
type Options struct {
	Grants GrantSource
	Audit  audit.Sink
	// Clock returns the present instant.
	Clock func() time.Time
	// NewID mints a fresh identifier of 1 to 256 characters.
	NewID func() string

	Usage      UsageStore
	Delegation DelegationResolver
	Ceiling    HostCeiling
	Verifier   GrantVerifier

	// Tools are the static tools; Providers yield those of one context.
	Tools     []Tool
	Providers []ToolProvider
	// Resources are the planes that InvokeResource reaches, by namespace.
	Resources map[string]ResourceProvider
	// Transport delivers messages; with Replies too, messages.request is registered.
	Transport  MessageTransport
	Replies    ReplyRouter
	Namespaces NamespaceStore
	Observer   Observer
}

// Kernel decides and executes. It is safe for concurrent use.
type Kernel struct {
	opts Options
}

// New checks the options and compiles the static tools. It refuses a tool without
// a requirement, a duplicate name, a schema that does not compile, and a schema
// with a number that would not survive hashing.
func New(opts Options) (*Kernel, error) {
	if opts.Grants == nil || opts.Audit == nil || opts.Clock == nil || opts.NewID == nil {
		return nil, errors.New("grants, audit, clock and id source are required")
	}
	return &Kernel{opts: opts}, nil
}

// OpenTurn loads the context's authority once and holds it until the turn is
// forgotten. Authority that cannot be established is a [*Refusal] with code
// authority_unavailable; a malformed context one with invalid_context; an audit
// sink that cannot take the record one with audit_unavailable.
func (k *Kernel) OpenTurn(ctx context.Context, ac contract.AccessContext) (*Turn, error) {
	return nil, &Refusal{Code: contract.CodeAuthorityUnavailable, Message: "Authority is unavailable."}
}

// GrantRef identifies one grant as it was when a turn was admitted.
type GrantRef struct {
	ID string `json:"id"`
	// Hash is the hash of the whole grant, so that a changed grant is another one.
	Hash string `json:"hash"`
}

// ResumeTurn is OpenTurn for a turn that was admitted before: of the grants loaded
// now only those in held and unchanged are kept. A grant is never gained or replaced.
func (k *Kernel) ResumeTurn(ctx context.Context, ac contract.AccessContext, held []GrantRef) (*Turn, error) {
	return k.OpenTurn(ctx, ac)
}

// Turn is one context with its authority, resolved once. It is safe for concurrent use.
type Turn struct {
	k  *Kernel
	ac contract.AccessContext
}

// Context returns the turn's context.
func (t *Turn) Context() contract.AccessContext { return t.ac }

// AuthorityHash is the hash of the grant set the turn holds.
func (t *Turn) AuthorityHash() string { return "" }

// Grants returns a reference to every grant the turn holds, sorted by id.
func (t *Turn) Grants() []GrantRef { return nil }

// Authorize answers whether the exact requirement would be allowed. It spends no
// bounded use and is audited.
func (t *Turn) Authorize(ctx context.Context, req contract.CapabilityRequirement) contract.AuthorizationDecision {
	return contract.AuthorizationDecision{ReasonCode: contract.CodeNoMatchingGrant}
}

// Consume is Authorize for something about to happen: it spends a bounded use, and
// its record is kept before it returns.
func (t *Turn) Consume(ctx context.Context, req contract.CapabilityRequirement) contract.AuthorizationDecision {
	return contract.AuthorizationDecision{ReasonCode: contract.CodeNoMatchingGrant}
}

// Discover answers whether some grant intersects the ceiling's subtree. It spends nothing.
func (t *Turn) Discover(ctx context.Context, ceiling contract.CapabilityRequirement) contract.AuthorizationDecision {
	return contract.AuthorizationDecision{ReasonCode: contract.CodeNoMatchingGrant}
}

// Reach lists what the context may touch now, with the authority stripped.
func (t *Turn) Reach(ctx context.Context) contract.ReachResult {
	return contract.ReachResult{Status: "unavailable", ReasonCode: contract.CodeAuthorityUnavailable}
}

// Catalog resolves the turn's catalogue once and returns the same one ever after.
// Its error is a [*Refusal] with code tool_catalog_unavailable or audit_unavailable.
func (t *Turn) Catalog(ctx context.Context) (*Catalogue, error) {
	return nil, &Refusal{Code: contract.CodeToolCatalogUnavailable, Message: "The tool catalogue is unavailable."}
}

// Invoke runs one tool call in the seven steps.
func (t *Turn) Invoke(ctx context.Context, call contract.ToolCall) contract.ToolResult {
	return contract.ToolResult{}
}

// InvokeResource runs one operation on a resource plane.
func (t *Turn) InvokeResource(ctx context.Context, op contract.ResourceOperation) contract.ResourceResult {
	return contract.ResourceResult{}
}

// Send delivers one message.
func (t *Turn) Send(ctx context.Context, m contract.MessageEnvelope) contract.MessageDeliveryResult {
	return contract.MessageDeliveryResult{}
}

// Catalogue is a turn's effective tools, sorted by name; it does not change.
type Catalogue struct {
	definitions []contract.ToolDefinition
	published   []contract.PublishedTool
	hash        string
}

// Definitions returns the management view.
func (c *Catalogue) Definitions() []contract.ToolDefinition { return c.definitions }

// Published returns what may cross to a harness.
func (c *Catalogue) Published() []contract.PublishedTool { return c.published }

// Hash returns the catalogue hash.
func (c *Catalogue) Hash() string { return c.hash }

// Len returns how many tools there are.
func (c *Catalogue) Len() int { return len(c.definitions) }

// Authorize is [Turn.Authorize] in a turn of one operation.
func (k *Kernel) Authorize(ctx context.Context, ac contract.AccessContext, req contract.CapabilityRequirement) contract.AuthorizationDecision {
	return contract.AuthorizationDecision{ReasonCode: contract.CodeAuthorityUnavailable}
}

// Tools is [Turn.Catalog] in a turn of one operation.
func (k *Kernel) Tools(ctx context.Context, ac contract.AccessContext) (*Catalogue, error) {
	return nil, &Refusal{Code: contract.CodeToolCatalogUnavailable, Message: "The tool catalogue is unavailable."}
}

// Reach is [Turn.Reach] in a turn of one operation.
func (k *Kernel) Reach(ctx context.Context, ac contract.AccessContext) contract.ReachResult {
	return contract.ReachResult{Status: "unavailable", ReasonCode: contract.CodeAuthorityUnavailable}
}

// InvokeTool is [Turn.Invoke] in a turn of one operation.
func (k *Kernel) InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) contract.ToolResult {
	return contract.ToolResult{}
}

// InvokeResource is [Turn.InvokeResource] in a turn of one operation.
func (k *Kernel) InvokeResource(ctx context.Context, ac contract.AccessContext, op contract.ResourceOperation) contract.ResourceResult {
	return contract.ResourceResult{}
}

// SendMessage is [Turn.Send] in a turn of one operation.
func (k *Kernel) SendMessage(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) contract.MessageDeliveryResult {
	return contract.MessageDeliveryResult{}
}

// ToolNamespaces lists the context's tool namespaces.
func (k *Kernel) ToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	return contract.ToolNamespaceCatalog{}, &Refusal{Code: contract.CodeToolCatalogUnavailable, Message: "The tool catalogue is unavailable."}
}

// UpdateToolNamespaces applies an idempotent patch and returns what took effect.
func (k *Kernel) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error) {
	return contract.ToolNamespaceCatalog{}, &Refusal{Code: contract.CodeToolNamespacesNotConfigured, Message: "Tool namespaces cannot be changed here."}
}

// Clock returns the kernel's clock.
func (k *Kernel) Clock() func() time.Time { return k.opts.Clock }
