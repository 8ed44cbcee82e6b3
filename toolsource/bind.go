package toolsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/requirement"
	"github.com/sharedos-dev/operator/translate"
	"github.com/sharedos-dev/operator/upstream"
)

// SourceMCP is the source of brokered tools, as the protocol names it.
const SourceMCP = "mcp"

// Bounds of what a status says.
const (
	maxToolStatuses = 512
	maxToolMessage  = 1024
	// maxAlias is the longest tool name that every harness takes.
	maxAlias = 64
)

// Caller calls a tool of an upstream server.
type Caller interface {
	Call(ctx context.Context, r upstream.Request) (kernel.Output, error)
}

// Binding is what the declarations of a ToolNamespace and the tools of its server come
// to. It does not change.
type Binding struct {
	// Tools are those that are published.
	Tools []kernel.Tool
	// Statuses are about every tool that was declared or found: the declared ones by
	// name, then the others by the name that the server gives them.
	Statuses []v1alpha1.ToolStatus
}

// Bind joins the declarations of an mcp source with what its server offers. What is
// wrong with one tool holds that one back, with the reason.
func Bind(n *v1alpha1.ToolNamespace, found *upstream.Snapshot, caller Caller) *Binding {
	out := &Binding{}
	declared := map[string]bool{}
	for i := range n.Spec.Tools {
		d := &n.Spec.Tools[i]
		declared[string(d.Upstream)] = true
		status := v1alpha1.ToolStatus{Name: d.Name, Upstream: d.Upstream}
		tool, offered := found.Find(string(d.Upstream))
		if !offered {
			status.Reason, status.Message = v1alpha1.ToolUpstreamMissing, "the server does not offer it; see the names in status.tools"
		} else {
			status.SchemaDigest = v1alpha1.Digest(tool.Digest)
			bound, reason, message := bind(n, d, tool, caller)
			status.Reason, status.Message, status.Published = reason, translate.Text(message, maxToolMessage), bound != nil
			if bound != nil {
				out.Tools = append(out.Tools, *bound)
			}
		}
		out.Statuses = append(out.Statuses, status)
	}
	slices.SortFunc(out.Statuses, func(a, b v1alpha1.ToolStatus) int { return cmp.Compare(a.Name, b.Name) })
	for i := range found.Tools {
		tool := &found.Tools[i]
		if declared[tool.Name] || len(out.Statuses) >= maxToolStatuses {
			continue
		}
		out.Statuses = append(out.Statuses, v1alpha1.ToolStatus{
			Upstream: v1alpha1.Identifier(tool.Name), SchemaDigest: v1alpha1.Digest(tool.Digest), Reason: v1alpha1.ToolNotDeclared,
			Message: translate.Text(tool.Flaw, maxToolMessage),
		})
	}
	return out
}

// bind makes one tool, or says why not.
func bind(n *v1alpha1.ToolNamespace, d *v1alpha1.ToolDeclaration, tool *upstream.Tool, caller Caller) (*kernel.Tool, v1alpha1.ToolReason, string) {
	if tool.Flaw != "" {
		return nil, v1alpha1.ToolSchemaInvalid, tool.Flaw
	}
	out := kernel.Tool{Definition: definition(n, d, tool), Requirement: unresolved, Handle: handler(d, tool, caller)}
	if err := kernel.CheckTool(out); err != nil {
		return nil, v1alpha1.ToolSchemaInvalid, err.Error()
	}
	switch {
	case d.SchemaDigest == "":
		return nil, v1alpha1.ToolSchemaNotPinned, "read the tool's input schema, then set schemaDigest to the one shown here"
	case string(d.SchemaDigest) != tool.Digest:
		return nil, v1alpha1.ToolSchemaChanged, fmt.Sprintf("schemaDigest is %s: the input schema is another one than was reviewed", d.SchemaDigest)
	}
	path, err := requirement.Compile(d.Requirement.Resource.Path, tool.InputSchema)
	if err != nil {
		return nil, v1alpha1.ToolRequirementInvalid, "requirement.resource.path: " + err.Error()
	}
	need := out.Definition.RequiredCapability
	out.Requirement = func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
		at, err := path.Of(args)
		if err != nil {
			return contract.CapabilityRequirement{}, err
		}
		return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: need.Resource.Namespace, Path: at}, Action: need.Action}, nil
	}
	return &out, v1alpha1.ToolPublished, AliasWarning(string(d.Name))
}

