package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// dial opens a raw connection that ends with the test.
func dial(tb testing.TB, bridge *mcp.HTTPServer) *net.TCPConn {
	tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(bridge.Port()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		tb.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// rawPost is a POST whose head is given line by line.
func rawPost(body string, lines ...string) string {
	return "POST /mcp HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// exchange writes raw bytes and reads one answer.
func exchange(tb testing.TB, bridge *mcp.HTTPServer, raw string) (status int, body string) {
	tb.Helper()
	conn := dial(tb, bridge)
	if _, err := io.WriteString(conn, raw); err != nil {
		tb.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return res.StatusCode, string(read)
}

// TestRebinding is the DNS rebinding matrix over raw sockets: no combination of
// what a page of another site can send reaches a tool.
func TestRebinding(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	hosts := map[string]bool{
		"127.0.0.1": true, "127.0.0.1:" + strconv.Itoa(bridge.Port()): true, "localhost": true, "LOCALHOST:80": true,
		"[::1]": true, "[::1]:5": true, "127.8.9.10": true, "[::ffff:127.0.0.1]": true,
		"": false, "evil.example": false, "evil.example:80": false, "127.0.0.1.evil.example": false,
		"localhost.evil.example": false, "0.0.0.0": false, "[::]": false, "10.0.0.1": false, "localhost.": false,
		"127.1": false, "2130706433": false, "[::1%25lo]": false, "127.0.0.1:port": false, "evil@127.0.0.1": false,
	}
	origins := map[string]bool{
		"absent": true, "http://127.0.0.1": true, "http://localhost:3000": true, "https://[::1]:1": true,
		"null": false, "http://evil.example": false, "http://127.0.0.1.evil.example": false, "": false,
		"http://localhost@evil.example": false, "http://evil.example@localhost": false, "chrome-extension://abc": false, "file://": false, "localhost": false,
	}
	types := map[string]bool{
		"absent": true, "application/json": true, "Application/JSON; charset=utf-8": true,
		"text/plain": false, "TEXT/PLAIN": false, " text/plain ; x=application/json": false,
		"application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "text/plain, application/json": false,
	}
	want := 0
	for host, hostOK := range hosts {
		for origin, originOK := range origins {
			for kind, kindOK := range types {
				if !hostOK && !originOK { // one reason at a time, or none
					continue
				}
				lines := []string{"Host: " + host}
				if origin != "absent" {
					lines = append(lines, "Origin: "+origin)
				}
				if kind != "absent" {
					lines = append(lines, "Content-Type: "+kind)
				}
				status, body := exchange(t, bridge, rawPost(callBody, lines...))
				expected := 200
				switch {
				case !hostOK || !originOK:
					expected = 403
				case !kindOK:
					expected = 415
				default:
					want++
				}
				if strings.ContainsAny(host, "@%") && status == 400 {
					expected = 400 // no host at all to net/http
				}
				if status != expected {
					t.Errorf("host %q, origin %q, type %q: status %d (%s), want %d", host, origin, kind, status, body, expected)
				}
			}
		}
	}
	if got := len(f.seen()); got != want {
		t.Errorf("%d calls reached the invoker, want %d", got, want)
	}
}

// TestRawHeads: what only a raw socket can send.
func TestRawHeads(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	tests := map[string]struct {
		raw    string
		status int
	}{
		"two hosts":             {rawPost(callBody, "Host: 127.0.0.1", "Host: evil.example"), 400},
		"no host":               {rawPost(callBody, "X: y"), 400},
		"absolute target":       {"POST http://evil.example/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}", 403},
		"two origins":           {rawPost(callBody, "Host: 127.0.0.1", "Origin: http://localhost", "Origin: http://evil.example"), 403},
		"two content types":     {rawPost(callBody, "Host: 127.0.0.1", "Content-Type: application/json", "Content-Type: text/plain"), 415},
		"HTTP/1.0 without host": {"POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", 403},
		"asterisk":              {"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404},
		"two lengths":           {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"broken chunks":         {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"two encodings":         {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501},
		"head too large":        {rawPost(callBody, "Host: 127.0.0.1", "X: "+strings.Repeat("x", 128<<10)), 431},
	}
	for name, tt := range tests {
		if status, body := exchange(t, bridge, tt.raw); status != tt.status {
			t.Errorf("%s: status %d (%s), want %d", name, status, body, tt.status)
		}
	}
	if calls := f.seen(); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestLengthAndEncodingDisagree: with both, only one of two parsers' readings is
// ever executed, and the connection does not live on to be read as the other.
func TestLengthAndEncodingDisagree(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	smuggled := rawPost(callBody, "Host: 127.0.0.1")
	conn := dial(t, bridge)
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+smuggled); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	if n := strings.Count(string(all), "HTTP/1.1 "); n > 1 {
		t.Errorf("%d answers:\n%s", n, all)
	}
	if calls := f.seen(); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestHeaderAndBodyDisagree: headers that name a method, a tool or a version mean
// nothing; only the body is read.
func TestHeaderAndBodyDisagree(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	status, body := exchange(t, bridge, rawPost(pingBody, "Host: 127.0.0.1", "Mcp-Method: tools/call", "Mcp-Name: files.read", "Mcp-Protocol-Version: 1999-01-01", "Content-Type: application/json"))
	if status != 200 || body != pong("1") {
		t.Errorf("status %d, body %s", status, body)
	}
	if calls := f.seen(); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
	status, body = exchange(t, bridge, rawPost(callBody, "Host: 127.0.0.1", "Mcp-Method: ping", "Mcp-Name: files.search", "X-Http-Method-Override: DELETE"))
	if status != 200 || body != called {
		t.Errorf("status %d, body %s", status, body)
	}
	if calls := f.seen(); len(calls) != 1 || calls[0].Tool != "files.read" {
		t.Errorf("calls %v", calls)
	}
}

// TestPipelined: requests sent at once are answered one after the other, in order,
// over one connection that stays open through refusals.
func TestPipelined(t *testing.T) {
	t.Parallel()
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: newFake(t)})})
	conn := dial(t, bridge)
	var raw strings.Builder
	for i := range 50 {
		raw.WriteString(rawPost(`{"jsonrpc":"2.0","id":`+strconv.Itoa(i)+`,"method":"ping"}`, "Host: localhost"))
		raw.WriteString(rawPost("{", "Host: localhost"))
		raw.WriteString("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
		raw.WriteString("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
		raw.WriteString("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	go func() { _, _ = io.WriteString(conn, raw.String()) }()
	r := bufio.NewReader(conn)
	for i := range 50 {
		for _, want := range []int{200, 400, 405, 200, 404} {
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != want || res.Close {
				t.Fatalf("round %d: status %d, want %d, close %v (%v)", i, res.StatusCode, want, res.Close, err)
			}
			if len(body) > 0 && want == 200 && string(body) != pong(strconv.Itoa(i)) {
				t.Fatalf("round %d: %s", i, body)
			}
		}
	}
}

// TestHalfClosed: a client that has finished sending still gets its answer, and its
// call is not cancelled.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	closed := make(chan struct{})
	f.answer = func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		<-closed
		if err := ctx.Err(); err != nil {
			return contract.ToolResult{}, err
		}
		return succeed(call, `{"hits":[]}`), nil
	}
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	conn := dial(t, bridge)
	if _, err := io.WriteString(conn, rawPost(callBody, "Host: 127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(closed)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != called {
		t.Errorf("body %s (%v)", body, err)
	}
}

// TestTruncatedBody: what does not arrive whole is never executed.
func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f})})
	conn := dial(t, bridge)
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n"+callBody); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 400 || len(f.seen()) != 0 {
		t.Errorf("status %d, %d calls", res.StatusCode, len(f.seen()))
	}
}

// TestSlowClients: a head or a body that does not come is not waited for, and the
// other side learns it by the end of the connection.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	bridge := serveHTTP(t, mcp.HTTPOptions{
		Server: newServer(t, mcp.ServerOptions{Invoker: f}), ReadHeaderTimeout: 50 * time.Millisecond,
		ReadTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond,
	})
	for name, raw := range map[string]string{
		"head":  "POST /mcp HTTP/1.1\r\nHost: 127",
		"body":  "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{",
		"chunk": "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
		"idle":  rawPost(pingBody, "Host: 127.0.0.1"),
	} {
		conn := dial(t, bridge)
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn) // ends with the connection, or at the test's deadline
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "idle" && strings.Contains(string(all), "200 OK") {
			t.Errorf("%s: %s", name, all)
		}
	}
	if calls := f.seen(); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestSlowCallIsNotASlowClient: the limits of reading and writing do not bound a
