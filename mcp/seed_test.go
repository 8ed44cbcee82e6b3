package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// seedBridge is the bridge of the reference: one tool, a bearer token, and
// instructions.
func seedBridge(t *testing.T) (*fake, *mcp.HTTPServer) {
	t.Helper()
	f := &fake{catalogue: catalogueOf(t, searchTool())}
	server := newServer(t, mcp.ServerOptions{Invoker: f, Instructions: "…"})
	return f, serveHTTP(t, mcp.HTTPOptions{
		Server:    server,
		Authorize: func(bearer string, present bool) bool { return present && bearer == "token-1" },
	})
}

const seedList = `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"files.search",` +
	`"description":"Semantically search files inside an explicitly granted path.",` +
	`"inputSchema":{"type":"object","required":["path","query"],"properties":{}},` +
	`"outputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true},` +
	`"_meta":{"sharedos/namespace":"files","sharedos/source":"sharedos"}}],` +
	`"_meta":{"sharedos/catalogHash":"HASH","sharedos/executionId":"execution-1"}}}`

// TestSeedSession is the curl session of the MCP API reference.
func TestSeedSession(t *testing.T) {
	t.Parallel()
	f, bridge := seedBridge(t)
	const auth = "authorization: Bearer token-1"
	steps := []struct {
		name, send string
		status     int
		want       string
	}{
		{
			"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":false}},` +
				`"serverInfo":{"name":"sharedos","version":"1"},"instructions":"…"}}`,
		},
		{"initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
		{"list", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, 200, strings.Replace(seedList, "HASH", f.catalogue.CatalogHash, 1)},
		{
			"call", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files.search","arguments":{"path":["Work"],"query":"ship date"}}}`, 200,
			`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"hits\":[]}"}],"structuredContent":{"hits":[]},"isError":false}}`,
		},
	}
	for _, step := range steps {
		got := send(t, http.MethodPost, bridge.URL(), step.send, auth, jsonType)
		if got.status != step.status {
			t.Errorf("%s: status %d, want %d", step.name, got.status, step.status)
		}
		if diff := cmp.Diff(step.want, got.body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if id := got.header.Get("mcp-session-id"); id != bridge.SessionID() {
			t.Errorf("%s: session %q, want %q", step.name, id, bridge.SessionID())
		}
	}
	want := []mcp.Invocation{{Tool: "files.search", Arguments: contract.Object(`{"path":["Work"],"query":"ship date"}`)}}
	calls := f.seen()
	for i := range calls {
		if calls[i].CallID == "" {
			t.Error("a call without an id")
		}
		calls[i].CallID = ""
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestSeedDenial is the reference's denied call.
func TestSeedDenial(t *testing.T) {
	t.Parallel()
	f, bridge := seedBridge(t)
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		return refuse(call, contract.StatusDenied, contract.CodeNoMatchingGrant, "…", nil), nil
	}
	const want = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text",` +
		`"text":"{\"status\":\"denied\",\"code\":\"no_matching_grant\",\"message\":\"…\"}"}],"isError":true,` +
		`"_meta":{"sharedos/status":"denied","sharedos/code":"no_matching_grant"}}}`
	got := send(t, http.MethodPost, bridge.URL(), `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files.search"}}`,
		"authorization: Bearer token-1", jsonType)
	if got.status != 200 {
		t.Errorf("status %d", got.status)
	}
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
