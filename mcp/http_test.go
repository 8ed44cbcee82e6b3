package mcp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

const (
	pingBody = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	callBody = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read"}}`
	noteBody = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	goodAuth = "authorization: Bearer token-1"
)

// row is one answer of the status table.
type row struct {
	status                    int
	body                      string
	session                   bool
	contentType, allow, asked string
	noStore                   bool
}

func rowOf(a answer, bridge *mcp.HTTPServer) row {
	return row{
		status: a.status, body: a.body, session: a.header.Get("mcp-session-id") == bridge.SessionID(),
		contentType: a.header.Get("content-type"), allow: a.header.Get("allow"),
		asked: a.header.Get("www-authenticate"), noStore: a.header.Get("cache-control") == "no-store",
	}
}

func jsonRow(status int, body string, session bool) row {
	return row{status: status, body: body, session: session, contentType: "application/json", noStore: true}
}

func frames(answers ...string) string {
	var b strings.Builder
	for _, a := range answers {
		b.WriteString("event: message\ndata: " + a + "\n\n")
	}
	return b.String()
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{
		Server: newServer(t, mcp.ServerOptions{Invoker: f}),
		Authorize: func(bearer string, present bool) bool {
			if bearer == "explode" {
				panic("secret")
			}
			return present && bearer == "token-1"
		},
	})
	unauthorized := jsonRow(401, `{"error":"unauthorized"}`, false)
	unauthorized.asked = `Bearer realm="sharedos"`
	notAllowed := jsonRow(405, `{"error":"method_not_allowed"}`, false)
	notAllowed.allow = "POST, DELETE"
	headNotAllowed := notAllowed
	headNotAllowed.body = ""
	unknown := jsonRow(404, `{"error":"unknown_session"}`, false)
	forbidden := jsonRow(403, `{"error":"forbidden_origin"}`, false)
	unsupported := jsonRow(415, `{"error":"unsupported_media_type"}`, false)
	pongRow := jsonRow(200, pong("1"), true)
	events := func(answers ...string) row {
		return row{status: 200, body: frames(answers...), session: true, contentType: "text/event-stream", noStore: true}
	}
	const sse = "accept: text/event-stream"
	twice := "[" + pingBody + "," + noteBody + "," + strings.Replace(pingBody, "1", `"b"`, 1) + "]"
	big := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", mcp.DefaultBodyLimit) + `"}}`
	session := "mcp-session-id: " + bridge.SessionID()
	tests := map[string]struct {
		method, path, body string
		headers            []string
		want               row
	}{
		"1 other path":                    {"POST", "/", pingBody, []string{goodAuth, jsonType}, row{status: 404}},
		"1 trailing slash":                {"POST", "/mcp/", pingBody, []string{goodAuth, jsonType}, row{status: 404}},
		"1 longer path":                   {"GET", "/mcp/x", "", nil, row{status: 404}},
		"1 before the origin":             {"POST", "/x", pingBody, []string{"origin: http://evil.example"}, row{status: 404}},
		"a query is not the path":         {"POST", "/mcp?x=1", pingBody, []string{goodAuth, jsonType}, pongRow},
		"hardening: other host":           {"POST", "/mcp", pingBody, []string{"host: evil.example"}, forbidden},
		"hardening: other origin":         {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "origin: http://evil.example"}, forbidden},
		"hardening: origin before method": {"OPTIONS", "/mcp", "", []string{"origin: http://evil.example"}, forbidden},
		"hardening: loopback origin":      {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "origin: http://localhost:3000"}, pongRow},
		"hardening: text/plain":           {"POST", "/mcp", pingBody, []string{"content-type: text/plain;charset=UTF-8"}, unsupported},
		"hardening: a form":               {"POST", "/mcp", pingBody, []string{goodAuth, "content-type: application/x-www-form-urlencoded"}, unsupported},
		"hardening: content type missing": {"POST", "/mcp", pingBody, []string{goodAuth}, pongRow},
		"hardening: JSON with a charset":  {"POST", "/mcp", pingBody, []string{goodAuth, "content-type: application/json; charset=utf-8"}, pongRow},
		"hardening: too large, announced": {"POST", "/mcp", big, []string{goodAuth, jsonType}, jsonRow(413, `{"error":"payload_too_large"}`, false)},
		"2 no token":                      {"POST", "/mcp", pingBody, []string{jsonType}, unauthorized},
		"2 other token":                   {"POST", "/mcp", pingBody, []string{"authorization: Bearer token-2", jsonType}, unauthorized},
		"2 other scheme":                  {"POST", "/mcp", pingBody, []string{"authorization: Basic token-1", jsonType}, unauthorized},
		"2 two tokens":                    {"POST", "/mcp", pingBody, []string{goodAuth, "authorization: Bearer token-2", jsonType}, unauthorized},
		"2 before the session":            {"POST", "/mcp", pingBody, []string{"mcp-session-id: other"}, unauthorized},
		"2 for every method":              {"GET", "/mcp", "", nil, unauthorized},
		"2 the scheme has no case":        {"POST", "/mcp", pingBody, []string{"authorization: bEARER token-1", jsonType}, pongRow},
		"3 other session":                 {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "mcp-session-id: other"}, unknown},
		"3 empty session":                 {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "mcp-session-id: "}, unknown},
		"3 two sessions":                  {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, session, "mcp-session-id: other"}, unknown},
		"3 before the method":             {"DELETE", "/mcp", "", []string{goodAuth, "mcp-session-id: other"}, unknown},
		"this session":                    {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, session}, pongRow},
		"4 delete":                        {"DELETE", "/mcp", "", []string{goodAuth, session}, row{status: 200}},
		"5 get":                           {"GET", "/mcp", "", []string{goodAuth, sse}, notAllowed},
		"5 put":                           {"PUT", "/mcp", pingBody, []string{goodAuth, jsonType}, notAllowed},
		"5 head":                          {"HEAD", "/mcp", "", []string{goodAuth}, headNotAllowed},
		"5 options":                       {"OPTIONS", "/mcp", "", []string{goodAuth}, notAllowed},
		"6 not JSON":                      {"POST", "/mcp", "{", []string{goodAuth, jsonType}, jsonRow(400, unreadable("syntax"), true)},
		"6 empty body":                    {"POST", "/mcp", "", []string{goodAuth, jsonType}, jsonRow(400, unreadable("syntax"), true)},
		"6 duplicate keys":                {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, []string{goodAuth, jsonType}, jsonRow(400, unreadable("duplicate_key"), true)},
		"6 no usable id":                  {"POST", "/mcp", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, []string{goodAuth, jsonType}, jsonRow(400, notMessage(), true)},
		"6 even for a stream":             {"POST", "/mcp", "{", []string{goodAuth, jsonType, sse}, jsonRow(400, unreadable("syntax"), true)},
		"7 empty batch":                   {"POST", "/mcp", "[]", []string{goodAuth, jsonType}, jsonRow(400, rpc("null", -32600, "Empty batch"), true)},
		"8 notification":                  {"POST", "/mcp", noteBody, []string{goodAuth, jsonType}, row{status: 202, session: true}},
		"8 batch of notifications":        {"POST", "/mcp", "[" + noteBody + "," + noteBody + "]", []string{goodAuth, jsonType}, row{status: 202, session: true}},
		"8 notification for a stream":     {"POST", "/mcp", noteBody, []string{goodAuth, jsonType, sse}, row{status: 202, session: true}},
		"9 message":                       {"POST", "/mcp", pingBody, []string{goodAuth, jsonType}, pongRow},
		"9 batch":                         {"POST", "/mcp", twice, []string{goodAuth, jsonType}, jsonRow(200, "["+pong("1")+","+pong(`"b"`)+"]", true)},
		"9 not a request":                 {"POST", "/mcp", `{"jsonrpc":"2.0","id":1}`, []string{goodAuth, jsonType}, jsonRow(200, rpc("1", -32600, "Invalid request"), true)},
		"9 unknown method":                {"POST", "/mcp", `{"jsonrpc":"2.0","id":"d","method":"server/discover"}`, []string{goodAuth, jsonType, "mcp-protocol-version: 2026-07-28"}, jsonRow(200, rpc(`"d"`, -32601, "Method not found"), true)},
		"9 accept anything":               {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: */*"}, pongRow},
		"9 accept JSON":                   {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: application/json"}, pongRow},
		"9 stream refused by weight":      {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: application/json, text/event-stream;q=0.0"}, pongRow},
		"10 stream":                       {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, sse}, events(pong("1"))},
		"10 both":                         {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: application/json, text/event-stream"}, events(pong("1"))},
		"10 both, the other way":          {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: TEXT/Event-Stream;q=0.5,application/json"}, events(pong("1"))},
		"10 two accepts":                  {"POST", "/mcp", pingBody, []string{goodAuth, jsonType, "accept: application/json", sse}, events(pong("1"))},
		"10 batch":                        {"POST", "/mcp", twice, []string{goodAuth, jsonType, sse}, events(pong("1"), pong(`"b"`))},
		"11 unexpected":                   {"POST", "/mcp", pingBody, []string{"authorization: Bearer explode", jsonType}, jsonRow(500, `{"error":"internal_error"}`, false)},
	}
	base := strings.TrimSuffix(bridge.URL(), "/mcp")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rowOf(send(t, tt.method, base+tt.path, tt.body, tt.headers...), bridge)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChunkedBody: the limit holds for a body that does not say its length.
func TestChunkedBody(t *testing.T) {
	t.Parallel()
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), BodyLimit: 1000})
	for size, want := range map[int]int{10: 200, 2000: 413} {
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", size) + `"}}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, bridge.URL(), struct{ *strings.Reader }{body})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = -1
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != want {
			t.Errorf("%d bytes: status %d (%v), want %d", size, res.StatusCode, err, want)
		}
	}
}

