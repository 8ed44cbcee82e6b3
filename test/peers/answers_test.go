package peers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

// oddSchemas are inputs that broke products of this kind.
var oddSchemas = map[string]string{
	"refs":         `{"type":"object","$defs":{"p":{"type":"array","items":{"$ref":"#/$defs/p"}}},"properties":{"p":{"$ref":"#/$defs/p"},"text":{"type":"string"}}}`,
	"nullable":     `{"type":"object","properties":{"text":{"type":"string","nullable":true},"b":{"type":["string","null"]}}}`,
	"no-type":      `{"properties":{"text":{}},"x-more":1.50}`,
	"no-members":   `{"type":"object"}`,
	"empty":        `{}`,
	"wrong":        `{"type":"int"}`,
	"large-number": `{"type":"object","properties":{"n":{"maximum":9007199254740992,"multipleOf":0.1}}}`,
}

// sizes is a server of these tools; a call of one answers with as many bytes of text as
// its argument n says.
func sizes(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ N int } }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sizes","version":"1"}}`
	switch m.Method {
	case "initialize":
	case "tools/list":
		list := make([]string, 0, len(oddSchemas))
		for name, schema := range oddSchemas {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema))
		}
		result = `{"tools":[` + strings.Join(list, ",") + `]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"` + strings.Repeat("x", m.Params.Arguments.N) + `"}]}`
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// sizesOf are the tools of that server, as a ToolNamespace of that name publishes them.
func sizesOf(t *testing.T, name string) []kernel.Tool {
	t.Helper()
	src := discover(t, name, serve(t, http.HandlerFunc(sizes))+"/mcp")
	for _, s := range src.found {
		src.declare(v1alpha1.ToolDeclaration{
			Name: v1alpha1.ToolName(name + "." + string(s.Upstream)), Upstream: s.Upstream, SchemaDigest: s.SchemaDigest, ReadWrite: v1alpha1.ToolRead,
			Requirement: v1alpha1.ToolRequirement{Action: "use", Resource: v1alpha1.RequiredResource{Namespace: v1alpha1.Identifier(name), Path: "['" + string(s.Upstream) + "']"}},
		})
	}
	return src.publish(t).Tools
}

// sizesTurn is a turn with every tool of that server; granted is what it may use.
func sizesTurn(t *testing.T, tools []kernel.Tool, granted ...contract.Capability) *turn.Turn {
	t.Helper()
	opened, err := turn.Open(t.Context(), turn.Options{Tools: tools, Capabilities: granted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.End() })
	return opened
}

// TestOneVerbOfTwoSources: a grant for one source's tool says nothing about the other's
// of the same name.
func TestOneVerbOfTwoSources(t *testing.T) {
	in := sizesTurn(t, append(sizesOf(t, "peer"), sizesOf(t, "other")...), below("use", "no-members"))
	catalogue, err := in.Bridge.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range catalogue.Tools {
		if strings.HasSuffix(tool.Name, ".no-members") {
			names = append(names, tool.Name)
		}
	}
	if !slices.Equal(names, []string{"peer.no-members"}) {
		t.Errorf("the catalogue has %q", names)
	}
	for name, want := range map[string]contract.Status{"peer.no-members": contract.StatusSucceeded, "other.no-members": contract.StatusDenied} {
		result, err := in.Bridge.Invoke(t.Context(), mcp.Invocation{CallID: name, Tool: name, Arguments: contract.Object(`{"n":1}`)})
		if err != nil || result.Status != want {
			t.Errorf("%s: %s, %+v, %v; want %s", name, result.Status, result.Error, err, want)
		}
	}
}

// TestPublishedSchemas: the catalogue has the server's own schemas, to the digit, and not
// the tool whose schema is none.
func TestPublishedSchemas(t *testing.T) {
	in := sizesTurn(t, sizesOf(t, "peer"), below("use"))
	catalogue, err := in.Bridge.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]string{}
	for _, tool := range catalogue.Tools {
		if name, ours := strings.CutPrefix(tool.Name, "peer."); ours {
			published[name] = string(tool.InputSchema)
		}
	}
	for name, want := range oddSchemas {
		if name == "wrong" {
			want = ""
		}
		if published[name] != want {
			t.Errorf("%s: published as %s, want %s", name, published[name], want)
		}
	}
}

// TestLargeAnswers pass the kernel and the bridge whole; a denial before them changes
// nothing.
func TestLargeAnswers(t *testing.T) {
	in := sizesTurn(t, sizesOf(t, "peer"), below("use", "no-members"))
	run(t, in, []step{{"empty", `{"n":1}`, contract.StatusDenied, "no_matching_grant", ""}})
	for _, size := range []int{1, 64<<10 + 1, 1 << 20, 10 << 20} {
		result, err := in.Bridge.Invoke(t.Context(), mcp.Invocation{
			CallID: fmt.Sprintf("size-%d", size), Tool: "peer.no-members", Arguments: contract.Object(fmt.Sprintf(`{"n":%d}`, size)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if size > 4<<20 {
			if result.Status != contract.StatusFailed || result.Error.Code != "upstream_answer_too_large" {
				t.Errorf("%d bytes: %s, %+v", size, result.Status, result.Error)
			}
			continue
		}
		if result.Status != contract.StatusSucceeded || string(result.Output) != `"`+strings.Repeat("x", size)+`"` {
			t.Errorf("%d bytes: %s, %d bytes, %+v", size, result.Status, len(result.Output), result.Error)
		}
		encoded, err := mcp.EncodeCallResult(result, nil)
		if err != nil || !strings.Contains(string(encoded), strings.Repeat("x", size)) {
			t.Errorf("%d bytes: the harness gets %d (%v)", size, len(encoded), err)
		}
	}
}
