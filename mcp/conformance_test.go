package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/mcp"
)

// TestConformanceThroughMCP is the MCP door of the adversary matrix: the adversary is
// a harness that speaks HTTP to a bridge inside a turn.
func TestConformanceThroughMCP(t *testing.T) {
	kerneltest.Conform(t, &mcpDoor{}, "../docs/conformance.md")
}

// mcpDoor opens a turn, a bridge and a listener for each visit.
type mcpDoor struct{ last *mcpVisit }

// mcpVisit is what the door's own probes need of a visit.
type mcpVisit struct {
	turn     *envelope.Execution
	bridge   *mcp.TurnBridge
	listener *mcp.HTTPServer
	claims   mcp.ExecutionClaims
	token    string
}

var doorSecret = []byte(strings.Repeat("k", mcp.MinTokenSecret))

// Name implements [kerneltest.Door].
func (*mcpDoor) Name() string { return kerneltest.DoorMCP }

// turnHost is the host of an execution that its own runtime is not in.
type turnHost struct {
	turn  *envelope.Execution
	newID func() string
}

// Invoke implements [mcp.TurnHost].
func (h turnHost) Invoke(ctx context.Context, tool string, arguments contract.Object, step *int64) contract.ToolResult {
	return h.turn.Invoke(ctx, kerneltest.Call(h.newID(), tool, string(arguments)), step)
}

// Enter implements [kerneltest.Door].
func (d *mcpDoor) Enter(tb testing.TB, w *kerneltest.World) kerneltest.Seat {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	x := envelope.New(w.Kernel(tb), envelope.Options{AfterFunc: w.Clock.AfterFunc}).Open(ctx, w.Request())
	if r, ended := x.Ended(); ended {
		return kerneltest.Seat{Entry: kerneltest.AnswerOf(string(r.Status), r.Error)}
	}
	x.Start(ctx)
	v := &mcpVisit{turn: x}
	d.last = v
	v.bridge = mcp.OpenTurnBridge(mcp.TurnBridgeOptions{
		Catalogue: x.Catalog(), Host: turnHost{x, kerneltest.Counter("call")}, Now: w.Clock.Now,
	})
	tb.Cleanup(v.bridge.Close)
	v.claims = mcp.ExecutionClaims{
		ExecutionID: x.Request().ExecutionID, NamespaceID: kerneltest.NamespaceID, Actor: contract.CanonicalActor(kerneltest.Actor()),
		CatalogHash: x.Catalog().CatalogHash, ExpiresAt: contract.At(w.Clock.Now().Add(time.Hour)),
	}
	v.token = mint(tb, v.claims, doorSecret)
	expect := mcp.ExpectedClaims{
		ExecutionID: v.claims.ExecutionID, NamespaceID: v.claims.NamespaceID, Actor: v.claims.Actor, CatalogHash: v.claims.CatalogHash,
	}
	server := newServer(tb, mcp.ServerOptions{Invoker: v.bridge})
	v.listener = serveHTTP(tb, mcp.HTTPOptions{Server: server, Authorize: func(bearer string, present bool) bool {
		_, err := mcp.VerifyExecutionToken(bearer, mcp.Keys{Current: doorSecret}, mcp.VerifyOptions{Now: w.Clock.Now(), Expect: expect})
		return present && err == nil
	}})
	return kerneltest.Seat{
		NoSteps: true, // no transport of MCP reports one
		Tools:   func() []string { return v.tools(tb) },
		Call: func(id, tool, arguments string, _ *int64) kerneltest.Answer {
			return v.call(tb, id, tool, arguments)
		},
		End: func(o envelope.Outcome) kerneltest.Answer {
			r := x.Finish(ctx, o)
			return kerneltest.AnswerOf(string(r.Status), r.Error)
		},
		Events: func() []contract.ExecutionEvent { return x.Checkpoint().Events },
	}
}

