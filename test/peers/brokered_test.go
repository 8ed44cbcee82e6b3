package peers_test

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	otherMCP "github.com/mark3labs/mcp-go/mcp"
	otherServer "github.com/mark3labs/mcp-go/server"
	officialMCP "github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/peers/turn"
	"github.com/sharedos-dev/operator/toolsource"
)

// exposed is how a tool of a server is declared.
type exposed struct {
	upstream, path, action string
	ceiling                []v1alpha1.PathSegment
	class                  v1alpha1.ToolAccess
}

// step is one call through the kernel and what must come of it.
type step struct {
	tool, arguments string
	status          contract.Status
	// code of a failure or refusal; holds is part of the output or the message.
	code, holds string
}

// source is an MCP server behind a ToolNamespace.
type source struct {
	object      *v1alpha1.ToolNamespace
	connections *toolsource.Connections
	// found is what the status says before anything is declared.
	found []v1alpha1.ToolStatus
}

// discover looks at the server at the URL for a ToolNamespace of that name.
func discover(t *testing.T, name, url string) *source {
	t.Helper()
	s := &source{
		object: &v1alpha1.ToolNamespace{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Generation: 1},
			Spec:       v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Endpoint: v1alpha1.Endpoint{URL: url}}}},
		},
		connections: &toolsource.Connections{Egress: &egress.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
	}
	t.Cleanup(s.connections.Close)
	first, err := s.connections.Broker(t.Context(), s.object)
	if err != nil {
		t.Fatal(err)
	}
	s.found = first.Statuses
	return s
}

// declare adds a tool to the ToolNamespace.
func (s *source) declare(d v1alpha1.ToolDeclaration) {
	s.object.Spec.Tools = append(s.object.Spec.Tools, d)
}

// publish is what the ToolNamespace offers with its declarations.
func (s *source) publish(t *testing.T) *toolsource.Binding {
	t.Helper()
	s.object.Generation++
	binding, err := s.connections.Broker(t.Context(), s.object)
	if err != nil {
		t.Fatal(err)
	}
	return binding
}

// brokered discovers the server at the URL, publishes tools of it in the way a
// ToolNamespace does, and returns a turn that was granted the capabilities. Every tool
// of the server is compared with what the witness sees.
func brokered(t *testing.T, url string, witness officialMCP.Transport, granted []contract.Capability, tools ...exposed) *turn.Turn {
	t.Helper()
	src := discover(t, "peer", url)
	theirs, pins := offered(t, witness), map[string]v1alpha1.Digest{}
	for _, s := range src.found {
		pins[string(s.Upstream)] = s.SchemaDigest
		want, err := canonical.Hash(theirs[string(s.Upstream)])
		if err != nil || string(s.SchemaDigest) != want {
			t.Errorf("%s: digest %s (%s), and the schema that another client sees has %s (%v)", s.Upstream, s.SchemaDigest, s.Message, want, err)
		}
	}
	if len(pins) != len(theirs) {
		t.Errorf("%d tools in the status, %d at the server", len(pins), len(theirs))
	}
	for _, e := range tools {
		src.declare(v1alpha1.ToolDeclaration{
			Name: v1alpha1.ToolName("peer." + e.upstream), Upstream: v1alpha1.Identifier(e.upstream), SchemaDigest: pins[e.upstream], ReadWrite: e.class,
			Requirement: v1alpha1.ToolRequirement{Action: v1alpha1.Action(e.action), Resource: v1alpha1.RequiredResource{
				Namespace: "peer", Path: e.path, Ceiling: e.ceiling,
			}},
		})
	}
	binding := src.publish(t)
	for _, s := range binding.Statuses {
		if s.Name != "" && !s.Published {
			t.Errorf("%s: %s: %s", s.Name, s.Reason, s.Message)
		}
	}
	opened, err := turn.Open(context.WithoutCancel(t.Context()), turn.Options{Tools: binding.Tools, Capabilities: granted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.End() })
	catalogue, err := opened.Bridge.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range catalogue.Tools {
		if name, ours := strings.CutPrefix(tool.Name, "peer."); ours {
			if got, err := canonical.Hash(tool.InputSchema); err != nil || got != string(pins[name]) {
				t.Errorf("%s is published with the schema %s, which is not the server's (%v)", name, tool.InputSchema, err)
			}
		}
	}
	return opened
}