// call, and do not spoil the connection for the next one.
func TestSlowCallIsNotASlowClient(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		<-time.After(150 * time.Millisecond) // longer than every limit
		return succeed(call, `{"hits":[]}`), nil
	}
	bridge := serveHTTP(t, mcp.HTTPOptions{
		Server: newServer(t, mcp.ServerOptions{Invoker: f}), ReadTimeout: 50 * time.Millisecond,
		WriteTimeout: 50 * time.Millisecond, ReadHeaderTimeout: 50 * time.Millisecond, IdleTimeout: time.Minute,
	})
	conn := dial(t, bridge)
	r := bufio.NewReader(conn)
	for range 3 {
		for _, raw := range []string{rawPost(callBody, "Host: 127.0.0.1"), "DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"} {
			if _, err := io.WriteString(conn, raw); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("status %d (%v)", res.StatusCode, err)
			}
		}
	}
}

// TestSlowCallKeepsItsRequest: the limit of reading a body is over once it is read;
// a long call does not end the request's context for whoever stands around it.
func TestSlowCallKeepsItsRequest(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		<-time.After(150 * time.Millisecond) // longer than the limit
		return succeed(call, `{"hits":[]}`), nil
	}
	handler, err := mcp.NewHTTPHandler(mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f}), ReadTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		ended <- r.Context().Err()
	}))
	defer around.Close()
	if got := send(t, http.MethodPost, around.URL+"/mcp", callBody, jsonType); got.body != called {
		t.Errorf("status %d, body %s", got.status, got.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("the request's context ended: %v", err)
	}
}
