package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// stub is an API of functions; one that is not set must not be called.
type stub struct {
	authorize  func(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error)
	tools      func(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error)
	reach      func(ctx context.Context, ac contract.AccessContext) (contract.ReachResult, error)
	namespaces func(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error)
	update     func(ctx context.Context, ac contract.AccessContext, u contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error)
	tool       func(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) (contract.ToolResult, error)
	operate    func(ctx context.Context, ac contract.AccessContext, op contract.RemoteResourceOperation) (contract.ResourceResult, error)
	send       func(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error)
	turn       func(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error)
}

func (s *stub) Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
	return s.authorize(ctx, ac, need)
}

func (s *stub) ListTools(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error) {
	return s.tools(ctx, ac)
}

func (s *stub) Reach(ctx context.Context, ac contract.AccessContext) (contract.ReachResult, error) {
	return s.reach(ctx, ac)
}

func (s *stub) ListToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	return s.namespaces(ctx, ac)
}

func (s *stub) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, u contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error) {
	return s.update(ctx, ac, u)
}

func (s *stub) InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) (contract.ToolResult, error) {
	return s.tool(ctx, ac, call)
}

func (s *stub) InvokeResource(ctx context.Context, ac contract.AccessContext, op contract.RemoteResourceOperation) (contract.ResourceResult, error) {
	return s.operate(ctx, ac, op)
}

func (s *stub) SendMessage(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return s.send(ctx, ac, m)
}

func (s *stub) ExecuteTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	return s.turn(ctx, ac, req)
}

// allow is an API that allows everything it is asked about.
func allow() *stub {
	return &stub{
		authorize: func(context.Context, contract.AccessContext, contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
			return contract.AuthorizationDecision{Allowed: true, ReasonCode: contract.CodeAllowed, MatchedGrantID: "grant-1"}, nil
		},
	}
}

// as resolves everybody to one context.
func as(ac contract.AccessContext) httpapi.ContextResolver {
	return httpapi.ContextResolverFunc(func(*http.Request) (contract.AccessContext, error) { return ac, nil })
}

// seedContext is the context of the reference's examples.
func seedContext() contract.AccessContext {
	return contract.AccessContext{
		NamespaceID: "team-atlas", Actor: contract.Agent("bob-assistant"), Authority: contract.Human("alice"),
		Owner: contract.Human("alice"), Purpose: "atlas-status", TraceID: "trace-1",
		EnabledToolNamespaces: []string{"files"}, Now: seedNow,
	}
}

// errorLog keeps what the host was told.
type errorLog struct {
	mu   sync.Mutex
	errs []error
	ids  []string
}

func (l *errorLog) hook(err error, _ *http.Request, requestID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs, l.ids = append(l.errs, err), append(l.ids, requestID)
}

func (l *errorLog) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.errs...)
}

func newHandler(tb testing.TB, opts httpapi.Options) http.Handler {
	tb.Helper()
	if opts.API == nil {
		opts.API = allow()
	}
	if opts.Resolver == nil {
		opts.Resolver = as(seedContext())
	}
	h, err := httpapi.NewHandler(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func serve(tb testing.TB, opts httpapi.Options) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpapi.NewHTTPServer(newHandler(tb, opts))
	s.Start()
	tb.Cleanup(s.Close)
	return s
}

// got is one answer.
type got struct {
	status int
	header http.Header
	body   string
}

// code is the error code of the body, or nothing.
func (g got) code(tb testing.TB) string {
	tb.Helper()
	return g.detail(tb).Code
}

type detail struct{ Code, Message, RequestID string }

func (g got) detail(tb testing.TB) detail {
	tb.Helper()
	var body struct{ Error detail }
	if err := json.Unmarshal([]byte(g.body), &body); err != nil {
		tb.Fatalf("status %d, body %q: %v", g.status, g.body, err)
	}
	return body.Error
}

// do makes one request; headers are lines of "name: value".
func do(tb testing.TB, method, url, body string, headers ...string) got {
	tb.Helper()
	return doReader(tb, http.DefaultClient, method, url, strings.NewReader(body), headers...)
}

func doReader(tb testing.TB, c *http.Client, method, url string, body io.Reader, headers ...string) got {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(tb.Context()), method, url, body)
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	res, err := c.Do(req)
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

// compact is JSON without the white space it is printed with.
func compact(tb testing.TB, text string) string {
	tb.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return out.String()
}
