package kernel

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Catalogue is a turn's effective tools, sorted by name; it does not change.
type Catalogue struct {
	tools []*compiled
	hash  string
}

func newCatalogue(tools []*compiled) *Catalogue {
	size := 2
	for _, c := range tools {
		size += len(c.form.canonical) + 1
	}
	text := append(make([]byte, 0, size), '[')
	for i, c := range tools {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, c.form.canonical...)
	}
	return &Catalogue{tools: tools, hash: canonical.HashBytes(append(text, ']'))}
}

// Definitions returns the management view of every tool.
func (c *Catalogue) Definitions() []contract.ToolDefinition {
	out := make([]contract.ToolDefinition, 0, len(c.tools))
	for _, tool := range c.tools {
		out = append(out, cloneDefinition(&tool.Definition))
	}
	return out
}

// Definition returns one tool's management view.
func (c *Catalogue) Definition(name string) (contract.ToolDefinition, bool) {
	if tool := c.find(name); tool != nil {
		return cloneDefinition(&tool.Definition), true
	}
	return contract.ToolDefinition{}, false
}

// Published returns what may cross to a harness. Each call returns a fresh copy.
func (c *Catalogue) Published() []contract.PublishedTool {
	out := make([]contract.PublishedTool, 0, len(c.tools))
	for _, tool := range c.tools {
		p := tool.form.published
		p.InputSchema = bytes.Clone(p.InputSchema)
		p.OutputSchema = bytes.Clone(p.OutputSchema)
		p.Annotations = &contract.PublishedAnnotations{
			ReadOnlyHint: clonePointer(p.Annotations.ReadOnlyHint), DestructiveHint: clonePointer(p.Annotations.DestructiveHint),
			IdempotentHint: clonePointer(p.Annotations.IdempotentHint), OpenWorldHint: clonePointer(p.Annotations.OpenWorldHint),
		}
		p.Metadata = clonePointer(p.Metadata)
		out = append(out, p)
	}
	return out
}

// Names returns the tools' names in order.
func (c *Catalogue) Names() []string {
	out := make([]string, 0, len(c.tools))
	for _, tool := range c.tools {
		out = append(out, tool.Definition.Name)
	}
	return out
}

// Hash returns the catalogue hash.
func (c *Catalogue) Hash() string { return c.hash }

// Len returns how many tools there are.
func (c *Catalogue) Len() int { return len(c.tools) }

// Has reports whether the tool is in the catalogue.
func (c *Catalogue) Has(name string) bool { return c.find(name) != nil }

// Repeatable reports whether the tool is in the catalogue and a call to it may be
// repeated when its answer was lost.
func (c *Catalogue) Repeatable(name string) bool {
	tool := c.find(name)
	return tool != nil && tool.Definition.Repeatable()
}

// ValidArguments reports whether the arguments fit the tool's input schema.
func (c *Catalogue) ValidArguments(name string, args Arguments) bool {
	tool := c.find(name)
	return tool != nil && conforms(tool.form.input, args.node)
}

// Operates reports whether some tool's ceiling is in the resource namespace.
func (c *Catalogue) Operates(namespace string) bool {
	return slices.ContainsFunc(c.tools, func(tool *compiled) bool {
		return tool.Definition.RequiredCapability.Resource.Namespace == namespace
	})
}

// Only returns the catalogue of those tools that are in names too.
func (c *Catalogue) Only(names []string) *Catalogue {
	kept := make([]*compiled, 0, len(c.tools))
	for _, tool := range c.tools {
		if slices.Contains(names, tool.Definition.Name) {
			kept = append(kept, tool)
		}
	}
	return newCatalogue(kept)
}

func (c *Catalogue) find(name string) *compiled {
	r := registry{tools: c.tools}
	return r.find(name)
}