func run(t *testing.T, in *turn.Turn, steps []step) {
	t.Helper()
	for i, s := range steps {
		result, err := in.Bridge.Invoke(t.Context(), mcp.Invocation{CallID: "call-" + strconv.Itoa(i), Tool: "peer." + s.tool, Arguments: contract.Object(s.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		code, said := "", string(result.Output)
		if result.Error != nil {
			code, said = result.Error.Code, result.Error.Message
		}
		if result.Status != s.status || code != s.code || !strings.Contains(said, s.holds) {
			t.Errorf("%s %s: %s %s %.300s; want %s %s and %q", s.tool, s.arguments, result.Status, code, said, s.status, s.code, s.holds)
		}
	}
}

func below(action string, path ...string) contract.Capability {
	return contract.Capability{
		Resource: contract.ResourceRef{Namespace: "peer", Path: append(contract.Path{}, path...)}, Actions: []string{action}, Scope: contract.ScopeDescendants,
	}
}

func TestFilesystemServer(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"open/a.txt": "an open book", "closed/b.txt": "a closed one"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var ceiling []v1alpha1.PathSegment
	open := strings.Split(strings.Trim(root, "/"), "/")
	for _, segment := range open {
		ceiling = append(ceiling, v1alpha1.PathSegment(segment))
	}
	open = append(open, "open")
	at := bridged(t, serverCommand(t, filesystemServer, root))
	witness := stdio(serverCommand(t, filesystemServer, root))
	in := brokered(t, at, witness, []contract.Capability{below("read", open...), below("write", open...)},
		exposed{"read_text_file", "args.path.segments()", "read", ceiling, v1alpha1.ToolRead},
		exposed{"write_file", "args.path.segments()", "write", ceiling, v1alpha1.ToolWrite},
		exposed{"directory_tree", "args.path.segments()", "list", ceiling, v1alpha1.ToolRead})
	run(t, in, []step{
		{"read_text_file", `{"path":"` + root + `/open/a.txt"}`, contract.StatusSucceeded, "", "an open book"},
		{"read_text_file", `{"path":"` + root + `/closed/b.txt"}`, contract.StatusDenied, "no_matching_grant", ""},
		{"read_text_file", `{"path":"` + root + `/open/../closed/b.txt"}`, contract.StatusFailed, "tool_requirement_resolution_failed", ""},
		{"read_text_file", `{"path":"/etc/passwd"}`, contract.StatusFailed, "invalid_tool_requirement", ""},
		{"read_text_file", `{"path":7}`, contract.StatusFailed, "invalid_tool_arguments", ""},
		{"directory_tree", `{"path":"` + root + `/open"}`, contract.StatusDenied, "tool_unavailable", ""},
		{"write_file", `{"path":"` + root + `/open/c.txt","content":"new"}`, contract.StatusSucceeded, "", "wrote"},
		{"write_file", `{"path":"` + root + `/closed/c.txt","content":"new"}`, contract.StatusDenied, "no_matching_grant", ""},
		{"read_text_file", `{"path":"` + root + `/open/none.txt"}`, contract.StatusFailed, "upstream_tool_error", "ENOENT"},
		{"read_text_file", `{"path":"` + root + `/open/c.txt"}`, contract.StatusSucceeded, "", "new"},
	})
	if _, err := os.Stat(filepath.Join(root, "closed", "c.txt")); !os.IsNotExist(err) {
		t.Errorf("a refused call wrote: %v", err)
	}
}

func TestMemoryServer(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "memory.jsonl")
	cmd := serverCommand(t, memoryServer)
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+kept)
	in := brokered(t, bridged(t, cmd), stdio(serverCommand(t, memoryServer)),
		[]contract.Capability{below("create", "graph", "Atlas"), below("open", "graph")},
		exposed{"create_entities", "['graph', args.entities[0].name].filter(s, args.entities.size() == 1)", "create", []v1alpha1.PathSegment{"graph"}, v1alpha1.ToolWrite},
		exposed{"open_nodes", "['graph']", "open", []v1alpha1.PathSegment{"graph"}, v1alpha1.ToolRead},
		exposed{"delete_entities", "['graph', args.entityNames[0]]", "delete", []v1alpha1.PathSegment{"graph"}, v1alpha1.ToolWrite})
	entity := func(name string) string {
		return `{"name":"` + name + `","entityType":"project","observations":["ships on Friday"]}`
	}
	run(t, in, []step{
		{"create_entities", `{"entities":[` + entity("Atlas") + `]}`, contract.StatusSucceeded, "", "ships on Friday"},
		{"create_entities", `{"entities":[` + entity("Zeus") + `]}`, contract.StatusDenied, "no_matching_grant", ""},
		// What lies behind the first entry is not smuggled past: the path is not below the ceiling.
		{"create_entities", `{"entities":[` + entity("Atlas") + `,` + entity("Zeus") + `]}`, contract.StatusFailed, "invalid_tool_requirement", ""},
		{"create_entities", `{"entities":[]}`, contract.StatusFailed, "tool_requirement_resolution_failed", ""},
		{"delete_entities", `{"entityNames":["Atlas"]}`, contract.StatusDenied, "tool_unavailable", ""},
		{"open_nodes", `{"names":["Atlas","Zeus"]}`, contract.StatusSucceeded, "", `"Atlas"`},
	})
	if text, err := os.ReadFile(kept); err != nil || strings.Contains(string(text), "Zeus") {
		t.Errorf("the server kept %s (%v)", text, err)
	}
}

// TestEverythingServer is over the server's own transports: Streamable HTTP with session
// ids and answers as event streams, and the older one of SSE.
func TestEverythingServer(t *testing.T) {
	for transport, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(transport, func(t *testing.T) {
			tool := func(name, path string) exposed {
				return exposed{name, path, "use", nil, v1alpha1.ToolRead}
			}
			in := brokered(t, everything(t, transport)+path, stdio(serverCommand(t, everythingServer)),
				[]contract.Capability{below("use", "echo", "mine"), below("use", "free")},
				tool("echo", "['echo', args.message]"), tool("get-sum", "['free']"), tool("get-tiny-image", "['free']"),
				tool("get-structured-content", "['free', args.location]"), tool("get-resource-reference", "['free']"), tool("get-resource-links", "['free']"),
				tool("trigger-long-running-operation", "['free']"), tool("get-env", "['env']"))
			run(t, in, []step{
				{"echo", `{"message":"mine"}`, contract.StatusSucceeded, "", "Echo: mine"},
				{"echo", `{"message":"theirs"}`, contract.StatusDenied, "no_matching_grant", ""},
				{"get-env", `{}`, contract.StatusDenied, "no_matching_grant", ""},
				{"get-sum", `{"a":2,"b":40}`, contract.StatusSucceeded, "", "42"},
				{"get-tiny-image", `{}`, contract.StatusSucceeded, "", `"type":"image"`},
				{"get-structured-content", `{"location":"Chicago"}`, contract.StatusSucceeded, "", `"temperature"`},
				{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, contract.StatusSucceeded, "", `"resource"`},
				{"get-resource-links", `{"count":2}`, contract.StatusSucceeded, "", `"resource_link"`},
				// Progress is told while the answer is made.
				{"trigger-long-running-operation", `{"duration":0.2,"steps":4}`, contract.StatusSucceeded, "", "completed"},
			})
		})
	}
}

