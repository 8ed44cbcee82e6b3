package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	"github.com/sharedos-dev/operator/mcp"
)

// rpc is an error answer with the given id.
func rpc(id string, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, message)
}

func unreadable(rule string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"The body is not strict JSON","data":{"rule":%q}}}`, rule)
}

func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func notMessage() string { return rpc("null", -32700, "Not a JSON-RPC message") }

const called = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"hits\":[]}"}],"isError":false}}`

func TestHandle(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	tests := map[string]struct{ send, want string }{
		// Ids.
		"id 0":              {`{"jsonrpc":"2.0","id":0,"method":"ping"}`, pong("0")},
		"id -1":             {`{"jsonrpc":"2.0","id":-1,"method":"ping"}`, pong("-1")},
		"id 1.5":            {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, pong("1.5")},
		"id 1e2 is echoed":  {`{"jsonrpc":"2.0","id":1e2,"method":"ping"}`, pong("1e2")},
		"id of 19 digits":   {`{"jsonrpc":"2.0","id":9007199254740993123,"method":"ping"}`, pong("9007199254740993123")},
		"id empty string":   {`{"jsonrpc":"2.0","id":"","method":"ping"}`, pong(`""`)},
		"id string":         {`{"jsonrpc":"2.0","id":"a","method":"ping"}`, pong(`"a"`)},
		"id escaped string": {`{"jsonrpc":"2.0","id":"\u0061","method":"ping"}`, pong(`"\u0061"`)},
		"id null":           {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, notMessage()},
		"id true":           {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, notMessage()},
		"id object":         {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, notMessage()},
		"id missing":        {`{"jsonrpc":"2.0","method":"ping"}`, ""},

		// What is no message.
		"number":               {`1`, notMessage()},
		"empty object":         {`{}`, notMessage()},
		"string":               {`"ping"`, notMessage()},
		"empty":                {``, unreadable("syntax")},
		"white space":          {" \n", unreadable("syntax")},
		"not JSON":             {`{"jsonrpc":`, unreadable("syntax")},
		"two documents":        {ping + ping, unreadable("trailing_data")},
		"invalid UTF-8":        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", unreadable("utf8")},
		"lone surrogate":       {`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`, unreadable("utf8")},
		"byte order mark":      {"\ufeff" + ping, unreadable("syntax")},
		"duplicate method":     {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, unreadable("duplicate_key")},
		"duplicate, escaped":   {`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, unreadable("duplicate_key")},
		"duplicate argument":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"a":{"b":1,"b":2}}}}`, unreadable("duplicate_key")},
		"nested too deeply":    {strings.Repeat("[", 200) + strings.Repeat("]", 200), unreadable("depth")},
		"deep arguments":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}}`, unreadable("depth")},
		"too many values":      {"[" + strings.Repeat("1,", strictjson.MaxValues) + "1]", unreadable("too_many_values")},
		"commas in a string":   {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(`,\"[{`, strictjson.MaxValues) + `"}`, rpc("1", -32601, "Method not found")},
		"case variant":         {`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, notMessage()},
		"case variant beside":  {`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, notMessage()},
		"kelvin sign":          {`{"jsonrpc":"2.0","id":1,"method":"ping","re\u017fult":1}`, notMessage()},
		"result is no request": {`{"jsonrpc":"2.0","id":1,"result":{}}`, rpc("1", -32600, "Invalid request")},
		"no version":           {`{"id":1,"method":"ping"}`, rpc("1", -32600, "Invalid request")},
		"version 1.0":          {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, rpc("1", -32600, "Invalid request")},
		"version as number":    {`{"jsonrpc":2.0,"id":1,"method":"ping"}`, rpc("1", -32600, "Invalid request")},
		"method as number":     {`{"jsonrpc":"2.0","id":1,"method":1}`, rpc("1", -32600, "Invalid request")},
		"no method":            {`{"jsonrpc":"2.0","id":"x"}`, rpc(`"x"`, -32600, "Invalid request")},
		"no id, no method":     {`{"jsonrpc":"2.0"}`, notMessage()},

		// Notifications.
		"initialized":                   {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		"unknown notification":          {`{"jsonrpc":"2.0","method":"x","params":7}`, ""},
		"cancelled without params":      {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ""},
		"cancelled, wrong id":           {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`, ""},
		"cancelled, params of no shape": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`, ""},
		"cancelled, nothing runs":       {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, ""},
		"call as a notification":        {`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"files.read"}}`, ""},

		// Methods.
		"unknown method":       {`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, rpc("1", -32601, "Method not found")},
		"server/discover":      {`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}`, rpc("1", -32601, "Method not found")},
		"empty method":         {`{"jsonrpc":"2.0","id":1,"method":""}`, rpc("1", -32601, "Method not found")},
		"method in other case": {`{"jsonrpc":"2.0","id":1,"method":"Ping"}`, rpc("1", -32601, "Method not found")},
		"ping with params":     {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1},"x":2}}`, pong("1")},
		"ping, wrong params":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, pong("1")},
		"unknown member":       {`{"jsonrpc":"2.0","id":1,"method":"ping","x":{"y":[]}}`, pong("1")},
		"param case variant":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","Name":"files.search"}}`, unreadable("case_variant")},
		"only a case variant":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"files.read"}}`, unreadable("case_variant")},
		"version case variant": {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"ProtocolVersion":"2025-06-18"}}`, unreadable("case_variant")},

		// tools/call.
		"call":                        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{}}}`, called},
		"call without arguments":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read"}}`, called},
		"call, null arguments":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":null}}`, called},
		"call, case in arguments":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"name":1,"Name":2}}}`, called},
		"call with _meta":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","_meta":{"progressToken":"p"}}}`, called},
		"call, list of arguments":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":[]}}`, rpc("1", -32602, "The arguments must be an object")},
		"call, string of arguments":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":"{}"}}`, rpc("1", -32602, "The arguments must be an object")},
		"call without params":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, rpc("1", -32602, "A tool name is required")},
		"call, params list":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["files.read"]}`, rpc("1", -32602, "A tool name is required")},
		"call without a name":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`, rpc("1", -32602, "A tool name is required")},
		"call, empty name":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""}}`, rpc("1", -32602, "A tool name is required")},
		"call, name is a number":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, rpc("1", -32602, "A tool name is required")},
		"call, portable name":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read"}}`, called},
		"call, alias":                 {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__sharedos__files_read"}}`, called},
		"call, alias of other server": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__other__files_read"}}`, unavailable},
		"call, unpublished":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.delete"}}`, unavailable},
		"call, misspelled":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.reed"}}`, unavailable},
		"call, other case":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Files.Read"}}`, unavailable},
		"call, look-alike":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.r\u0435ad"}}`, unavailable},

		// Batches.
		"batch":                  {"[" + ping + `,{"jsonrpc":"2.0","id":"b","method":"ping"}]`, "[" + pong("1") + "," + pong(`"b"`) + "]"},
		"batch of one":           {"[" + ping + "]", "[" + pong("1") + "]"},
		"batch of notifications": {`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`, ""},
		"batch, mixed":           {`[{"jsonrpc":"2.0","method":"a"},` + ping + `,5,{"jsonrpc":"2.0","id":2},{"jsonrpc":"2.0","id":null,"method":"ping"}]`, "[" + pong("1") + "," + notMessage() + "," + rpc("2", -32600, "Invalid request") + "," + notMessage() + "]"},
		"empty batch":            {`[]`, rpc("null", -32600, "Empty batch")},
		"nested batch":           {"[[" + ping + "]]", "[" + notMessage() + "]"},
		"batch, duplicate key":   {"[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"ping","method":"x"}]`, unreadable("duplicate_key")},
		"batch, case variant":    {"[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"Name":"x"}}]`, "[" + pong("1") + "," + unreadable("case_variant") + "]"},
		"batch of 1,000":         {"[" + strings.TrimSuffix(strings.Repeat(ping+",", 1000), ",") + "]", "[" + strings.TrimSuffix(strings.Repeat(pong("1")+",", 1000), ",") + "]"},
		"batch of too many":      {"[" + strings.TrimSuffix(strings.Repeat(ping+",", mcp.MaxBatch+1), ",") + "]", unreadable("batch_too_large")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			got := newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(tt.send))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if calls := len(f.seen()); calls > 1 || (calls == 1) != strings.Contains(tt.want, `"content"`) {
				t.Errorf("%d calls reached the invoker", calls)
			}
		})
	}
}

