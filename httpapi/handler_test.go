package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

const authorizeBody = `{"resource":{"namespace":"files","path":["Work"]},"action":"read"}`

// TestIdentityComesFirst: whatever is asked for, an unknown caller gets the same
// answer; only /health asks nobody.
func TestIdentityComesFirst(t *testing.T) {
	t.Parallel()
	asked := 0
	var seen errorLog
	server := serve(t, httpapi.Options{
		OnError: seen.hook,
		Resolver: httpapi.ContextResolverFunc(func(*http.Request) (contract.AccessContext, error) {
			asked++
			return contract.AccessContext{}, fmt.Errorf("token of alice expired: %w", httpapi.ErrUnauthenticated)
		}),
	})
	first := ""
	requests := []struct{ method, path, body string }{
		{"GET", "/v1/tools", ""}, {"POST", "/v1/authorize", authorizeBody}, {"POST", "/v1/authorize", "{"}, {"GET", "/openapi.json", ""},
		{"GET", "/nothing", ""}, {"DELETE", "/v1/tools", ""}, {"GET", "/", ""}, {"GET", "/health/", ""}, {"POST", "/v1/turns", strings.Repeat(" ", 1<<20)},
		{"OPTIONS", "/v1/tools", ""},
	}
	for _, r := range requests {
		g := do(t, r.method, server.URL+r.path, r.body, "x-request-id: r-1")
		if first == "" {
			first = g.body
		}
		if g.status != 401 || g.body != first || g.header.Get("Www-Authenticate") != `Bearer realm="sharedos"` || g.header.Get("Allow") != "" {
			t.Errorf("%s %s: status %d, headers %v, body %s", r.method, r.path, g.status, g.header, g.body)
		}
	}
	if !strings.HasPrefix(first, `{"error":{"code":"unauthenticated","message":"`) || !strings.HasSuffix(first, `","requestId":"r-1"}}`) || strings.Contains(first, "alice") {
		t.Errorf("body %s", first)
	}
	if asked != len(requests) || len(seen.all()) != len(requests) {
		t.Errorf("resolved %d times, told %d times, want %d", asked, len(seen.all()), len(requests))
	}
	if g := do(t, "GET", server.URL+"/health", ""); g.status != 200 {
		t.Errorf("health: status %d", g.status)
	}
	if g := do(t, "POST", server.URL+"/health", "{}"); g.status != 405 || g.header.Get("Allow") != "GET" {
		t.Errorf("health: status %d", g.status)
	}
	if asked != len(requests) {
		t.Error("health resolved a context")
	}
}

// TestRouting: every path and verb of the table and none beside.
func TestRouting(t *testing.T) {
	t.Parallel()
	api := allow()
	for prefix, mounted := range map[string]*httptest.Server{
		"": serve(t, httpapi.Options{API: api}), "/team/sharedos": serve(t, httpapi.Options{API: api, Prefix: "/team/sharedos"}),
	} {
		allowed := map[string]string{
			"/health": "GET", "/openapi.json": "GET", "/v1/authorize": "POST", "/v1/tools": "GET", "/v1/reach": "GET",
			"/v1/tools/namespaces": "GET, PUT", "/v1/tools/invoke": "POST", "/v1/resources/invoke": "POST", "/v1/messages": "POST", "/v1/turns": "POST",
		}
		for path, methods := range allowed {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "PURGE"} {
				if strings.Contains(", "+methods+",", ", "+method+",") {
					continue
				}
				g := do(t, method, mounted.URL+prefix+path, "")
				if g.status != 405 || g.header.Get("Allow") != methods || (method != "HEAD" && g.code(t) != "method_not_allowed") {
					t.Errorf("%s %s: status %d, Allow %q, body %s", method, prefix+path, g.status, g.header.Get("Allow"), g.body)
				}
			}
			for _, other := range []string{path + "/", path + "//", path + "/x", path + ".json", path + ";v=1", path + "%20", path + "%2F", path + "%00", "/" + path, "/v1" + path, strings.ToUpper(path), path[:1] + "%" + fmt.Sprintf("%02x", path[1]) + path[2:], path + "/.", path + "/..", path + "/../" + path} {
				g := do(t, "GET", mounted.URL+prefix+other, "")
				if g.status != 404 || g.code(t) != "not_found" || g.header.Get("Location") != "" {
					t.Errorf("GET %s: status %d, body %s", prefix+other, g.status, g.body)
				}
			}
			if g := do(t, "PATCH", mounted.URL+prefix+path+"?a=b#c", ""); g.status != 405 {
				t.Errorf("%s with a query: status %d", path, g.status)
			}
		}
		if g := do(t, "GET", mounted.URL+"/", ""); g.status != 404 {
			t.Errorf("GET /: status %d", g.status)
		}
		if prefix != "" {
			if g := do(t, "GET", mounted.URL+"/health", ""); g.status != 404 {
				t.Errorf("GET /health beside the prefix: status %d", g.status)
			}
		}
	}
}

