package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// dial opens a raw connection that ends with the test.
func dial(tb testing.TB, s *httptest.Server) *net.TCPConn {
	tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		tb.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// exchange writes raw bytes and reads one answer.
func exchange(tb testing.TB, s *httptest.Server, raw string) got {
	tb.Helper()
	conn := dial(tb, s)
	if _, err := io.WriteString(conn, raw); err != nil {
		tb.Fatal(err)
	}
	return readAnswer(tb, bufio.NewReader(conn))
}

func readAnswer(tb testing.TB, r *bufio.Reader) got {
	tb.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return got{res.StatusCode, res.Header, string(read)}
}

func rawPost(target, proto, body string, lines ...string) string {
	return "POST " + target + " " + proto + "\r\n" + strings.Join(append(lines, "Content-Length: "+strconv.Itoa(len(body))), "\r\n") + "\r\n\r\n" + body
}

// TestTargets: the forms a request's target may have on the wire (RFC 9112, 3.2).
func TestTargets(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.Options{})
	for target, want := range map[string]int{
		"/v1/authorize":                                  200,
		"/v1/authorize?x=/v1/tools":                      200,
		"http://somewhere.example/v1/authorize":          200, // absolute-form
		"https://somewhere.example:1/v1/authorize?":      200,
		"http://somewhere.example//v1/authorize":         404,
		"http://somewhere.example/v1/authorize/":         404,
		"http://somewhere.example":                       404,
		"http:v1/authorize":                              404,
		"//v1/authorize":                                 404,
		"///v1/authorize":                                404,
		"/./v1/authorize":                                404,
		"/v1/../v1/authorize":                            404,
		"/v1%2fauthorize":                                404,
		"/v1/%61uthorize":                                404,
		"/v1/authorize%00":                               404,
		"/v1/authorize%0d%0ax-injected:1":                404,
		"/v1/authorize#fragment":                         404,
		"/v1/authorize;jsessionid=1":                     404,
		"/v1/authorize\\":                                404,
		"/v1\\authorize":                                 404,
		"/%2e/v1/authorize":                              404,
		"/v1/authorize/../../health":                     404,
		"*":                                              404,
		"v1/authorize":                                   400, // net/http: no target at all
		"/v1/authorize%zz":                               400,
		"http://user:password@host.example/v1/authorize": 200,
	} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
			g := exchange(t, server, rawPost(target, proto, authorizeBody, "Host: x"))
			if g.status != want {
				t.Errorf("%s %s: status %d, want %d, body %s", target, proto, g.status, want, g.body)
			}
			if g.header.Get("Location") != "" || g.header.Get("X-Injected") != "" {
				t.Errorf("%s: headers %v", target, g.header)
			}
			if want != 400 {
				checkHeaders(t, g)
			}
		}
	}
	if g := exchange(t, server, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"); g.status != 404 || g.code(t) != "not_found" {
		t.Errorf("OPTIONS *: status %d, body %s", g.status, g.body)
	}
	if g := exchange(t, server, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"); g.status != 404 {
		t.Errorf("CONNECT: status %d, body %s", g.status, g.body)
	}
}

// TestHTTP10 has no host and no connection to keep, and is answered all the same.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.Options{})
	conn := dial(t, server)
	if _, err := io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(all), "\r\n\r\n"+`{"status":"ok","protocolVersion":"1"}`) {
		t.Errorf("%s (%v)", all, err)
	}
	if g := exchange(t, server, "POST /v1/authorize HTTP/1.0\r\n\r\n"+authorizeBody); g.status != 400 || g.code(t) != "invalid_json" {
		t.Errorf("a body without a length: status %d, body %s", g.status, g.body)
	}
}