const unavailable = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text",` +
	`"text":"{\"status\":\"denied\",\"code\":\"tool_unavailable\",\"message\":\"The tool is not available.\"}"}],` +
	`"isError":true,"_meta":{"sharedos/status":"denied","sharedos/code":"tool_unavailable"}}}`

func TestInitializeVersions(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"protocolVersion":"2025-06-18"}`: "2025-06-18",
		`{"protocolVersion":"2025-03-26"}`: "2025-03-26",
		`{"protocolVersion":"2024-11-05"}`: "2024-11-05",
		`{"protocolVersion":"2025-11-25"}`: "2025-06-18",
		`{"protocolVersion":"2026-07-28"}`: "2025-06-18",
		`{"protocolVersion":20250618}`:     "2025-06-18",
		`{}`:                               "2025-06-18",
		`[]`:                               "2025-06-18",
	}
	for params, want := range tests {
		server := newServer(t, mcp.ServerOptions{Invoker: newFake(t)})
		if server.Initialized() {
			t.Error("initialized before any message")
		}
		got := string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+params+`}`)))
		answer := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + want + `","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"sharedos","version":"1"}}}`
		if diff := cmp.Diff(answer, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", params, diff)
		}
		if !server.Initialized() {
			t.Errorf("%s: not initialized", params)
		}
	}
}

func TestServerDefaults(t *testing.T) {
	t.Parallel()
	if _, err := mcp.NewServer(mcp.ServerOptions{}); !errors.Is(err, mcp.ErrNoInvoker) {
		t.Errorf("without an invoker: %v", err)
	}
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: newFake(t)})
	if err != nil {
		t.Fatal(err)
	}
	got := string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)))
	if !strings.Contains(got, `"serverInfo":{"name":"sharedos","version":"`) || strings.Contains(got, `"version":""`) {
		t.Errorf("answer %s", got)
	}
}

