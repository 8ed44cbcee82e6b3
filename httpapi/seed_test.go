package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// The examples of the HTTP API reference, over a real kernel.

var seedNow = contract.At(time.Date(2026, 8, 24, 9, 0, 0, 100e6, time.UTC))

// seedSearch is the reference's example of a tool.
func seedSearch() kernel.Tool {
	yes := true
	return kernel.Tool{
		Definition: contract.ToolDefinition{
			Name: "files.search", Description: "Search inside a granted file path.", Namespace: "files", Source: "sharedos",
			ReadWrite: contract.ClassRead, InputSchema: contract.Object(`{ "type": "object", "required": ["path", "query"], "properties": {} }`),
			RequiredCapability: kerneltest.Need("files", "search"), Annotations: &contract.ToolAnnotations{ReadOnly: &yes},
		},
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			if err != nil {
				return contract.CapabilityRequirement{}, err
			}
			return kerneltest.Need("files", "search", path...), nil
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`{ "hits": [{ "text": "Atlas ships 2026-09-30." }] }`)}, nil
		},
	}
}

// accepting is a transport that takes messages over.
type accepting struct{}

// Send implements [kernel.MessageTransport].
func (accepting) Send(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return contract.MessageDeliveryResult{MessageID: m.ID, Status: contract.DeliveryAccepted, Timestamp: seedNow}, nil
}

// calling is a runtime that searches once and answers.
type calling struct{}

// Run implements [envelope.Runtime].
func (calling) Run(ctx context.Context, _ envelope.Request, host envelope.Host) (envelope.Outcome, error) {
	host.Invoke(ctx, "files.search", contract.Object(`{"path":["Work","Projects","atlas"],"query":"ship date"}`), nil)
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`{"answer":"2026-09-30."}`)}, nil
}

// turnsIn runs turns in this process.
type turnsIn struct {
	envelope *envelope.Envelope
	runtime  envelope.Runtime
}

// RunTurn implements [httpapi.TurnRunner].
func (t turnsIn) RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	return t.envelope.Run(ctx, req.In(&ac), t.runtime), nil
}

// seedGrants are what the examples need, issued to the actor.
func seedGrants(actor contract.Address) []contract.Grant {
	at := seedNow.Sub(kerneltest.Epoch)
	return []contract.Grant{
		kerneltest.MakeGrant("grant-1").To(actor).Issued(at).Descendants("files", []string{"Work", "Projects", "atlas"}, "read", "search").Obj(),
		kerneltest.MakeGrant("grant-2").To(actor).Issued(at).Exact(contract.NamespaceMessaging, []string{"agent", "alice-assistant"}, contract.ActionSend).Obj(),
		kerneltest.MakeGrant("grant-3").To(actor).Issued(at).Exact(contract.NamespaceExecution, []string{"agent", "alice-assistant"}, contract.ActionInvoke).Obj(),
	}
}

// seedOptions is the API of the reference for one actor.
func seedOptions(tb testing.TB, actor contract.Address, grants ...contract.Grant) (httpapi.Options, *kerneltest.World) {
	tb.Helper()
	if grants == nil {
		grants = seedGrants(actor)
	}
	w := kerneltest.New(grants...)
	w.Options.Clock = func() time.Time { return seedNow.Time }
	w.Options.Tools = []kernel.Tool{seedSearch()}
	w.Options.Transport = accepting{}
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": &kerneltest.Plane{
		Answer: func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
			return contract.ResourceResult{OperationID: op.OperationID, Status: contract.StatusSucceeded, Output: contract.Value(`"on track"`), CompletedAt: seedNow}, nil
		},
	}}
	k := w.Kernel(tb)
	ac := seedContext()
	ac.Actor = actor
	return httpapi.Options{
		API:      httpapi.NewKernelAPI(k, turnsIn{envelope.New(k, envelope.Options{}), calling{}}),
		Resolver: as(ac),
	}, w
}

const (
	seedAuthorize = `{
  "resource": { "namespace": "files", "path": ["Work", "Projects", "atlas"] },
  "action": "search"
}`
	seedCall = `{
  "id": "call-1",
  "tool": "files.search",
  "arguments": { "path": ["Work", "Projects", "atlas"], "query": "ship date" },
  "traceId": "trace-1",
  "requestedAt": "2026-08-24T09:00:00.000Z"
}`
	seedOperation = `{
  "operationId": "op-1",
  "resource": { "namespace": "files", "path": ["Work", "Projects", "atlas", "status.md"] },
  "action": "read"
}`
	seedMessage = `{
  "version": "1",
  "id": "message-1",
  "sender": { "kind": "agent", "agentId": "bob-assistant" },
  "receiver": { "kind": "agent", "agentId": "alice-assistant" },
  "purpose": "atlas-status",
  "payload": { "text": "When does Atlas ship?" },
  "traceId": "trace-1",
  "createdAt": "2026-08-24T09:00:00.000Z"
}`
	seedTurn = `{
  "version": "1",
  "executionId": "execution-1",
  "agent": { "kind": "agent", "agentId": "alice-assistant" },
  "message": ` + seedMessage + `,
  "state": { "optional": "resumption state you keep" },
  "options": { "maxSteps": 8, "maxToolCalls": 8, "timeoutMs": 30000 }
}`
)

