package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// exampleHost stands for the host that a turn hands to its runtime.
type exampleHost struct{}

func (exampleHost) Invoke(_ context.Context, tool string, arguments contract.Object, _ *int64) contract.ToolResult {
	return contract.ToolResult{
		CallID: "call-1", Tool: tool, Status: contract.StatusSucceeded,
		Output: arguments, CompletedAt: contract.At(time.Unix(0, 0)),
	}
}

func exampleCatalogue() contract.Catalogue {
	readOnly := true
	tools := []contract.PublishedTool{{
		Name: "files.read", Description: "Read a file.", InputSchema: contract.Object(`{"type":"object"}`),
		Annotations: &contract.PublishedAnnotations{ReadOnlyHint: &readOnly},
		Metadata:    &contract.PublishedMetadata{Namespace: "files", Source: "sharedos"},
	}}
	hash, err := contract.CatalogHash(tools)
	if err != nil {
		panic(err)
	}
	return contract.Catalogue{Version: contract.Version, ExecutionID: "execution-1", CatalogHash: hash, Tools: tools}
}

// A bridge is opened inside a turn, served on loopback, and closed with the turn.
func ExampleOpenTurnBridge() {
	ctx := context.Background()
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: exampleCatalogue(), Host: exampleHost{}})
	defer bridge.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: bridge})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := mcp.NewHTTPServer(ctx, mcp.HTTPOptions{Server: server})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = listener.Close() }()

	// What a harness does with listener.URL():
	res, err := http.Post(listener.URL(), "application/json", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read","arguments":{"path":["Work"]}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(body.String())
	fmt.Println(bridge.Aliases()[0].Alias, "is", bridge.Aliases()[0].Tool)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"path\":[\"Work\"]}"}],"isError":false}}
	// files_read is files.read
}

// The server knows no transport: one message in, at most one answer out.
func ExampleServer_Handle() {
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: exampleCatalogue(), Host: exampleHost{}})
	defer bridge.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: bridge})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Printf("%s\n", server.Handle(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))
	fmt.Printf("%q\n", server.Handle(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// ""
}

// A harness that spawns its server talks to it over a pair of streams.
func ExampleServeStdio() {
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: exampleCatalogue(), Host: exampleHost{}})
	defer bridge.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: bridge})
	if err != nil {
		fmt.Println(err)
		return
	}
	input := strings.NewReader(`{"jsonrpc":"2.0","id":"a","method":"ping"}` + "\n")
	if err := mcp.ServeStdio(context.Background(), server, input, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: {"jsonrpc":"2.0","id":"a","result":{}}
}

// A token names the session it was minted for, and expires.
func ExampleVerifyExecutionToken() {
	secret := []byte("a secret of at least 32 bytes ..")
	expires := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	token, err := mcp.MintExecutionToken(mcp.ExecutionClaims{
		ExecutionID: "execution-1", NamespaceID: "team-atlas", Actor: contract.CanonicalActor(contract.Agent("alice-assistant")),
		CatalogHash: exampleCatalogue().CatalogHash, ExpiresAt: contract.At(expires),
	}, secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	expect := mcp.ExpectedClaims{ExecutionID: "execution-1"}
	claims, err := mcp.VerifyExecutionToken(token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: expires.Add(-time.Minute), Expect: expect})
	fmt.Println(claims.Actor, err)
	_, err = mcp.VerifyExecutionToken(token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: expires, Expect: expect})
	fmt.Println(err)
	// Output:
	// agent:alice-assistant <nil>
	// execution token refused: expired
}

func ExampleHarnessConfigFile() {
	file, err := mcp.HarnessConfigFile(mcp.HarnessCodex, mcp.Connection{URL: "http://127.0.0.1:53124/mcp", Token: "token"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Filename)
	fmt.Print(file.Contents)
	// Output:
	// config.toml
	// [mcp_servers.sharedos]
	// url = "http://127.0.0.1:53124/mcp"
	// required = true
	// tool_timeout_sec = 120
	// default_tools_approval_mode = "approve"
	// http_headers = { Authorization = "Bearer token" }
}

func ExampleAgentSDKOptions() {
	options, err := mcp.AgentSDKOptions(mcp.Connection{URL: "http://127.0.0.1:53124/mcp"})
	fmt.Println(options.AllowedTools, err)
	// Output: [mcp__sharedos__*] <nil>
}

func ExampleHarnessToolAlias() {
	fmt.Println(mcp.PortableName("files.read"), mcp.HarnessToolAlias("sharedos", "files.read"))
	// Output: files_read mcp__sharedos__files_read
}

func ExampleClassifyTool() {
	policy, err := mcp.NewToolPolicy(mcp.ToolPolicy{HarnessLocal: []string{"Bash"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range []string{"mcp__sharedos__files_read", "Bash", "mcp__other__x"} {
		fmt.Println(tool, mcp.ClassifyTool(policy, []string{"files.read"}, tool))
	}
	// Output:
	// mcp__sharedos__files_read managed
	// Bash harness_local
	// mcp__other__x unknown
}

func ExampleEncodeCallResult() {
	result := contract.ToolResult{
		Tool: "files.read", Status: contract.StatusDenied,
		Error: &contract.ProtocolError{Code: contract.CodeNoMatchingGrant, Message: "No grant allows this."},
	}
	raw, err := mcp.EncodeCallResult(result, nil)
	fmt.Println(string(raw), err)
	// Output: {"content":[{"type":"text","text":"{\"status\":\"denied\",\"code\":\"no_matching_grant\",\"message\":\"No grant allows this.\"}"}],"isError":true,"_meta":{"sharedos/status":"denied","sharedos/code":"no_matching_grant"}} <nil>
}

func ExampleEncodeTool() {
	raw, err := mcp.EncodeTool(exampleCatalogue().Tools[0])
	fmt.Println(string(raw), err)
	// Output: {"name":"files.read","description":"Read a file.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"sharedos/namespace":"files","sharedos/source":"sharedos"}} <nil>
}

func ExampleEncodeError() {
	fmt.Println(string(mcp.EncodeError(nil, &mcp.RPCError{Code: mcp.CodeParseError, Message: "Not JSON"})))
	// Output: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Not JSON"}}
}

func ExampleNewHTTPHandler() {
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: exampleCatalogue(), Host: exampleHost{}})
	defer bridge.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: bridge})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := mcp.NewHTTPHandler(mcp.HTTPOptions{
		Server: server, CreateSessionID: func() string { return "session-1" },
		Authorize: func(bearer string, present bool) bool { return present && bearer == "token" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	fmt.Println(handler.SessionID())
	// Output: session-1
}

func ExamplePolicyHash() {
	policy, err := mcp.NewToolPolicy(mcp.ToolPolicy{ExternalDirect: []string{"github"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	hash, err := mcp.PolicyHash(policy)
	fmt.Println(policy.Mode, len(hash), err)
	// Output: hybrid 64 <nil>
}
