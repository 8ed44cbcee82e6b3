package toolsource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects"
	"github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/translate"
)

// Errors of [Provider.Tools].
var (
	// ErrUnsupported means that the connector serves no mcp sources.
	ErrUnsupported = errors.New("there is no broker for MCP servers here; use a provider source")
	// ErrNameConflict means that two namespaces have a tool of one name. Neither is
	// chosen.
	ErrNameConflict = errors.New("two tool namespaces have a tool of the same name")
	errOff          = errors.New("the tool namespace is off")
)

// Connector returns the connection to a provider source.
type Connector interface {
	Connect(ctx context.Context, n *v1alpha1.ToolNamespace) (kernel.ResourceProvider, error)
}

// Provider is a [kernel.ToolProvider] over ToolNamespaces.
type Provider struct {
	// Reader lists them; for admission it asks the API server itself.
	Reader objects.Reader
	// Connector serves provider sources, and mcp sources if it is a [Broker] too.
	Connector Connector
}

var _ kernel.ToolProvider = Provider{}

// Tools implements [kernel.ToolProvider].
func (p Provider) Tools(ctx context.Context, ac contract.AccessContext) ([]kernel.Tool, error) {
	var list v1alpha1.ToolNamespaceList
	if err := p.Reader.List(ctx, &list, ac.NamespaceID); err != nil {
		return nil, fmt.Errorf("list tool namespaces: %w", err)
	}
	var tools []kernel.Tool
	names := map[string]bool{}
	for i := range list.Items {
		n := &list.Items[i]
		if !slices.Contains(ac.EnabledToolNamespaces, translate.ToolNamespaceID(n)) || translate.Reserved(n) {
			continue
		}
		found, err := p.toolsOf(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("tool namespace %q: %w", n.Name, err)
		}
		for j := range found {
			if name := found[j].Definition.Name; names[name] {
				return nil, fmt.Errorf("tool namespace %q: %q: %w", n.Name, name, ErrNameConflict)
			}
			names[found[j].Definition.Name] = true
		}
		tools = append(tools, found...)
	}
	// What is off is registered too, so that the record of a refused call says that
	// it was off; never in the place of a tool that is on.
	for i := range list.Items {
		n := &list.Items[i]
		if slices.Contains(ac.EnabledToolNamespaces, translate.ToolNamespaceID(n)) || n.Spec.Source.Builtin != "" {
			continue
		}
		for _, tool := range append(Plane(n, switchedOff{}), offTools(n)...) {
			if !names[tool.Definition.Name] {
				names[tool.Definition.Name] = true
				tools = append(tools, tool)
			}
		}
	}
	return tools, nil
}

func (p Provider) toolsOf(ctx context.Context, n *v1alpha1.ToolNamespace) ([]kernel.Tool, error) {
	switch source := &n.Spec.Source; {
	case source.Builtin != "":
		return nil, nil // the kernel has them
	case source.Provider != nil:
		connection, err := p.Connector.Connect(ctx, n)
		if err != nil {
			return nil, err
		}
		return Plane(n, connection), nil
	default:
		broker, ok := p.Connector.(Broker)
		if !ok {
			return nil, ErrUnsupported
		}
		binding, err := broker.Broker(ctx, n)
		if err != nil {
			return nil, err
		}
		return binding.Tools, nil
	}
}

// Plane is the tools of a provider source's plane, in the ToolNamespace's name.
func Plane(n *v1alpha1.ToolNamespace, connection kernel.ResourceProvider) []kernel.Tool {
	if n.Spec.Source.Provider == nil {
		return nil
	}
	var tools []kernel.Tool
	switch n.Spec.Source.Provider.Plane {
	case v1alpha1.PlaneFiles:
		tools = files.Tools(connection)
	case v1alpha1.PlaneRepo:
		tools = repo.Tools(connection)
	}
	for i := range tools {
		tools[i].Definition.Namespace = n.Name
	}
	return tools
}

// switchedOff stands in for the connection of a namespace that is off.
type switchedOff struct{}

func (switchedOff) Invoke(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
	return contract.ResourceResult{}, errOff
}
