package toolsource_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/toolsource"
	"github.com/sharedos-dev/operator/upstream"
)

// recorder is a caller that notes what it is asked.
type recorder struct{ asked []upstream.Request }

func (r *recorder) Call(_ context.Context, q upstream.Request) (kernel.Output, error) {
	r.asked = append(r.asked, q)
	return kernel.Output{Value: contract.Value(`"done"`)}, nil
}

const pageSchema = `{"type":"object","properties":{"page":{"type":"string"}},"required":["page"]}`

func digest(t *testing.T, schema string) string {
	t.Helper()
	d, err := canonical.Hash(contract.Object(schema))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func found(t *testing.T, name, schema string) upstream.Tool {
	t.Helper()
	return upstream.Tool{Name: name, Description: "the server's words", InputSchema: contract.Object(schema), Digest: digest(t, schema)}
}

func declared(name, from, pin string, change ...func(*v1alpha1.ToolDeclaration)) v1alpha1.ToolDeclaration {
	d := v1alpha1.ToolDeclaration{
		Name: v1alpha1.ToolName(name), Upstream: v1alpha1.Identifier(from), SchemaDigest: v1alpha1.Digest(pin), ReadWrite: v1alpha1.ToolRead,
		Requirement: v1alpha1.ToolRequirement{Action: "read", Resource: v1alpha1.RequiredResource{
			Namespace: "pages", Path: "['pages', args.page]", Ceiling: []v1alpha1.PathSegment{"pages"},
		}},
	}
	for _, f := range change {
		f(&d)
	}
	return d
}

func brokered(tools ...v1alpha1.ToolDeclaration) *v1alpha1.ToolNamespace {
	n := namespace("wiki", v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{}})
	n.Spec.Tools = tools
	return n
}

// TestEachToolOnItsOwn: what is wrong with one holds that one back, says why, and the
// others are served.
func TestEachToolOnItsOwn(t *testing.T) {
	t.Parallel()
	pin := digest(t, pageSchema)
	long := "wiki." + strings.Repeat("x", 60)
	snapshot := &upstream.Snapshot{Tools: []upstream.Tool{
		found(t, "a-good", pageSchema), found(t, "b-broken", `{"type":"int"}`), {Name: "c-flawed", Flaw: "inputSchema: must be an object"},
		found(t, "d-new", pageSchema), found(t, "e-remote", `{"$ref":"https://example.com/schema"}`),
	}}
	n := brokered(
		declared("wiki.broken", "b-broken", digest(t, `{"type":"int"}`)), declared("wiki.changed", "a-good", strings.Repeat("0", 64)),
		declared("wiki.flawed", "c-flawed", pin), declared("wiki.gone", "z", pin), declared("wiki.read", "a-good", pin), declared("wiki.remote", "e-remote", ""),
		declared("wiki.unpinned", "a-good", ""), declared(long, "a-good", pin),
		declared("wiki.wrong", "a-good", pin, func(d *v1alpha1.ToolDeclaration) { d.Requirement.Resource.Path = "[args.pageId]" }),
	)
	binding := toolsource.Bind(n, snapshot, &recorder{})
	got := map[string]v1alpha1.ToolReason{}
	for _, s := range binding.Statuses {
		key := string(s.Name)
		if key == "" {
			key = string(s.Upstream)
		}
		got[key] = s.Reason
		if s.Published != (s.Reason == v1alpha1.ToolPublished) {
			t.Errorf("%s: published %v for %s", key, s.Published, s.Reason)
		}
		if s.Reason != v1alpha1.ToolPublished && s.Reason != v1alpha1.ToolNotDeclared && s.Message == "" {
			t.Errorf("%s: %s and no message", key, s.Reason)
		}
		if offered := s.Reason != v1alpha1.ToolUpstreamMissing && key != "wiki.flawed"; offered != (s.SchemaDigest != "") {
			t.Errorf("%s: digest %q", key, s.SchemaDigest)
		}
	}
	want := map[string]v1alpha1.ToolReason{
		"wiki.broken": v1alpha1.ToolSchemaInvalid, "wiki.changed": v1alpha1.ToolSchemaChanged, "wiki.flawed": v1alpha1.ToolSchemaInvalid,
		"wiki.gone": v1alpha1.ToolUpstreamMissing, "wiki.read": v1alpha1.ToolPublished, "wiki.remote": v1alpha1.ToolSchemaInvalid,
		"wiki.unpinned": v1alpha1.ToolSchemaNotPinned, long: v1alpha1.ToolPublished, "wiki.wrong": v1alpha1.ToolRequirementInvalid, "d-new": v1alpha1.ToolNotDeclared,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	names := []string{}
	for i := range binding.Tools {
		names = append(names, binding.Tools[i].Definition.Name)
	}
	if diff := cmp.Diff([]string{"wiki.read", long}, names); diff != "" {
		t.Error(diff)
	}
	for _, s := range binding.Statuses {
		if warned := strings.Contains(s.Message, "some take 64"); warned != (string(s.Name) == long) {
			t.Errorf("%s: %q", s.Name, s.Message)
		}
	}
}

func TestABoundToolAsksForItsPathAndCalls(t *testing.T) {
	t.Parallel()
	caller := &recorder{}
	tool := found(t, "get-page", pageSchema)
	tool.OutputSchema = contract.Object(`{"type":"object"}`)
	binding := toolsource.Bind(brokered(declared("wiki.read", "get-page", tool.Digest)), &upstream.Snapshot{Tools: []upstream.Tool{tool}}, caller)
	bound := binding.Tools[0]
	d := bound.Definition
	if string(d.InputSchema) != pageSchema || string(d.OutputSchema) != `{"type":"object"}` || d.Description != "the server's words" || d.Source != "mcp" || d.Namespace != "wiki" {
		t.Errorf("definition %+v", d)
	}
	args, err := kernel.ParseArguments(contract.Object(`{"page":"p1","n":1.10}`))
	if err != nil {
		t.Fatal(err)
	}
	need, err := bound.Requirement(args, contract.AccessContext{})
	want := contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "pages", Path: contract.Path{"pages", "p1"}}, Action: "read"}
	if diff := cmp.Diff(want, need); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := bound.Handle(t.Context(), kernel.ToolInvocation{CallID: "c", Arguments: args}); err != nil {
		t.Fatal(err)
	}
	asked := upstream.Request{Tool: "get-page", Digest: tool.Digest, Arguments: contract.Object(`{"page":"p1","n":1.10}`), Structured: true, Repeatable: true}
	if diff := cmp.Diff([]upstream.Request{asked}, caller.asked); diff != "" {
		t.Error(diff)
	}
}

func TestNothingOffered(t *testing.T) {
	t.Parallel()
	binding := toolsource.Bind(brokered(), &upstream.Snapshot{}, &recorder{})
	if len(binding.Tools) != 0 || len(binding.Statuses) != 0 {
		t.Errorf("%+v", binding)
	}
}