// AliasWarning says when a tool's name, as harnesses show it to their model, is longer
// than some of them take; it is empty otherwise.
func AliasWarning(name string) string {
	alias := mcp.HarnessToolAlias("sharedos", name)
	if len(alias) <= maxAlias {
		return ""
	}
	return fmt.Sprintf("harnesses call it %s, which is %d characters long; some take %d at most and leave the tool out: shorten its name by %d",
		alias, len(alias), maxAlias, len(alias)-maxAlias)
}

var errUnresolved = errors.New("the tool has no requirement")

func unresolved(kernel.Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) {
	return contract.CapabilityRequirement{}, errUnresolved
}

func definition(n *v1alpha1.ToolNamespace, d *v1alpha1.ToolDeclaration, tool *upstream.Tool) contract.ToolDefinition {
	out := declaration(n, d)
	if d.Description == "" {
		out.Description = tool.Description
	}
	out.InputSchema, out.OutputSchema = tool.InputSchema, tool.OutputSchema
	return out
}

// declaration is a definition as far as nobody has to be asked for it.
func declaration(n *v1alpha1.ToolNamespace, d *v1alpha1.ToolDeclaration) contract.ToolDefinition {
	ceiling := make(contract.Path, len(d.Requirement.Resource.Ceiling))
	for i, segment := range d.Requirement.Resource.Ceiling {
		ceiling[i] = string(segment)
	}
	out := contract.ToolDefinition{
		Name: string(d.Name), Description: d.Description, Namespace: n.Name, Source: SourceMCP,
		ReadWrite: contract.ReadWrite(d.ReadWrite), InputSchema: contract.Object(`{"type":"object"}`),
		RequiredCapability: contract.CapabilityRequirement{
			Resource: contract.ResourceRef{Namespace: string(d.Requirement.Resource.Namespace), Path: ceiling},
			Action:   string(d.Requirement.Action),
		},
	}
	if out.Description == "" {
		out.Description = out.Name
	}
	if d.Destructive != nil || d.Idempotent != nil {
		out.Annotations = &contract.ToolAnnotations{Destructive: d.Destructive, Idempotent: d.Idempotent}
	}
	return out
}

func handler(d *v1alpha1.ToolDeclaration, tool *upstream.Tool, caller Caller) func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
	request := upstream.Request{
		Tool: tool.Name, Digest: tool.Digest, Structured: len(tool.OutputSchema) > 0,
		Repeatable: d.ReadWrite == v1alpha1.ToolRead || (d.Idempotent != nil && *d.Idempotent),
	}
	return func(ctx context.Context, call kernel.ToolInvocation) (kernel.Output, error) {
		r := request
		r.Arguments = call.Arguments.Raw()
		return caller.Call(ctx, r)
	}
}

// offTools stand in for the tools of an mcp source that is off: nobody is asked for
// what nobody may use.
func offTools(n *v1alpha1.ToolNamespace) []kernel.Tool {
	out := make([]kernel.Tool, 0, len(n.Spec.Tools))
	for i := range n.Spec.Tools {
		tool := kernel.Tool{
			Definition: declaration(n, &n.Spec.Tools[i]), Requirement: unresolved,
			Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) { return kernel.Output{}, errOff },
		}
		if tool.Definition.Validate() == nil {
			out = append(out, tool)
		}
	}
	return out
}