func TestListOfNothing(t *testing.T) {
	t.Parallel()
	for name, tools := range map[string][]contract.PublishedTool{"nil": nil, "empty": {}} {
		f := &fake{catalogue: catalogueOf(t, tools...)}
		got := string(newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
		want := `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"_meta":{"sharedos/catalogHash":"` + f.catalogue.CatalogHash + `","sharedos/executionId":"execution-1"}}}`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAmbiguousNames: a form that two tools share leads to neither.
func TestAmbiguousNames(t *testing.T) {
	t.Parallel()
	f := &fake{catalogue: catalogueOf(t, plainTool("a.b_c"), plainTool("a_b.c"), plainTool("x-y"), plainTool("x.y"), plainTool("x_y"), plainTool("z.1"))}
	server := newServer(t, mcp.ServerOptions{Invoker: f, CreateID: func() string { return "call" }})
	tests := []struct{ sent, tool, alias string }{
		{"a_b_c", "a_b_c", ""}, // two tools
		{"a.b_c", "a.b_c", ""},
		{"x_y", "x_y", ""},                               // exact before portable
		{"mcp__sharedos__x_y", "mcp__sharedos__x_y", ""}, // three tools
		{"z_1", "z.1", "z_1"},
		{"mcp__sharedos__z_1", "z.1", "mcp__sharedos__z_1"},
	}
	var want []mcp.Invocation
	for _, tt := range tests {
		server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tt.sent+`"}}`))
		want = append(want, mcp.Invocation{CallID: "call", Tool: tt.tool, Alias: tt.alias, Arguments: contract.Object("{}")})
	}
	if diff := cmp.Diff(want, f.seen()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestArgumentsKeepTheirDigits: what the harness wrote is what the kernel gets.
func TestArgumentsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	const arguments = `{ "id": 9007199254740993123, "x": 1.0e0, "s": "\u0061" }`
	newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":`+arguments+`}}`))
	if calls := f.seen(); len(calls) != 1 || string(calls[0].Arguments) != arguments {
		t.Errorf("calls %v", calls)
	}
}

func TestInvokerFaults(t *testing.T) {
	t.Parallel()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read"}}`
	internal := rpc("1", -32603, "Internal error")
	tests := map[string]struct {
		answer   func(context.Context, mcp.Invocation) (contract.ToolResult, error)
		want     string
		reported bool
	}{
		"error": {func(context.Context, mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{}, errBroken
		}, internal, true},
		"panic": {func(context.Context, mcp.Invocation) (contract.ToolResult, error) { panic("secret") }, internal, true},
		"coded error": {func(context.Context, mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{}, fmt.Errorf("wrapped: %w", &mcp.RPCError{Code: -32001, Message: "busy", Data: []byte(`{ "after": 5 }`)})
		}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"busy","data":{"after":5}}}`, false},
		"coded error, broken data": {func(context.Context, mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{}, &mcp.RPCError{Code: -32001, Message: "busy", Data: []byte(`{"x`)}
		}, rpc("1", -32001, "busy"), false},
		"result of another tool": {func(_ context.Context, c mcp.Invocation) (contract.ToolResult, error) {
			c.Tool = "files.search"
			return succeed(c, "1"), nil
		}, internal, true},
		"no status": {func(_ context.Context, c mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{Tool: c.Tool}, nil
		}, internal, true},
		"denied without an error": {func(_ context.Context, c mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{Tool: c.Tool, Status: contract.StatusDenied}, nil
		}, internal, true},
		"output that is no JSON": {func(_ context.Context, c mcp.Invocation) (contract.ToolResult, error) {
			return succeed(c, `{"a":`), nil
		}, internal, true},
		"closed bridge": {func(context.Context, mcp.Invocation) (contract.ToolResult, error) {
			return contract.ToolResult{}, fmt.Errorf("wrapped: %w", mcp.ErrBridgeClosed)
		}, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.answer = tt.answer
			var reported []error
			server := newServer(t, mcp.ServerOptions{Invoker: f, OnError: func(_ context.Context, err error) { reported = append(reported, err) }})
			if diff := cmp.Diff(tt.want, string(server.Handle(t.Context(), []byte(call)))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if (len(reported) == 1) != tt.reported || len(reported) > 1 {
				t.Errorf("reported %v", reported)
			}
			for _, err := range reported {
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the report %q repeats the panic's value", err)
				}
			}
		})
	}
}

