package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/client"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// post accepts every message.
type post struct{}

// Send implements [kernel.MessageTransport].
func (post) Send(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return contract.MessageDeliveryResult{MessageID: m.ID, Status: contract.DeliveryAccepted, Timestamp: contract.At(kerneltest.Epoch)}, nil
}

// store enables files whatever it is asked.
type store struct{}

// UpdateToolNamespaces implements [kernel.NamespaceStore].
func (store) UpdateToolNamespaces(context.Context, contract.AccessContext, contract.ToolNamespaceUpdate) ([]string, error) {
	return []string{"files"}, nil
}

// answering is a runtime that answers at once.
type answering struct{}

// Run implements [envelope.Runtime].
func (answering) Run(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`{"answer":"2026-09-30."}`)}, nil
}

type turns struct{ envelope *envelope.Envelope }

// RunTurn implements [httpapi.TurnRunner].
func (t turns) RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	return t.envelope.Run(ctx, req.In(&ac), answering{}), nil
}

// newServer serves a real kernel, in which the actor may read below Work, to who has
// the token.
func newServer(tb testing.TB) (*httptest.Server, *headers) {
	tb.Helper()
	w := kerneltest.New(
		kerneltest.Admission(),
		kerneltest.MakeGrant("grant-1").Descendants("files", []string{"Work"}, "read").Obj(),
		kerneltest.MakeGrant("grant-2").Exact(contract.NamespaceMessaging, []string{"human", "alice"}, contract.ActionSend).Obj(),
	)
	plane := &kerneltest.Plane{}
	w.Options.Tools, w.Options.Transport, w.Options.Namespaces = kerneltest.FilesTools(plane), post{}, store{}
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
	k := w.Kernel(tb)
	seen := &headers{}
	h, err := httpapi.NewHandler(httpapi.Options{
		API: httpapi.NewKernelAPI(k, turns{envelope.New(k, envelope.Options{})}), Prefix: "/sharedos",
		Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
			seen.add(r.Header)
			if r.Header.Get("Authorization") != "Bearer secret-token" {
				return contract.AccessContext{}, httpapi.ErrUnauthenticated
			}
			return w.Context(), nil
		}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s, seen
}

// headers keeps the heads of requests.
type headers struct {
	mu  sync.Mutex
	all []http.Header
}

func (h *headers) add(one http.Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, one.Clone())
}

func (h *headers) last() http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[len(h.all)-1]
}