// TestGoServers are two servers made with Go libraries: the official SDK's, which answers
// with event streams here, and mark3labs/mcp-go's.
func TestGoServers(t *testing.T) {
	type page struct {
		ID string `json:"id" jsonschema:"the page"`
	}
	type text struct {
		Text string `json:"text"`
	}
	sdk := officialMCP.NewServer(&officialMCP.Implementation{Name: "pages", Version: "1"}, nil)
	officialMCP.AddTool(sdk, &officialMCP.Tool{Name: "get", Description: "Gets a page."},
		func(_ context.Context, _ *officialMCP.CallToolRequest, in page) (*officialMCP.CallToolResult, text, error) {
			return nil, text{"page " + in.ID}, nil
		})
	libre := otherServer.NewMCPServer("pages", "1")
	libre.AddTool(otherMCP.NewTool("get", otherMCP.WithDescription("Gets a page."), otherMCP.WithString("id", otherMCP.Required())),
		func(_ context.Context, r otherMCP.CallToolRequest) (*otherMCP.CallToolResult, error) {
			return otherMCP.NewToolResultText("page " + r.GetString("id", "")), nil
		})
	for name, handler := range map[string]http.Handler{
		"go-sdk": officialMCP.NewStreamableHTTPHandler(func(*http.Request) *officialMCP.Server { return sdk }, nil),
		"mcp-go": otherServer.NewStreamableHTTPServer(libre),
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t, handler) + "/mcp"
			in := brokered(t, at, &officialMCP.StreamableClientTransport{Endpoint: at}, []contract.Capability{below("read", "pages", "p1")},
				exposed{"get", "['pages', args.id]", "read", []v1alpha1.PathSegment{"pages"}, v1alpha1.ToolRead})
			run(t, in, []step{
				{"get", `{"id":"p2"}`, contract.StatusDenied, "no_matching_grant", ""},
				{"get", `{"id":"p1"}`, contract.StatusSucceeded, "", "page p1"},
				{"get", `{}`, contract.StatusFailed, "invalid_tool_arguments", ""},
				{"get", `{"id":""}`, contract.StatusFailed, "tool_requirement_resolution_failed", ""},
			})
		})
	}
}