func TestSeedExamples(t *testing.T) {
	t.Parallel()
	opts, w := seedOptions(t, contract.Agent("bob-assistant"))
	opts.API = withNamespaces{opts.API}
	server := serve(t, opts)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"health", "GET", "/health", "", 200, `{ "status": "ok", "protocolVersion": "1" }`},
		{"authorize", "POST", "/v1/authorize", seedAuthorize, 200, `{ "allowed": true, "reasonCode": "allowed", "matchedGrantId": "grant-1" }`},
		{"tools", "GET", "/v1/tools", "", 200, `[
  {
    "name": "files.search",
    "description": "Search inside a granted file path.",
    "namespace": "files",
    "source": "sharedos",
    "readWrite": "read",
    "inputSchema": { "type": "object", "required": ["path", "query"], "properties": {} },
    "requiredCapability": { "resource": { "namespace": "files", "path": [] }, "action": "search" },
    "annotations": { "readOnly": true }
  }
]`},
		{"namespaces", "GET", "/v1/tools/namespaces", "", 200, seedNamespaces},
		{"update namespaces", "PUT", "/v1/tools/namespaces", `{ "enable": ["files", "calendar"], "disable": ["notion"] }`, 200, seedNamespaces},
		{"invoke tool", "POST", "/v1/tools/invoke", seedCall, 200, `{
  "callId": "call-1",
  "tool": "files.search",
  "status": "succeeded",
  "output": { "hits": [{ "text": "Atlas ships 2026-09-30." }] },
  "completedAt": "2026-08-24T09:00:00.100Z"
}`},
		{"curl's call", "POST", "/v1/tools/invoke", `{"id":"call-1","tool":"files.search","traceId":"trace-1","requestedAt":"2026-08-24T09:00:00.000Z","arguments":{"path":["Work","Projects","atlas"],"query":"ship date"}}`, 200,
			`{"callId":"call-1","tool":"files.search","status":"succeeded","output":{"hits":[{"text":"Atlas ships 2026-09-30."}]},"completedAt":"2026-08-24T09:00:00.100Z"}`},
		{"invoke resource", "POST", "/v1/resources/invoke", seedOperation, 200, `{"operationId":"op-1","status":"succeeded","output":"on track","completedAt":"2026-08-24T09:00:00.100Z"}`},
		{"message", "POST", "/v1/messages", seedMessage, 202, `{"messageId":"message-1","timestamp":"2026-08-24T09:00:00.100Z","status":"accepted"}`},
	} {
		g := do(t, tt.method, server.URL+tt.path, tt.body, "content-type: application/json")
		if diff := cmp.Diff(compact(t, tt.want), g.body); g.status != tt.status || diff != "" {
			t.Errorf("%s: status %d, want %d, body (-want +got):\n%s", tt.name, g.status, tt.status, diff)
		}
	}
	if n := w.Uses.Spent("grant-1"); n != 0 {
		t.Errorf("%d uses spent", n)
	}
}

const seedNamespaces = `{
  "namespaces": [
    { "namespace": "files", "sources": ["sharedos"], "toolCount": 12, "enabled": true },
    { "namespace": "notion", "sources": ["mcp"], "toolCount": 4, "enabled": false }
  ],
  "summary": { "total": 2, "enabled": 1, "disabled": 1 }
}`

// withNamespaces answers with the reference's namespaces: a kernel also has the one
// of its own tools.
type withNamespaces struct{ httpapi.API }

func (withNamespaces) ListToolNamespaces(context.Context, contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	return contract.Unmarshal[contract.ToolNamespaceCatalog]([]byte(seedNamespaces))
}

func (n withNamespaces) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, u contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error) {
	if diff := cmp.Diff(contract.ToolNamespaceUpdate{Enable: []string{"files", "calendar"}, Disable: []string{"notion"}}, u); diff != "" {
		return contract.ToolNamespaceCatalog{}, &httpapi.InvalidRequestError{Message: diff}
	}
	return n.ListToolNamespaces(ctx, ac)
}

