package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// registry is the set of tools registered for one context, sorted by name.
type registry struct {
	tools []*compiled
	// cause is why there is no set at all; audit only.
	cause string
}

// Causes of an unavailable catalogue; audit only.
const (
	causeProviderFailed  = "tool_provider_failed"
	causeInvalidTool     = "invalid_tool_definition"
	causeDuplicateTool   = "duplicate_tool"
	causeCatalogTooLarge = "tool_limit_exceeded"
)

var errDuplicateTool = errors.New("tool name is registered twice")

// newRegistry compiles the static tools.
func (f *forms) newRegistry(tools []Tool) (*registry, error) {
	r := &registry{}
	for i := range tools {
		c, err := f.compile(tools[i])
		if err != nil {
			return nil, fmt.Errorf("register tool %q: %w", tools[i].Definition.Name, err)
		}
		r.tools = append(r.tools, c)
	}
	if name, dup := r.sort(); dup {
		return nil, fmt.Errorf("register tool %q: %w", name, errDuplicateTool)
	}
	return r, nil
}

// sort orders the tools by name and reports a name that occurs twice.
func (r *registry) sort() (string, bool) {
	slices.SortFunc(r.tools, func(a, b *compiled) int {
		return contract.CompareCodeUnits(a.Definition.Name, b.Definition.Name)
	})
	for i := 1; i < len(r.tools); i++ {
		if r.tools[i].Definition.Name == r.tools[i-1].Definition.Name {
			return r.tools[i].Definition.Name, true
		}
	}
	return "", false
}

func (r *registry) find(name string) *compiled {
	i, ok := slices.BinarySearchFunc(r.tools, name, func(c *compiled, name string) int {
		return contract.CompareCodeUnits(c.Definition.Name, name)
	})
	if !ok {
		return nil
	}
	return r.tools[i]
}

// registered asks every provider once and joins their tools with the static ones.
// One that fails leaves no set: nothing is listed from a partial one.
func (k *Kernel) registered(ctx context.Context, ac *contract.AccessContext) *registry {
	if len(k.opts.Providers) == 0 {
		return k.static
	}
	r := &registry{tools: slices.Clone(k.static.tools)}
	for _, provider := range k.opts.Providers {
		given := *ac
		given.EnabledToolNamespaces = slices.Clone(ac.EnabledToolNamespaces)
		tools, err := guarded(func() ([]Tool, error) { return provider.Tools(ctx, given) })
		if err != nil {
			return &registry{cause: causeProviderFailed}
		}
		for i := range tools {
			c, err := k.forms.compile(tools[i])
			if err != nil {
				return &registry{cause: causeInvalidTool}
			}
			r.tools = append(r.tools, c)
		}
	}
	if _, dup := r.sort(); dup {
		return &registry{cause: causeDuplicateTool}
	}
	return r
}