func mint(tb testing.TB, claims mcp.ExecutionClaims, secret []byte) string {
	tb.Helper()
	token, err := mcp.MintExecutionToken(claims, secret)
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

// rpcAnswer is as much of an answer as the adversary looks at.
type rpcAnswer struct {
	Result struct {
		Tools []struct{ Name string }
		Meta  map[string]string `json:"_meta"`
	}
	Error *struct{ Code int }
}

// ask posts one document with the visit's own token.
func (v *mcpVisit) ask(tb testing.TB, body string) rpcAnswer {
	tb.Helper()
	got := send(tb, http.MethodPost, v.listener.URL(), body, "authorization: Bearer "+v.token, jsonType)
	var a rpcAnswer
	if err := json.Unmarshal([]byte(got.body), &a); err != nil {
		tb.Fatalf("status %d, body %q: %v", got.status, got.body, err)
	}
	return a
}

func (v *mcpVisit) tools(tb testing.TB) []string {
	tb.Helper()
	var names []string
	for _, tool := range v.ask(tb, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (v *mcpVisit) call(tb testing.TB, id, tool, arguments string) kerneltest.Answer {
	tb.Helper()
	name, err := json.Marshal(tool)
	if err != nil {
		tb.Fatal(err)
	}
	a := v.ask(tb, `{"jsonrpc":"2.0","id":"`+id+`","method":"tools/call","params":{"name":`+string(name)+`,"arguments":`+arguments+`}}`)
	switch {
	case a.Error != nil:
		return kerneltest.Answer{Status: "rpc error", Code: strconv.Itoa(a.Error.Code)}
	case a.Result.Meta["sharedos/status"] == "":
		return kerneltest.Answer{Status: "succeeded"}
	default:
		return kerneltest.Answer{Status: a.Result.Meta["sharedos/status"], Code: a.Result.Meta["sharedos/code"]}
	}
}

// Probe implements [kerneltest.Prober].
func (d *mcpDoor) Probe(row string, t *kerneltest.Trial) {
	t.TB.Helper()
	switch row {
	case "tokens":
		d.probeTokens(t)
	case "wire-tricks":
		d.probeWire(t)
	case "too-late":
		d.probeShutDoor(t)
	}
}

// enter opens a turn that may read below Work.
func (d *mcpDoor) enter(t *kerneltest.Trial) (*mcpVisit, *kerneltest.Plane) {
	t.TB.Helper()
	plane := &kerneltest.Plane{}
	w := world()
	w.Options.Tools = kerneltest.FilesTools(plane)
	w.Prepare = func(r *contract.ExecutionRequest) {
		calls := int64(1000)
		r.Options = &contract.ExecutionOptions{MaxToolCalls: &calls}
	}
	t.Enter(w)
	return d.last, plane
}

const (
	readWork  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"path":["Work"]}}}`
	readOther = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"path":["Other"]}}}`
)