func TestSeedReach(t *testing.T) {
	t.Parallel()
	bob := contract.Agent("bob-assistant")
	opts, w := seedOptions(t, bob, kerneltest.MakeGrant("g").To(bob).Issued(seedNow.Sub(kerneltest.Epoch)).MaxUses(1).
		Descendants("files", []string{"Work", "atlas"}, "read", "search").Obj())
	server := serve(t, opts)
	g := do(t, http.MethodGet, server.URL+"/v1/reach", "")
	want := compact(t, `{
  "status": "computed",
  "reach": [
    {
      "namespace": "files",
      "path": ["Work", "atlas"],
      "actions": ["read", "search"],
      "scope": "descendants"
    }
  ]
}`)
	if g.status != 200 || g.body != want {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
	for range 3 { // discovery spends nothing
		do(t, http.MethodGet, server.URL+"/v1/reach", "")
		do(t, http.MethodGet, server.URL+"/v1/tools", "")
		do(t, http.MethodPost, server.URL+"/v1/authorize", `{"resource":{"namespace":"files","path":["Work","atlas"]},"action":"read"}`)
	}
	if n := w.Uses.Spent("g"); n != 0 {
		t.Errorf("discovery spent %d uses", n)
	}
	w.Uses.Fail(kerneltest.ErrPort)
	g = do(t, http.MethodGet, server.URL+"/v1/reach", "")
	if g.status != 200 || g.body != `{"status":"unavailable","reasonCode":"usage_store_unavailable"}` {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
	w.Uses.Fail(nil)
	w.Grants.Set()
	g = do(t, http.MethodGet, server.URL+"/v1/reach", "")
	if g.status != 200 || g.body != `{"status":"computed","reach":[]}` {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
	w.Grants.Fail(kerneltest.ErrPort)
	g = do(t, http.MethodGet, server.URL+"/v1/reach", "")
	if g.status != 200 || g.body != `{"status":"unavailable","reasonCode":"authority_unavailable"}` {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
}

// TestSeedTurn: one request, one answer, with the whole record.
func TestSeedTurn(t *testing.T) {
	t.Parallel()
	opts, _ := seedOptions(t, contract.Agent("alice-assistant"))
	server := serve(t, opts)
	g := do(t, http.MethodPost, server.URL+"/v1/turns", seedTurn)
	result, err := contract.Unmarshal[contract.ExecutionResult]([]byte(g.body))
	if err != nil || g.status != 200 {
		t.Fatalf("status %d, body %s: %v", g.status, g.body, err)
	}
	type event struct {
		Sequence int64
		Type     contract.EventType
	}
	var events []event
	for i := range result.Events {
		events = append(events, event{result.Events[i].Sequence, result.Events[i].Type})
	}
	want := []event{{0, contract.EventTurnStarted}, {1, contract.EventToolRequested}, {2, contract.EventToolCompleted}, {3, contract.EventTurnCompleted}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if result.ExecutionID != "execution-1" || result.TraceID != "trace-1" || result.Status != contract.StatusSucceeded || string(result.Output) != `{"answer":"2026-09-30."}` {
		t.Errorf("result %s", g.body)
	}

	denied, _ := seedOptions(t, contract.Agent("alice-assistant"), seedGrants(contract.Agent("alice-assistant"))[:2]...)
	g = do(t, http.MethodPost, serve(t, denied).URL+"/v1/turns", seedTurn)
	result, err = contract.Unmarshal[contract.ExecutionResult]([]byte(g.body))
	if err != nil || g.status != 200 || result.Status != contract.StatusDenied || len(result.Output) != 0 {
		t.Errorf("without an execution grant: status %d, body %s: %v", g.status, g.body, err)
	}

	none := httpapi.NewKernelAPI(kerneltest.New().Kernel(t), nil)
	g = do(t, http.MethodPost, serve(t, httpapi.Options{API: none}).URL+"/v1/turns", seedTurn)
	result, err = contract.Unmarshal[contract.ExecutionResult]([]byte(g.body))
	if err != nil || g.status != 200 || result.Status != contract.StatusFailed || result.Error.Code != httpapi.CodeTurnsNotConfigured {
		t.Errorf("without a runner: status %d, body %s: %v", g.status, g.body, err)
	}
}

// TestSeedTurnLimits: options are validated, never clamped.
func TestSeedTurnLimits(t *testing.T) {
	t.Parallel()
	opts, _ := seedOptions(t, contract.Agent("alice-assistant"))
	server := serve(t, opts)
	for name, tt := range map[string]struct{ options, field string }{
		"steps":   {`{"maxSteps":1001}`, "options.maxSteps"},
		"calls":   {`{"maxToolCalls":10001}`, "options.maxToolCalls"},
		"time":    {`{"timeoutMs":600001}`, "options.timeoutMs"},
		"nothing": {`{"maxSteps":0}`, "options.maxSteps"},
	} {
		body := strings.Replace(seedTurn, `{ "maxSteps": 8, "maxToolCalls": 8, "timeoutMs": 30000 }`, tt.options, 1)
		g := do(t, http.MethodPost, server.URL+"/v1/turns", body)
		if d := g.detail(t); g.status != 400 || d.Code != contract.CodeInvalidRequest || !strings.HasPrefix(d.Message, tt.field+": ") {
			t.Errorf("%s: status %d, body %s", name, g.status, g.body)
		}
	}
}