func newClient(tb testing.TB, url string, opts ...client.Option) *client.Client {
	tb.Helper()
	c, err := client.New(url, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func message() contract.MessageEnvelope {
	return contract.MessageEnvelope{
		Version: contract.Version, ID: "message-1", Sender: kerneltest.Actor(), Receiver: kerneltest.Alice(), Purpose: kerneltest.Purpose,
		Payload: contract.Value(`{"text":"Atlas ships."}`), TraceID: kerneltest.TraceID, CreatedAt: contract.At(kerneltest.Epoch),
	}
}

func execution() contract.RemoteExecutionRequest {
	m := message()
	m.Sender, m.Receiver = m.Receiver, m.Sender
	return contract.RemoteExecutionRequest{Version: contract.Version, ExecutionID: "execution-1", Agent: kerneltest.Actor(), Message: m}
}

// TestEveryRoute drives a real kernel with every method.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	c := newClient(t, server.URL+"/sharedos/", client.WithToken("secret-token"))
	ctx := t.Context()

	health, err := c.Health(ctx)
	check(t, "health", err, health, client.Health{Status: "ok", ProtocolVersion: "1"})
	document, err := c.OpenAPI(ctx)
	if err != nil || !strings.Contains(string(document), `"openapi": "3.1.0"`) {
		t.Errorf("OpenAPI: %v", err)
	}
	decision, err := c.Authorize(ctx, kerneltest.Need("files", "read", "Work", "a"))
	check(t, "authorize", err, decision, contract.AuthorizationDecision{Allowed: true, ReasonCode: contract.CodeAllowed, MatchedGrantID: "grant-1"})
	tools, err := c.ListTools(ctx)
	check(t, "tools", err, tools, []contract.ToolDefinition{kerneltest.Definition("read", contract.ClassRead)})
	reach, err := c.Reach(ctx)
	if err != nil || reach.Status != "computed" || len(reach.Reach) != 3 {
		t.Errorf("reach: %+v, %v", reach, err)
	}
	namespaces, err := c.ListToolNamespaces(ctx)
	if err != nil || namespaces.Summary != (contract.ToolNamespaceSummary{Total: 2, Enabled: 2}) {
		t.Errorf("namespaces: %+v, %v", namespaces, err)
	}
	updated, err := c.UpdateToolNamespaces(ctx, contract.ToolNamespaceUpdate{Disable: []string{"sharedos"}})
	if err != nil || updated.Summary != (contract.ToolNamespaceSummary{Total: 2, Enabled: 1, Disabled: 1}) {
		t.Errorf("updated namespaces: %+v, %v", updated, err)
	}
	called, err := c.InvokeTool(ctx, kerneltest.Call("call-1", "files.read", `{"path":["Work","a"]}`))
	check(t, "tool", err, called, contract.ToolResult{
		CallID: "call-1", Tool: "files.read", Status: contract.StatusSucceeded, Output: contract.Value(`{"path":["Work","a"]}`), CompletedAt: contract.At(kerneltest.Epoch),
	})
	denied, err := c.InvokeTool(ctx, kerneltest.Call("call-2", "files.read", `{"path":["Other"]}`))
	if err != nil || denied.Status != contract.StatusDenied || denied.Error.Code != contract.CodeNoMatchingGrant {
		t.Errorf("denied tool: %+v, %v", denied, err)
	}
	operated, err := c.InvokeResource(ctx, contract.RemoteResourceOperation{OperationID: "op-1", Resource: kerneltest.Need("files", "", "Work").Resource, Action: "read"})
	check(t, "resource", err, operated, contract.ResourceResult{
		OperationID: "op-1", Status: contract.StatusSucceeded, Output: contract.Value(`{"path":["Work"]}`), CompletedAt: contract.At(kerneltest.Epoch),
	})
	sent, err := c.SendMessage(ctx, message())
	check(t, "message", err, sent, contract.MessageDeliveryResult{MessageID: "message-1", Timestamp: contract.At(kerneltest.Epoch), Status: contract.DeliveryAccepted})
	ran, err := c.ExecuteTurn(ctx, execution())
	if err != nil || ran.Status != contract.StatusSucceeded || string(ran.Output) != `{"answer":"2026-09-30."}` || len(ran.Events) != 2 {
		t.Errorf("turn: %+v, %v", ran, err)
	}
}

func check[T any](t *testing.T, what string, err error, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
}

// TestHeaders: what wins over what.
func TestHeaders(t *testing.T) {
	t.Parallel()
	server, seen := newServer(t)
	minted := 0
	c := newClient(t, server.URL+"/sharedos",
		client.WithHeaders(http.Header{"authorization": {"Bearer header"}, "X-One": {"client"}, "X-Two": {"client"}, "x-sharedos-purpose": {"header"}}),
		client.WithHeadersFunc(func(context.Context) (http.Header, error) { return http.Header{"X-Two": {"func"}}, nil }),
		client.WithTokenFunc(func(context.Context) (string, error) { minted++; return "secret-token", nil }),
		client.WithPurpose("client"),
	)
	for range 2 {
		if _, err := c.Reach(t.Context(), client.Headers(http.Header{"x-one": {"call"}, "AUTHORIZATION": {"Bearer call"}}), client.Purpose("call"), client.RequestID("r-1")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{"Authorization": {"Bearer secret-token"}, "X-One": {"call"}, "X-Two": {"func"}, "X-Sharedos-Purpose": {"call"}, "X-Request-Id": {"r-1"}}
	for name, values := range want {
		if diff := cmp.Diff(values, seen.last()[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if minted != 2 {
		t.Errorf("asked %d times for a token", minted)
	}
	if _, err := c.Reach(t.Context()); err != nil || seen.last().Get("X-Sharedos-Purpose") != "client" || seen.last().Get("X-One") != "client" {
		t.Errorf("headers %v (%v)", seen.last(), err)
	}
}

// TestServersRefusals are typed.
func TestServersRefusals(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	_, err := newClient(t, server.URL+"/sharedos").Reach(t.Context(), client.RequestID("r-1"))
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 401 || e.Code != "unauthenticated" || e.RequestID != "r-1" || e.Message == "" {
		t.Errorf("error %v", err)
	}
	c := newClient(t, server.URL+"/sharedos", client.WithToken("secret-token"))
	_, err = c.Authorize(t.Context(), contract.CapabilityRequirement{})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 400 || e.Code != "invalid_request" || !strings.HasPrefix(e.Message, "resource.") || e.RequestID == "" {
		t.Errorf("error %v", err)
	}
	_, err = newClient(t, server.URL+"/elsewhere", client.WithToken("secret-token")).Reach(t.Context())
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 404 || e.Code != "not_found" {
		t.Errorf("error %v", err)
	}
	if strings.Contains(err.Error(), "secret-token") {
		t.Errorf("the token is in %v", err)
	}
}

// TestAnswersAreChecked: what does not match the contract, or is not an answer to
// what was asked, is an error.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	const result = `{"callId":"call-1","tool":"files.read","status":"succeeded","output":1,"completedAt":"2026-01-01T00:00:00.000Z"}`
	const receipt = `{"messageId":"message-1","timestamp":"2026-01-01T00:00:00.000Z","status":"accepted"}`
	tool := func(c *client.Client) error {
		_, err := c.InvokeTool(t.Context(), kerneltest.Call("call-1", "files.read", `{}`))
		return err
	}
	send := func(c *client.Client) error {
		_, err := c.SendMessage(t.Context(), message())
		return err
	}
	health := func(c *client.Client) error { _, err := c.Health(t.Context()); return err }
	list := func(c *client.Client) error { _, err := c.ListTools(t.Context()); return err }
	for name, tt := range map[string]struct {
		status      int
		kind, body  string
		call        func(*client.Client) error
		code        string
		wantRequest string
	}{
		"fine":                   {200, json, result, tool, "", ""},
		"fine, with a charset":   {200, "application/json; charset=utf-8", result, tool, "", ""},
		"accepted":               {202, json, receipt, send, "", ""},
		"unknown field":          {200, json, strings.Replace(result, `"tool"`, `"new":1,"tool"`, 1), tool, client.CodeInvalidResponse, "r"},
		"missing field":          {200, json, `{"callId":"call-1"}`, tool, client.CodeInvalidResponse, "r"},
		"case variant":           {200, json, strings.Replace(result, `"tool"`, `"Tool"`, 1), tool, client.CodeInvalidResponse, "r"},
		"another call's":         {200, json, strings.Replace(result, "call-1", "call-2", 1), tool, client.CodeInvalidResponse, "r"},
		"another tool's":         {200, json, strings.Replace(result, "files.read", "files.list", 1), tool, client.CodeInvalidResponse, "r"},
		"no JSON":                {200, json, "<html>", tool, client.CodeInvalidResponse, "r"},
		"a page":                 {200, "text/html", result, tool, client.CodeInvalidResponse, "r"},
		"no type":                {200, "", result, tool, client.CodeInvalidResponse, "r"},
		"created":                {201, json, result, tool, client.CodeInvalidResponse, "r"},
		"no content":             {204, json, "", tool, client.CodeInvalidResponse, "r"},
		"accepted, by status":    {200, json, receipt, send, client.CodeInvalidResponse, "r"},
		"delivered, by status":   {202, json, strings.Replace(receipt, "accepted", "delivered", 1), send, client.CodeInvalidResponse, "r"},
		"another message's":      {202, json, strings.Replace(receipt, "message-1", "message-2", 1), send, client.CodeInvalidResponse, "r"},
		"another protocol":       {200, json, `{"status":"ok","protocolVersion":"2"}`, health, client.CodeInvalidResponse, "r"},
		"not well":               {200, json, `{"status":"starting","protocolVersion":"1"}`, health, client.CodeInvalidResponse, "r"},
		"no tools":               {200, json, `[]`, list, "", ""},
		"tools are null":         {200, json, `null`, list, client.CodeInvalidResponse, "r"},
		"too many tools":         {200, json, "[" + strings.Repeat("{},", 512) + "{}]", list, client.CodeInvalidResponse, "r"},
		"a proxy's page":         {502, "text/html", "<html>", tool, client.CodeUnexpectedResponse, "r"},
		"a proxy's JSON":         {503, json, `{"message":"no healthy upstream"}`, tool, client.CodeUnexpectedResponse, "r"},
		"a redirect":             {307, "", "", tool, client.CodeUnexpectedResponse, "r"},
		"an error of tomorrow":   {429, json, `{"error":{"code":"slow_down","message":"m","requestId":"r-2","retryAfter":3}}`, tool, "slow_down", "r-2"},
		"an error without an id": {500, json, `{"error":{"code":"internal_error","message":"m","requestId":""}}`, tool, "internal_error", "r"},
		"too large":              {200, json, result + strings.Repeat(" ", 2000), tool, client.CodeResponseTooLarge, "r"},
		"at the limit":           {200, json, result + strings.Repeat(" ", 2000-len(result)), tool, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followed := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/followed" {
					followed = true
					return
				}
				w.Header().Set("X-Request-Id", "r")
				w.Header()["Content-Type"] = nil
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				w.Header().Set("Location", "/followed")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			err := tt.call(newClient(t, server.URL, client.WithToken("t"), client.WithMaxResponseBytes(2000)))
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*client.Error](err)
			if !ok || e.Code != tt.code || e.Status != tt.status || e.RequestID != tt.wantRequest || followed {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestUnanswered: what never got an answer says why.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-began
		leave()
	}()
	_, err := newClient(t, server.URL).Reach(ctx)
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 0 || e.Code != client.CodeRequestFailed || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}

	broken := errors.New("vault is sealed")
	for name, opt := range map[string]client.Option{
		"token":    client.WithTokenFunc(func(context.Context) (string, error) { return "", broken }),
		"headers":  client.WithHeadersFunc(func(context.Context) (http.Header, error) { return nil, broken }),
		"no token": client.WithTokenFunc(func(context.Context) (string, error) { return "", nil }),
		"gone":     client.WithHTTPClient(&http.Client{Timeout: time.Nanosecond}),
	} {
		_, err := newClient(t, server.URL, opt).Reach(t.Context())
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != client.CodeRequestFailed {
			t.Errorf("%s: error %v", name, err)
		}
	}
	_, err = newClient(t, server.URL).Authorize(t.Context(), contract.CapabilityRequirement{Resource: contract.ResourceRef{Owner: &contract.Address{Kind: "robot"}}})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != client.CodeRequestFailed {
		t.Errorf("a body that cannot be encoded: %v", err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "sharedos.example", "/v1", "ftp://x", "https://", "https://x?y", "https://x?", "https://x#y", "https://user:hunter2@x", "https://x:port", "http://[::1"} {
		if _, err := client.New(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for name, opt := range map[string]client.Option{
		"no token": client.WithToken(""), "no token func": client.WithTokenFunc(nil), "no client": client.WithHTTPClient(nil),
		"no headers func": client.WithHeadersFunc(nil), "no limit": client.WithMaxResponseBytes(0),
	} {
		if _, err := client.New("https://x", opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// resolver knows everybody who has some token.
func resolver(ac contract.AccessContext) httpapi.ContextResolver {
	return httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
		if r.Header.Get("Authorization") == "" {
			return contract.AccessContext{}, httpapi.ErrUnauthenticated
		}
		return ac, nil
	})
}