// TestCatalogueFaults: without a catalogue nothing is listed, and names go to the
// kernel as they are.
func TestCatalogueFaults(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.fault = errBroken
	var reports int
	server := newServer(t, mcp.ServerOptions{Invoker: f, OnError: func(context.Context, error) { reports++ }})
	got := string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	if diff := cmp.Diff(rpc("1", -32603, "Internal error"), got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	got = string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read"}}`)))
	if diff := cmp.Diff(unavailable, got); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if reports != 2 {
		t.Errorf("%d reports, want 2", reports)
	}
	if calls := f.seen(); len(calls) != 1 || calls[0].Tool != "files_read" || calls[0].Alias != "" {
		t.Errorf("calls %v", calls)
	}
}

func TestCancelledContextAnswersNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer = func(ctx context.Context, _ mcp.Invocation) (contract.ToolResult, error) {
		return contract.ToolResult{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := newServer(t, mcp.ServerOptions{Invoker: f})
	if got := server.Handle(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read"}}`)); got != nil {
		t.Errorf("answer %s", got)
	}
}

// TestCancellation: a notification ends the call that runs under the id, and only
// that one; the cancelled call has no answer.
func TestCancellation(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started, release := make(chan string), make(chan struct{})
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		started <- call.Tool
		select {
		case <-ctx.Done():
			return refuse(call, contract.StatusFailed, contract.CodeToolExecutionFailed, "cancelled", nil), nil
		case <-release:
			return succeed(call, `"done"`), nil
		}
	}
	server := newServer(t, mcp.ServerOptions{Invoker: f})
	answers := map[string]chan string{`7`: make(chan string, 1), `"7"`: make(chan string, 1)}
	for id, answer := range answers {
		go func() {
			answer <- string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"files.read"}}`)))
		}()
		<-started
	}
	server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"x"}}`))
	if got := <-answers[`7`]; got != "" {
		t.Errorf("the cancelled call answered %s", got)
	}
	close(release)
	want := `{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"done"}],"isError":false}}`
	if diff := cmp.Diff(want, <-answers[`"7"`]); diff != "" {
		t.Errorf("the other call (-want +got):\n%s", diff)
	}
}