// Catalog resolves the turn's catalogue once and returns the same one ever after:
// registered, enabled, and allowed by some grant. Its error is a [*Refusal] with
// code tool_catalog_unavailable or audit_unavailable.
func (t *Turn) Catalog(ctx context.Context) (*Catalogue, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.catalog != nil {
		return t.catalog, nil
	}
	ctx, end := t.k.span(ctx, Span{Name: "catalog", TraceID: t.ac.TraceID})
	r := t.registered(ctx)
	c := newCatalogue(t.offered(ctx, r))
	if r.cause == "" && c.Len() > contract.MaxCatalogueTools {
		r = &registry{cause: causeCatalogTooLarge}
		t.registry = r
	}
	if r.cause != "" {
		end(contract.StatusFailed, contract.CodeToolCatalogUnavailable)
		return nil, t.noCatalog(ctx, r.cause)
	}
	err := t.Record(context.WithoutCancel(ctx), audit.Event{
		Type: audit.ToolCatalogListed, Outcome: audit.Succeeded, CatalogHash: c.hash,
		AuthorityHash: t.auth.hash, Metadata: fmt.Appendf(nil, `{"toolCount":%d}`, c.Len()),
	})
	if err != nil {
		end(contract.StatusFailed, contract.CodeAuditUnavailable)
		return nil, refusal(contract.CodeAuditUnavailable)
	}
	end(contract.StatusSucceeded, "")
	t.catalog = c
	return c, nil
}

func (t *Turn) noCatalog(ctx context.Context, cause string) error {
	err := t.follow(ctx, audit.Event{
		Type: audit.ToolCatalogListed, Outcome: audit.Denied,
		Reason: contract.CodeToolCatalogUnavailable, Cause: cause,
	})
	if err != nil {
		return refusal(contract.CodeAuditUnavailable)
	}
	return refusal(contract.CodeToolCatalogUnavailable)
}

// registered is the turn's registry, resolved once. The caller holds the lock.
func (t *Turn) registered(ctx context.Context) *registry {
	if t.registry == nil {
		t.registry = t.k.registered(ctx, &t.ac)
	}
	return t.registry
}

// offered keeps the tools that are enabled and discoverable.
func (t *Turn) offered(ctx context.Context, r *registry) []*compiled {
	q := question{now: t.k.opts.Clock(), mode: modeDiscover, remaining: make(map[string]int64)}
	kept := make([]*compiled, 0, len(r.tools))
	for _, tool := range r.tools {
		if cause, _ := t.gate(ctx, tool, &q); cause == "" {
			kept = append(kept, tool)
		}
	}
	return kept
}

// Causes of an unavailable tool; audit only.
const (
	causeNotRegistered     = "not_registered"
	causeNamespaceDisabled = "namespace_disabled"
	causeNotDiscoverable   = "not_discoverable"
	causeNotOffered        = "not_offered"
)

// gate returns which gate is shut for a registered tool, or nothing; for one that no
// grant opens, the verdict says why.
func (t *Turn) gate(ctx context.Context, tool *compiled, q *question) (string, *verdict) {
	if !contains(t.ac.EnabledToolNamespaces, tool.Definition.Namespace) {
		return causeNamespaceDisabled, nil
	}
	q.need = tool.Definition.RequiredCapability
	if v := t.decide(ctx, q); !v.allowed() {
		return causeNotDiscoverable, &v
	}
	return "", nil
}

// missing is why a tool may not be called.
type missing struct {
	code  string // what the caller learns
	cause string // what the host learns
	// rejected and ceiling are set when no grant opens the tool.
	rejected []audit.RejectedGrant
	ceiling  *contract.CapabilityRequirement
}

// lookup finds a tool the turn may call. A catalogue that was served answers alone;
// a turn of one operation looks at the one tool.
func (t *Turn) lookup(ctx context.Context, name string) (*compiled, missing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.registered(ctx)
	if r.cause != "" {
		return nil, missing{code: contract.CodeToolCatalogUnavailable, cause: r.cause}
	}
	if t.catalog != nil {
		if tool := t.catalog.find(name); tool != nil {
			return tool, missing{}
		}
	}
	none := missing{code: contract.CodeToolUnavailable, cause: causeNotRegistered}
	tool := r.find(name)
	if tool == nil {
		return nil, none
	}
	q := question{now: t.k.opts.Clock(), mode: modeDiscover}
	cause, v := t.gate(ctx, tool, &q)
	switch {
	case v != nil:
		none.cause, none.rejected, none.ceiling = cause, t.rejected(&q, v), &tool.Definition.RequiredCapability
	case cause != "":
		none.cause = cause
	case t.catalog != nil: // it became discoverable after the catalogue was served
		none.cause = causeNotDiscoverable
	default:
		return tool, missing{}
	}
	return nil, none
}