// TestErrorsOfTheHost: what each error becomes, and that nothing else of it leaks.
func TestErrorsOfTheHost(t *testing.T) {
	t.Parallel()
	const secret = "postgres://alice:hunter2@db"
	cause := errors.New(secret)
	bad := seedContext()
	bad.Purpose = " "
	untraced := seedContext()
	untraced.TraceID = ""
	for name, tt := range map[string]struct {
		resolved contract.AccessContext
		err      error
		api      error
		panics   any
		status   int
		code     string
		told     bool
	}{
		"unknown caller":     {err: fmt.Errorf("%s: %w", secret, httpapi.ErrUnauthenticated), status: 401, code: "unauthenticated", told: true},
		"refused caller":     {err: &httpapi.PermissionError{Err: cause}, status: 403, code: "permission_denied", told: true},
		"unlisted purpose":   {err: &httpapi.InvalidRequestError{Message: "x-sharedos-purpose: is not one of the caller's"}, status: 400, code: "invalid_request"},
		"no token review":    {err: cause, status: 500, code: "internal_error", told: true},
		"malformed context":  {resolved: bad, status: 500, code: "invalid_access_context", told: true},
		"no context at all":  {resolved: contract.AccessContext{}, status: 500, code: "invalid_access_context", told: true},
		"no trace":           {resolved: untraced, status: 500, code: "invalid_access_context", told: true},
		"API refuses":        {resolved: seedContext(), api: fmt.Errorf("wrapped: %w", &httpapi.PermissionError{Err: cause}), status: 403, code: "permission_denied", told: true},
		"API is not willing": {resolved: seedContext(), api: &httpapi.InvalidRequestError{Err: cause}, status: 400, code: "invalid_request", told: true},
		"API fails":          {resolved: seedContext(), api: cause, status: 500, code: "internal_error", told: true},
		"API panics":         {resolved: seedContext(), panics: secret, status: 500, code: "internal_error", told: true},
		"API panics a nil":   {resolved: seedContext(), panics: (*int)(nil), status: 500, code: "internal_error", told: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := allow()
			api.authorize = func(context.Context, contract.AccessContext, contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
				if tt.panics != nil {
					panic(tt.panics)
				}
				return contract.AuthorizationDecision{}, tt.api
			}
			var seen errorLog
			server := serve(t, httpapi.Options{API: api, OnError: seen.hook, Resolver: httpapi.ContextResolverFunc(func(*http.Request) (contract.AccessContext, error) {
				return tt.resolved, tt.err
			})})
			g := do(t, "POST", server.URL+"/v1/authorize", authorizeBody, "x-request-id: r-7")
			d := g.detail(t)
			if g.status != tt.status || d.Code != tt.code || d.RequestID != "r-7" || d.Message == "" {
				t.Errorf("status %d, body %s", g.status, g.body)
			}
			if strings.Contains(g.body, "hunter2") {
				t.Errorf("leaked: %s", g.body)
			}
			if told := len(seen.all()) == 1; told != tt.told || (told && seen.ids[0] != "r-7") {
				t.Errorf("the host was told %v as %v, want %v", seen.all(), seen.ids, tt.told)
			}
			checkHeaders(t, g)
		})
	}
}

