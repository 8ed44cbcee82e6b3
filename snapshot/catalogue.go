package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/toolsource"
	"github.com/sharedos-dev/operator/translate"
)

// errDescribed is what a call to a tool of a snapshot ends with.
var errDescribed = errors.New("the tool is only described here; nothing runs it")

// described is the tools of a world as its ToolNamespaces declare them, without
// their sources being asked. A tool of an MCP server counts as published when its
// schema is pinned.
type described struct{ snapshot *Snapshot }

// Tools implements [kernel.ToolProvider].
func (d described) Tools(_ context.Context, ac contract.AccessContext) ([]kernel.Tool, error) {
	var tools []kernel.Tool
	namespaces := d.snapshot.ToolNamespaces(ac.NamespaceID)
	for i := range namespaces {
		n := &namespaces[i]
		if !slices.Contains(ac.EnabledToolNamespaces, translate.ToolNamespaceID(n)) || translate.Reserved(n) {
			continue
		}
		tools = append(tools, toolsource.Plane(n, nowhere{})...)
		if n.Spec.Source.MCP == nil {
			continue
		}
		for j := range n.Spec.Tools {
			if t := &n.Spec.Tools[j]; t.SchemaDigest != "" {
				tools = append(tools, declared(n, t))
			}
		}
	}
	return tools, nil
}

// declared is a tool of an MCP server, as far as its declaration says.
func declared(n *v1alpha1.ToolNamespace, t *v1alpha1.ToolDeclaration) kernel.Tool {
	ceiling := make(contract.Path, 0, len(t.Requirement.Resource.Ceiling))
	for _, segment := range t.Requirement.Resource.Ceiling {
		ceiling = append(ceiling, string(segment))
	}
	description := t.Description
	if description == "" {
		description = "As its server describes it."
	}
	need := contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: string(t.Requirement.Resource.Namespace), Path: ceiling},
		Action:   string(t.Requirement.Action),
	}
	return kernel.Tool{
		Definition: contract.ToolDefinition{
			Name: string(t.Name), Description: description, Namespace: n.Name, Source: "mcp",
			ReadWrite: contract.ReadWrite(t.ReadWrite), InputSchema: contract.Object(`{"type":"object"}`),
			RequiredCapability: need,
			Annotations:        &contract.ToolAnnotations{Destructive: t.Destructive, Idempotent: t.Idempotent},
		},
		Requirement: func(kernel.Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) {
			return contract.CapabilityRequirement{}, errDescribed
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{}, errDescribed
		},
	}
}

// nowhere stands in for a provider.
type nowhere struct{}

// Invoke implements [kernel.ResourceProvider].
func (nowhere) Invoke(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
	return contract.ResourceResult{}, errDescribed
}

// Ceilings are the tools that are on for the context, whatever its Grants: what a
// Grant could be of use for. The kernel's own are not among them.
func (i *Inspector) Ceilings(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error) {
	tools, err := described{i.snapshot}.Tools(ctx, ac)
	if err != nil {
		return nil, err
	}
	out := make([]contract.ToolDefinition, 0, len(tools))
	for n := range tools {
		out = append(out, tools[n].Definition)
	}
	return out, nil
}