// TestCancellationOfASharedID: two clients use one id, neither can end the other's call.
func TestCancellationOfASharedID(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started, release := make(chan struct{}), make(chan struct{})
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		started <- struct{}{}
		<-release
		if ctx.Err() != nil {
			return contract.ToolResult{}, ctx.Err()
		}
		return succeed(call, `"done"`), nil
	}
	server := newServer(t, mcp.ServerOptions{Invoker: f})
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			answers <- string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read"}}`)))
		}()
		<-started
	}
	server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	close(release)
	for range 2 {
		if got := <-answers; !strings.Contains(got, "done") {
			t.Errorf("answer %q", got)
		}
	}
}

// spans records frames.
type spans struct{ frames []mcp.Frame }

type span struct{ s *spans }

type spanKey struct{}

func (s *spans) StartFrame(ctx context.Context, size int) (context.Context, mcp.FrameSpan) {
	return context.WithValue(ctx, spanKey{}, size), span{s}
}

func (s span) End(f mcp.Frame) { s.s.frames = append(s.s.frames, f) }

func TestSpans(t *testing.T) {
	t.Parallel()
	s := &spans{}
	f := newFake(t)
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		if ctx.Value(spanKey{}) == nil {
			t.Error("the call runs outside of its frame's context")
		}
		return refuse(call, contract.StatusDenied, "no_matching_grant", "no", nil), nil
	}
	server := newServer(t, mcp.ServerOptions{Invoker: f, Spans: s, CreateID: func() string { return "call-1" }})
	call := server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read"}}`))
	other := server.Handle(t.Context(), []byte(`[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"evil\n"}]`))
	broken := server.Handle(t.Context(), []byte(`{`))
	want := []mcp.Frame{
		{Messages: 1, Method: "tools/call", CallID: "call-1", Tool: "files.read", Status: "denied", Code: "no_matching_grant", ResponseBytes: len(call)},
		{Messages: 2, Method: "message", ResponseBytes: len(other) - 2},
		{ResponseBytes: len(broken)},
	}
	if diff := cmp.Diff(want, s.frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

// TestUnsortedCatalogue: the list is in name order, whatever the invoker's.
func TestUnsortedCatalogue(t *testing.T) {
	t.Parallel()
	c := catalogueOf(t, plainTool("b"), plainTool("a"))
	f := &fake{catalogue: c}
	got := string(newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	if a, b := strings.Index(got, `"name":"a"`), strings.Index(got, `"name":"b"`); a < 0 || b < a {
		t.Errorf("list %s", got)
	}
	if f.catalogue.Tools[0].Name != "b" {
		t.Error("the invoker's own list was reordered")
	}
}

// TestBrokenSchema: a schema that is no JSON is never sent on.
func TestBrokenSchema(t *testing.T) {
	t.Parallel()
	for _, edit := range []func(*contract.PublishedTool){
		func(tool *contract.PublishedTool) { tool.InputSchema = contract.Object(`{"a"`) },
		func(tool *contract.PublishedTool) { tool.OutputSchema = contract.Object(`{"a"`) },
	} {
		tool := searchTool()
		edit(&tool)
		f := &fake{catalogue: contract.Catalogue{ExecutionID: "e", CatalogHash: "h", Tools: []contract.PublishedTool{tool}}}
		got := string(newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
		if diff := cmp.Diff(rpc("1", -32603, "Internal error"), got); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	}
}

// TestListFollowsTheCatalogue: what is listed is what the invoker has now.
func TestListFollowsTheCatalogue(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	server := newServer(t, mcp.ServerOptions{Invoker: f})
	list := func() string {
		return string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	}
	first := list()
	if second := list(); second != first {
		t.Errorf("the same catalogue is listed in two ways")
	}
	f.catalogue = catalogueOf(t, plainTool("files.stat"))
	if third := list(); !strings.Contains(third, "files.stat") || strings.Contains(third, "files.read") {
		t.Errorf("list %s", third)
	}
}