// TestPanicIsKept: the host learns where.
func TestPanicIsKept(t *testing.T) {
	t.Parallel()
	api := allow()
	api.reach = func(context.Context, contract.AccessContext) (contract.ReachResult, error) { panic("broken") }
	var seen errorLog
	server := serve(t, httpapi.Options{API: api, OnError: seen.hook})
	if g := do(t, "GET", server.URL+"/v1/reach", ""); g.status != 500 {
		t.Errorf("status %d", g.status)
	}
	p, ok := errors.AsType[*httpapi.PanicError](seen.all()[0])
	if !ok || p.Value != "broken" || !strings.Contains(string(p.Stack), "TestPanicIsKept") {
		t.Errorf("told %v", seen.all())
	}
}

// TestUnencodableAnswer: an API's answer that is no JSON is its own failure.
func TestUnencodableAnswer(t *testing.T) {
	t.Parallel()
	api := allow()
	api.authorize = func(context.Context, contract.AccessContext, contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
		return contract.AuthorizationDecision{Metadata: contract.Object(`{`)}, nil
	}
	api.namespaces = func(context.Context, contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
		return contract.ToolNamespaceCatalog{}, nil
	}
	server := serve(t, httpapi.Options{API: api})
	if g := do(t, "POST", server.URL+"/v1/authorize", authorizeBody); g.status != 500 || g.code(t) != "internal_error" {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
}

func checkHeaders(tb testing.TB, g got) {
	tb.Helper()
	if g.header.Get("Cache-Control") != "no-store" || g.header.Get("X-Request-Id") == "" || g.header.Get("Content-Type") != "application/json" {
		tb.Errorf("status %d, headers %v", g.status, g.header)
	}
}

// TestRequestID: echoed if it can be, else made.
func TestRequestID(t *testing.T) {
	t.Parallel()
	made := 0
	h := newHandler(t, httpapi.Options{NewRequestID: func() string { made++; return fmt.Sprintf("made-%d", made) }})
	for name, tt := range map[string]struct {
		values []string
		echoed bool
	}{
		"none": {nil, false}, "empty": {[]string{""}, false}, "plain": {[]string{"req-1"}, true}, "of 256": {[]string{strings.Repeat("a", 256)}, true},
		"too long": {[]string{strings.Repeat("a", 257)}, false}, "two": {[]string{"a", "b"}, false}, "space": {[]string{"a b"}, false},
		"line": {[]string{"a\r\nset-cookie: x"}, false}, "not ASCII": {[]string{"ü"}, false}, "markup": {[]string{`"<b>&`}, true}, "control": {[]string{"a\x7f"}, false},
	} {
		for _, path := range []string{"/health", "/v1/authorize", "/nothing"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if tt.values != nil {
				r.Header["X-Request-Id"] = tt.values
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			g := got{w.Code, w.Header(), w.Body.String()}
			checkHeaders(t, g)
			id := g.header.Get("X-Request-Id")
			if tt.echoed != (len(tt.values) == 1 && id == tt.values[0]) || (!tt.echoed && !strings.HasPrefix(id, "made-")) {
				t.Errorf("%s: answered as %q", name, id)
			}
			if w.Code >= 400 && g.detail(t).RequestID != id {
				t.Errorf("%s: body %s, header %q", name, g.body, id)
			}
		}
	}
	a, b := do(t, "GET", serve(t, httpapi.Options{}).URL+"/health", ""), do(t, "GET", serve(t, httpapi.Options{}).URL+"/health", "")
	if a.header.Get("X-Request-Id") == b.header.Get("X-Request-Id") {
		t.Error("two requests share an id")
	}
}

// TestResolverSeesNoBody: authority cannot come from a body, not even by mistake.
func TestResolverSeesNoBody(t *testing.T) {
	t.Parallel()
	api := allow()
	server := serve(t, httpapi.Options{API: api, Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
		if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err == nil || r.ContentLength != 0 || r.GetBody != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
		_ = r.ParseForm()
		return seedContext(), nil
	})})
	if g := do(t, "POST", server.URL+"/v1/authorize", authorizeBody, "content-type: application/x-www-form-urlencoded"); g.status != 200 {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
}

// TestCallerTraces: the trace is the body's, or else the request's, and only where
// the host leaves it open.
func TestCallerTraces(t *testing.T) {
	t.Parallel()
	traces := make(chan string, 1)
	api := allow()
	api.authorize = func(_ context.Context, ac contract.AccessContext, _ contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
		traces <- ac.TraceID
		return contract.AuthorizationDecision{ReasonCode: contract.CodeNoMatchingGrant}, nil
	}
	api.tool = func(_ context.Context, ac contract.AccessContext, call contract.ToolCall) (contract.ToolResult, error) {
		traces <- ac.TraceID
		return contract.ToolResult{}, nil
	}
	api.send = func(_ context.Context, ac contract.AccessContext, _ contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
		traces <- ac.TraceID
		return contract.MessageDeliveryResult{}, nil
	}
	api.turn = func(_ context.Context, ac contract.AccessContext, _ contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
		traces <- ac.TraceID
		return contract.ExecutionResult{}, nil
	}
	open := seedContext()
	open.TraceID = ""
	fixed := seedContext()
	fixed.TraceID = "trace-9"
	for name, tt := range map[string]struct {
		ac       contract.AccessContext
		own, req string
	}{
		"open":  {open, "trace-1", "r-1"},
		"fixed": {fixed, "trace-9", "trace-9"},
	} {
		server := serve(t, httpapi.Options{API: api, Resolver: as(tt.ac), CallerTraces: true})
		for path, body := range map[string]string{
			"/v1/authorize": authorizeBody, "/v1/tools/invoke": seedCall, "/v1/messages": seedMessage, "/v1/turns": seedTurn,
		} {
			want := tt.own
			if path == "/v1/authorize" {
				want = tt.req
			}
			if g := do(t, "POST", server.URL+path, body, "x-request-id: r-1"); g.status >= 300 {
				t.Fatalf("%s: status %d, body %s", path, g.status, g.body)
			}
			if got := <-traces; got != want {
				t.Errorf("%s, %s: trace %q, want %q", name, path, got, want)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*httpapi.Options){
		"no API":            func(o *httpapi.Options) { o.API = nil },
		"no resolver":       func(o *httpapi.Options) { o.Resolver = nil },
		"negative limit":    func(o *httpapi.Options) { o.MaxBodyBytes = -1 },
		"relative prefix":   func(o *httpapi.Options) { o.Prefix = "a" },
		"prefix with slash": func(o *httpapi.Options) { o.Prefix = "/a/" },
		"root as a prefix":  func(o *httpapi.Options) { o.Prefix = "/" },
		"dots":              func(o *httpapi.Options) { o.Prefix = "/a/../b" },
		"escapes":           func(o *httpapi.Options) { o.Prefix = "/a%20b" },
		"space":             func(o *httpapi.Options) { o.Prefix = "/a b" },
	} {
		o := httpapi.Options{API: allow(), Resolver: as(seedContext())}
		edit(&o)
		if _, err := httpapi.NewHandler(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := httpapi.NewHandler(httpapi.Options{}); !errors.Is(err, httpapi.ErrIncompleteOptions) {
		t.Errorf("error %v", err)
	}
}