// TestLargeCallWithinTheLimit: nothing between a small body and the limit is lost.
func TestLargeCallWithinTheLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	text := strings.Repeat("x", mcp.DefaultBodyLimit-200)
	got := send(t, http.MethodPost, bridge.URL(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"x":"`+text+`"}}}`, jsonType)
	if got.status != 200 {
		t.Fatalf("status %d: %.100s", got.status, got.body)
	}
	if calls := f.seen(); len(calls) != 1 || len(calls[0].Arguments) != len(text)+8 {
		t.Errorf("%d calls", len(calls))
	}
}

// TestDenialThenCall: a refusal spoils nothing for what comes after it.
func TestDenialThenCall(t *testing.T) {
	t.Parallel()
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)})})
	denied := send(t, http.MethodPost, bridge.URL(), strings.Replace(callBody, "files.read", "files.delete", 1), jsonType)
	if diff := cmp.Diff(unavailable, denied.body); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	allowed := send(t, http.MethodPost, bridge.URL(), callBody, jsonType)
	if diff := cmp.Diff(called, allowed.body); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
}

// TestTwoBridges: neither answers to the other's session.
func TestTwoBridges(t *testing.T) {
	t.Parallel()
	one := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)})})
	two := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)})})
	if one.SessionID() == two.SessionID() || one.Port() == two.Port() {
		t.Fatal("two bridges share a session or a port")
	}
	for _, bridges := range [][2]*mcp.HTTPServer{{one, two}, {two, one}} {
		got := send(t, http.MethodPost, bridges[0].URL(), callBody, jsonType, "mcp-session-id: "+bridges[1].SessionID())
		if got.status != 404 || got.body != `{"error":"unknown_session"}` {
			t.Errorf("status %d, body %s", got.status, got.body)
		}
	}
}

// TestCloseIsAShutDoor: a running call is aborted without an answer, and nothing
// listens afterwards.
func TestCloseIsAShutDoor(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started := make(chan struct{})
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		close(started)
		<-ctx.Done()
		return succeed(call, `"late"`), nil
	}
	bridge, err := mcp.NewHTTPServer(t.Context(), mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		res, err := http.Post(bridge.URL(), "application/json", strings.NewReader(callBody))
		if err == nil {
			err = res.Body.Close()
		}
		failed <- err
	}()
	<-started
	if err := bridge.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the running call was answered")
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(bridge.Port())); err == nil {
		_ = conn.Close()
		t.Error("something still listens")
	}
	if err := bridge.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	// The handler alone, mounted elsewhere, answers nothing either.
	elsewhere := httptest.NewServer(bridge.Handler())
	defer elsewhere.Close()
	if res, err := http.Post(elsewhere.URL+"/mcp", "application/json", strings.NewReader(pingBody)); err == nil {
		res.Body.Close()
		t.Errorf("the closed handler answered %d", res.StatusCode)
	}
}

// TestShutdownAnswersWhatRuns: a graceful end lets a running call finish.
func TestShutdownAnswersWhatRuns(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started, release := make(chan struct{}), make(chan struct{})
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		close(started)
		<-release
		return succeed(call, `"done"`), nil
	}
	bridge, err := mcp.NewHTTPServer(t.Context(), mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() { answered <- send(t, http.MethodPost, bridge.URL(), callBody, jsonType) }()
	<-started
	ended := make(chan error, 1)
	go func() { ended <- bridge.Shutdown(t.Context()) }()
	// New connections are refused before the running call is let go.
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(bridge.Port()))
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(release)
	if got := <-answered; got.status != 200 || !strings.Contains(got.body, "done") {
		t.Errorf("status %d, body %s", got.status, got.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestShutdownCutsOff: a graceful end is no longer than its context.
func TestShutdownCutsOff(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started := make(chan struct{})
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		close(started)
		<-ctx.Done()
		return contract.ToolResult{}, ctx.Err()
	}
	bridge, err := mcp.NewHTTPServer(t.Context(), mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if res, err := http.Post(bridge.URL(), "application/json", strings.NewReader(callBody)); err == nil {
			res.Body.Close()
		}
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bridge.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
}

func TestFixedPortAndPath(t *testing.T) {
	t.Parallel()
	first := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)})})
	if _, err := mcp.NewHTTPServer(t.Context(), mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), Port: first.Port()}); err == nil {
		t.Error("two bridges listen on one port")
	}
	port := first.Port()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := serveHTTP(t, mcp.HTTPOptions{
		Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), Port: port, Path: "/turn",
		CreateSessionID: func() string { return "session-1" },
	})
	want := "http://127.0.0.1:" + strconv.Itoa(port) + "/turn"
	if second.URL() != want || second.Port() != port || second.SessionID() != "session-1" {
		t.Errorf("url %s, port %d, session %s", second.URL(), second.Port(), second.SessionID())
	}
	if got := send(t, http.MethodPost, second.URL(), pingBody, jsonType); got.status != 200 || got.header.Get("mcp-session-id") != "session-1" {
		t.Errorf("status %d, session %s", got.status, got.header.Get("mcp-session-id"))
	}
	for name, opts := range map[string]mcp.HTTPOptions{
		"no server":     {},
		"relative path": {Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), Path: "mcp"},
	} {
		if _, err := mcp.NewHTTPServer(t.Context(), opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestRequestValuesReachTheCall: what a middleware put into the context is there,
// but the request's end is not the call's.
func TestRequestValuesReachTheCall(t *testing.T) {
	t.Parallel()
	type key struct{}
	f := newFake(t)
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		if ctx.Value(key{}) != "v" {
			t.Error("the request's value is missing")
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("the call ended with its request: %v", err)
		}
		return succeed(call, "1"), nil
	}
	handler, err := mcp.NewHTTPHandler(mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(callBody))
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, req)
	if rec.Code != 200 || len(f.seen()) != 1 {
		t.Errorf("status %d, %d calls", rec.Code, len(f.seen()))
	}
}