func (d *mcpDoor) probeTokens(t *kerneltest.Trial) {
	t.TB.Helper()
	v, plane := d.enter(t)
	edited := func(edit func(*mcp.ExecutionClaims)) string {
		claims := v.claims
		edit(&claims)
		return mint(t.TB, claims, doorSecret)
	}
	payload, signature, _ := strings.Cut(v.token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		t.TB.Fatal(err)
	}
	signed := func(text string) string { return mcp.SignForTest([]byte(text), doorSecret) }
	encoded := base64.RawURLEncoding.EncodeToString
	forged := map[string]string{
		"another key":            mint(t.TB, v.claims, []byte(strings.Repeat("x", 32))),
		"another turn's":         edited(func(c *mcp.ExecutionClaims) { c.ExecutionID = "execution-2" }),
		"another world's":        edited(func(c *mcp.ExecutionClaims) { c.NamespaceID = "team-other" }),
		"another actor's":        edited(func(c *mcp.ExecutionClaims) { c.Actor = "human:alice" }),
		"another catalogue's":    edited(func(c *mcp.ExecutionClaims) { c.CatalogHash = strings.Repeat("0", 64) }),
		"expired":                edited(func(c *mcp.ExecutionClaims) { c.ExpiresAt = contract.At(kerneltest.Epoch) }),
		"truncated":              v.token[:len(v.token)-1],
		"half a token":           payload,
		"no signature":           payload + ".",
		"no payload":             "." + signature,
		"padded":                 v.token + "=",
		"extra claim":            signed(string(raw[:len(raw)-1]) + `,"grants":["*"]}`),
		"extra alg claim":        signed(string(raw[:len(raw)-1]) + `,"alg":"none"}`),
		"claim in another case":  signed(strings.Replace(string(raw), `"actor"`, `"Actor"`, 1)),
		"claim twice":            signed(string(raw[:len(raw)-1]) + `,"executionId":"execution-1"}`),
		"a JWT without a key":    encoded([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + payload + ".",
		"a JWT with the key":     encoded([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + v.token,
		"signed over the claims": payload + "." + encoded(raw),
		"tampered payload":       strings.ToUpper(payload[:1]) + payload[1:2] + "A" + payload[3:] + "." + signature,
	}
	for name, token := range forged {
		got := send(t.TB, http.MethodPost, v.listener.URL(), readWork, "authorization: Bearer "+token, jsonType)
		t.Holds(name, got.status == 401 && got.body == `{"error":"unauthorized"}`, "status %d, body %s", got.status, got.body)
	}
	for name, header := range map[string][]string{
		"none": nil, "basic": {"authorization: Basic " + v.token}, "two": {"authorization: Bearer " + v.token, "authorization: Bearer x"},
	} {
		got := send(t.TB, http.MethodPost, v.listener.URL(), readWork, append(header, jsonType)...)
		t.Holds(name, got.status == 401, "status %d, body %s", got.status, got.body)
	}
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
	t.Control("its own token", v.call(t.TB, "control", "files.read", `{"path":["Work"]}`))
}

func (d *mcpDoor) probeWire(t *kerneltest.Trial) {
	t.TB.Helper()
	other, _ := d.enter(t)
	v, plane := d.enter(t)
	auth := "authorization: Bearer " + v.token
	for _, probe := range []struct {
		name    string
		body    string
		headers []string
		status  int
	}{
		{"session of another bridge", readWork, []string{"mcp-session-id: " + other.listener.SessionID()}, 404},
		{"host of another site", readWork, []string{"host: evil.example"}, 403},
		{"origin of another site", readWork, []string{"origin: https://evil.example"}, 403},
		{"opaque origin", readWork, []string{"origin: null"}, 403},
		{"a form's content type", readWork, []string{"content-type: text/plain"}, 415},
		{"duplicate name", strings.Replace(readWork, `"name":"files.read"`, `"name":"files.list","name":"files.read"`, 1), nil, 400},
		{"duplicate argument", strings.Replace(readWork, `"path":["Work"]`, `"path":["Work"],"path":["Other"]`, 1), nil, 400},
		{"name in two cases", strings.Replace(readWork, `"name":"files.read"`, `"name":"files.list","NAME":"files.read"`, 1), nil, 400},
		{"method in two cases", strings.Replace(readWork, `"method"`, `"Method":"ping","method"`, 1), nil, 400},
		{"batch with a duplicate key", "[" + readWork + `,{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}]`, nil, 400},
		{"two documents", readWork + readOther, nil, 400},
		{"not UTF-8", strings.Replace(readWork, "Work", "Work\xff", 1), nil, 400},
	} {
		got := send(t.TB, http.MethodPost, v.listener.URL(), probe.body, append(probe.headers, auth)...)
		t.Holds(probe.name, got.status == probe.status, "status %d, body %s", got.status, got.body)
	}
	nested := send(t.TB, http.MethodPost, v.listener.URL(), "[["+readWork+"]]", auth)
	t.Holds("batch in a batch", nested.status == 200 && strings.Contains(nested.body, "-32700") && !strings.Contains(nested.body, "content"), "status %d, body %s", nested.status, nested.body)
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))

	batch := send(t.TB, http.MethodPost, v.listener.URL(), "["+readWork+","+readOther+"]", auth, jsonType)
	t.Holds("a denied call beside an allowed one", strings.Count(batch.body, `"isError":false`) == 1 && strings.Count(batch.body, "no_matching_grant") > 0, "body %s", batch.body)
	t.Holds("only the allowed one ran", len(plane.Operations()) == 1, "%d operations ran", len(plane.Operations()))
	t.Control("an ordinary call", v.call(t.TB, "control", "files.read", `{"path":["Work"]}`))
}

// probeShutDoor: a harness that outlives its turn finds nobody behind the door.
func (d *mcpDoor) probeShutDoor(t *kerneltest.Trial) {
	t.TB.Helper()
	v, plane := d.enter(t)
	conn := dial(t.TB, v.listener)
	v.turn.Finish(t.TB.Context(), envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`"done"`)})
	v.bridge.Close()
	_, err := io.WriteString(conn, rawPost(readWork, "Host: 127.0.0.1", "Authorization: Bearer "+v.token))
	answered, readErr := io.ReadAll(conn)
	t.Holds("the bridge is closed", err == nil && len(bytes.TrimSpace(answered)) == 0, "answered %q (%v, %v)", answered, err, readErr)
	if err := v.listener.Close(); err != nil {
		t.TB.Fatal(err)
	}
	_, err = http.Post(v.listener.URL(), "application/json", strings.NewReader(readWork)) //nolint:bodyclose // refused at once
	t.Holds("the listener is closed", err != nil, "somebody answered")
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
}
