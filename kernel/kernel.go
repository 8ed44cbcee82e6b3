package kernel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
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
	// sharedos.escalate is always registered beside them.
	Tools     []Tool
	Providers []ToolProvider
	// Resources are the planes that InvokeResource reaches, by resource namespace.
	Resources map[string]ResourceProvider
	// Transport delivers messages; with Replies too, messages.request is registered.
	Transport  MessageTransport
	Replies    ReplyRouter
	Namespaces NamespaceStore
	Observer   Observer
}

// Kernel decides and executes. It is safe for concurrent use.
type Kernel struct {
	opts   Options
	forms  *forms
	static *registry
	// authorities and places are what turns share.
	authorities *shared[authority]
	places      *shared[Places]
}

// New checks the options and compiles the static tools. It refuses a tool without
// a requirement, a duplicate name, a schema that does not compile, and a schema
// with a number that would not survive hashing.
func New(opts Options) (*Kernel, error) {
	if opts.Grants == nil || opts.Audit == nil || opts.Clock == nil || opts.NewID == nil {
		return nil, errors.New("grants, audit, clock and id source are required")
	}
	k := &Kernel{opts: opts, forms: &forms{}, authorities: &shared[authority]{}, places: &shared[Places]{}}
	tools := append(slices.Clone(opts.Tools), escalateTool())
	if opts.Transport != nil && opts.Replies != nil {
		tools = append(tools, k.requestTool())
	}
	static, err := k.forms.newRegistry(tools)
	if err != nil {
		return nil, fmt.Errorf("register static tools: %w", err)
	}
	k.static = static
	return k, nil
}

// Now returns the kernel clock's instant.
func (k *Kernel) Now() time.Time { return k.opts.Clock() }

// NewID mints an identifier.
func (k *Kernel) NewID() string { return k.opts.NewID() }