// TestLyingLengths: what does not arrive whole is not executed, what is more than was
// announced is not read, and of two announcements neither parser's reading is smuggled.
func TestLyingLengths(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 10)
	api := allow()
	api.authorize = func(context.Context, contract.AccessContext, contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
		ran <- struct{}{}
		return contract.AuthorizationDecision{Allowed: true, ReasonCode: contract.CodeAllowed}, nil
	}
	server := serve(t, httpapi.Options{API: api, MaxBodyBytes: 1000})
	for name, tt := range map[string]struct {
		raw     string
		status  int
		answers int
		ran     int
	}{
		"too little":            {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n" + authorizeBody, 400, 1, 0},
		"too little, chunked":   {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(authorizeBody), authorizeBody), 400, 1, 0},
		"announced over":        {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + authorizeBody, 413, 1, 0},
		"announced far over":    {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n" + authorizeBody, 413, 1, 0},
		"over, in chunks":       {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("64\r\n"+strings.Repeat(" ", 100)+"\r\n", 11) + "0\r\n\r\n", 413, 1, 0},
		"one huge chunk":        {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" + strings.Repeat(" ", 1001), 413, 1, 0},
		"length and encoding":   {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + rawPost("/v1/authorize", "HTTP/1.1", authorizeBody, "Host: x"), 400, 1, 0},
		"two lengths":           {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + authorizeBody, 400, 1, 0},
		"negative length":       {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n" + authorizeBody, 400, 1, 0},
		"two requests at once":  {rawPost("/v1/authorize", "HTTP/1.1", authorizeBody, "Host: x") + rawPost("/v1/authorize", "HTTP/1.1", authorizeBody, "Host: x"), 200, 2, 2},
		"unread body, pipeline": {rawPost("/nothing", "HTTP/1.1", authorizeBody, "Host: x") + rawPost("/v1/authorize", "HTTP/1.1", authorizeBody, "Host: x"), 404, 2, 1},
	} {
		conn := dial(t, server)
		if _, err := io.WriteString(conn, tt.raw); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(string(all), "HTTP/1.1 "); n != tt.answers || !strings.HasPrefix(string(all), "HTTP/1.1 "+strconv.Itoa(tt.status)) {
			t.Errorf("%s: %d answers:\n%s", name, n, all)
		}
		for range tt.ran {
			<-ran
		}
		if len(ran) != 0 {
			t.Errorf("%s: executed", name)
		}
	}
}

// TestSlowClients: a head or a body that does not come is not waited for, also where
// nobody wants it.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.NewHTTPServer(newHandler(t, httpapi.Options{
		ReadTimeout: 50 * time.Millisecond,
		Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
			if r.Header.Get("Authorization") == "" {
				return contract.AccessContext{}, httpapi.ErrUnauthenticated
			}
			return seedContext(), nil
		}),
	}))
	server.Config.ReadHeaderTimeout, server.Config.IdleTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct{ raw, want string }{
		"head":          {"POST /v1/authorize HTTP/1.1\r\nHost: x", ""},
		"body":          {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\nContent-Length: 500\r\n\r\n{", "HTTP/1.1 400 "},
		"large body":    {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\nContent-Length: 500000\r\n\r\n{", "HTTP/1.1 400 "},
		"chunk":         {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", "HTTP/1.1 400 "},
		"nobody's body": {"POST /v1/authorize HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{", "HTTP/1.1 401 "},
		"a GET's body":  {"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{", "HTTP/1.1 200 "},
		"idle":          {"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 "},
	} {
		conn := dial(t, server)
		if _, err := io.WriteString(conn, tt.raw); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn) // ends with the connection, or at the test's deadline
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(string(all), tt.want) || (tt.want == "" && strings.Contains(string(all), " 200 ")) {
			t.Errorf("%s: %s", name, all)
		}
	}
}

// TestSlowWorkIsNotASlowClient: the limits of reading and writing do not bound work,
// and do not spoil the connection for the next request.
func TestSlowWorkIsNotASlowClient(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	api := allow()
	api.turn = func(ctx context.Context, _ contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
		<-time.After(3 * limit)
		return contract.ExecutionResult{ExecutionID: req.ExecutionID}, ctx.Err()
	}
	for name, server := range map[string]*httptest.Server{
		"plain":  serve(t, httpapi.Options{API: api, ReadTimeout: limit, WriteTimeout: limit}),
		"HTTP/2": serveTLS(t, httpapi.Options{API: api, ReadTimeout: limit, WriteTimeout: limit}),
	} {
		for range 2 {
			g := doReader(t, server.Client(), http.MethodPost, server.URL+"/v1/turns", strings.NewReader(seedTurn))
			if g.status != 200 {
				t.Errorf("%s: status %d, body %s", name, g.status, g.body)
			}
		}
	}
}

// TestContinue: a client that waits for the 100 gets it, also on a connection whose
// last answer is longer ago than an answer may take.
func TestContinue(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	server := serve(t, httpapi.Options{WriteTimeout: limit})
	conn := dial(t, server)
	r := bufio.NewReader(conn)
	for range 3 {
		if _, err := io.WriteString(conn, "POST /v1/authorize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "+strconv.Itoa(len(authorizeBody))+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if g := readAnswer(t, r); g.status != 100 {
			t.Fatalf("status %d", g.status)
		}
		if _, err := io.WriteString(conn, authorizeBody); err != nil {
			t.Fatal(err)
		}
		if g := readAnswer(t, r); g.status != 200 {
			t.Fatalf("status %d, body %s", g.status, g.body)
		}
		<-time.After(2 * limit)
	}
}

// serveTLS serves with HTTP/2.
func serveTLS(tb testing.TB, opts httpapi.Options) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpapi.NewHTTPServer(newHandler(tb, opts))
	s.EnableHTTP2 = true
	s.StartTLS()
	tb.Cleanup(s.Close)
	return s
}

// TestHTTP2 is no different.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	server := serveTLS(t, httpapi.Options{MaxBodyBytes: 1000})
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/health", "", 200}, {"POST", "/v1/authorize", authorizeBody, 200}, {"POST", "/v1/authorize", "{", 400}, {"POST", "//v1/authorize", authorizeBody, 404},
		{"POST", "/v1/%61uthorize", authorizeBody, 404}, {"DELETE", "/v1/authorize", "", 405}, {"POST", "/v1/authorize", strings.Repeat(" ", 1001), 413},
	} {
		for _, reader := range []io.Reader{strings.NewReader(tt.body), unknownLength{strings.NewReader(tt.body)}} {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, reader)
			if err != nil {
				t.Fatal(err)
			}
			res, err := server.Client().Do(req)
			if err != nil {
				t.Errorf("%s %s: %v", tt.method, tt.path, err)
				continue
			}
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != tt.status || res.ProtoMajor != 2 || err != nil {
				t.Errorf("%s %s: status %d over %s (%v)", tt.method, tt.path, res.StatusCode, res.Proto, err)
			}
		}
	}
}
