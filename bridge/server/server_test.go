package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/server"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/sessions"
)

// reviewer knows tokens by heart.
type reviewer map[string]server.Pod

var errReview = errors.New("the API server is away")

func (r reviewer) Review(_ context.Context, token string) (server.Pod, error) {
	if token == "unreviewable" {
		return server.Pod{}, errReview
	}
	pod, ok := r[token]
	if !ok {
		return server.Pod{}, server.ErrUnauthenticated
	}
	return pod, nil
}

type keyring struct{ keys mcp.Keys }

func (k keyring) Keys() mcp.Keys { return k.keys }

var (
	secret = bytes.Repeat([]byte("k"), 32)
	bound  = server.Pod{Namespace: kerneltest.NamespaceID, Name: "harness", UID: "uid-bound", ServiceAccount: "sa"}
	other  = server.Pod{Namespace: kerneltest.NamespaceID, Name: "other", UID: "uid-other", ServiceAccount: "sa"}
	alien  = server.Pod{Namespace: "elsewhere", Name: "harness", UID: "uid-alien", ServiceAccount: "sa"}
)

// fixture is the server over one live turn, bound to one pod.
type fixture struct {
	http     *httptest.Server
	session  *sessions.Session
	world    *kerneltest.World
	registry *sessions.Registry
	stopping chan struct{}
}

var subject = sessions.Subject{
	Key: sessions.Key{Namespace: kerneltest.NamespaceID, Turn: "t"}, UID: "uid", Harness: "custom", StartTimeout: time.Minute,
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{stopping: make(chan struct{}), world: kerneltest.New(kerneltest.Admission(),
		kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "read").Obj())}
	f.world.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	var registry *sessions.Registry
	registry = sessions.New(sessions.Options{
		Kernel: f.world.Kernel(t),
		OnChange: func(key sessions.Key) {
			// A controller that stores at once, on its own goroutine as a queue would.
			go func() {
				if s, ok := registry.Get(key, "uid"); ok {
					s.Persisted(s.State().Revision)
				}
			}()
		},
		Lookup: func(_ context.Context, key sessions.Key, _ string) sessions.Standing {
			switch key.Turn {
			case "over":
				return sessions.StandingEnded
			case "never":
				return sessions.StandingMissing
			}
			return sessions.StandingUnknown
		},
	})
	var err error
	f.registry = registry
	f.session, err = registry.Open(t.Context(), subject, f.world.Request())
	if err != nil {
		t.Fatal(err)
	}
	if result, ended := f.session.Execution().Ended(); ended {
		t.Fatalf("refused: %+v", result.Error)
	}
	f.session.Bind(sessions.Pod{Name: bound.Name, UID: bound.UID})
	f.http = httptest.NewServer(server.New(server.Options{
		Turns: registry, Stopping: f.stopping, Keyring: keyring{mcp.Keys{Current: secret}}, Clock: f.world.Clock.Now, Log: logr.Discard(),
		Reviewer: reviewer{"bound": bound, "other": other, "alien": alien},
	}))
	t.Cleanup(f.http.Close)
	return f
}

// do makes one request; token and execution are left out when empty. More headers are
// name and value in turn.
func (f *fixture) do(t *testing.T, method, path, token, execution, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.http.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if execution != "" {
		req.Header.Set(bridge.HeaderExecutionToken, execution)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := f.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// attach attaches the bound pod and returns its execution token.
func (f *fixture) attach(t *testing.T) bridge.AttachResponse {
	t.Helper()
	status, body := f.do(t, http.MethodPost, bridge.PathAttach, "bound", "", `{"turn":"t"}`)
	if status != http.StatusOK {
		t.Fatalf("attach: %d %s", status, body)
	}
	var out bridge.AttachResponse
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (f *fixture) mint(t *testing.T, key []byte, change func(c *mcp.ExecutionClaims)) string {
	t.Helper()
	want := f.session.Response()
	claims := mcp.ExecutionClaims{
		ExecutionID: want.ExecutionID, NamespaceID: want.NamespaceID, Actor: want.Actor, CatalogHash: want.CatalogHash,
		ExpiresAt: contract.At(f.world.Clock.Now().Add(time.Hour)),
	}
	if change != nil {
		change(&claims)
	}
	token, err := mcp.MintExecutionToken(claims, key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestAnOutcomeTellsTheCalls: those that the manager before did not store are counted
// although no call comes after them.
func TestAnOutcomeTellsTheCalls(t *testing.T) {
	f := newFixture(t)
	f.session.Ready(t.Context())
	point := f.session.Execution().Checkpoint()
	var err error
	if f.session, err = f.registry.Resume(t.Context(), subject, f.world.Request(), point); err != nil {
		t.Fatal(err)
	}
	f.session.Bind(sessions.Pod{Name: bound.Name, UID: bound.UID})
	if status, body := f.do(t, http.MethodPost, bridge.PathOutcome, "bound", f.mint(t, secret, nil),
		`{"started":true,"exitCode":0,"initialized":true,"outputSize":0}`, bridge.HeaderCallsBefore, "3"); status != http.StatusNoContent {
		t.Fatalf("outcome: %d %s", status, body)
	}
	if got := f.session.Execution().Usage().ToolCalls; got != 3 {
		t.Errorf("%d calls, want 3", got)
	}
}

func TestAttach(t *testing.T) {
	f := newFixture(t)
	got := f.attach(t)
	if got.CatalogHash != f.session.Catalog().CatalogHash || got.ExecutionToken == "" || got.Actor != contract.CanonicalActor(kerneltest.Actor()) {
		t.Errorf("attach: %+v", got)
	}
	for name, c := range map[string]struct {
		token, body string
		status      int
		code        string
	}{
		"no token":             {"", `{"turn":"t"}`, 401, bridge.CodeUnauthenticated},
		"a token of nobody":    {"nobody", `{"turn":"t"}`, 401, bridge.CodeUnauthenticated},
		"a review that failed": {"unreviewable", `{"turn":"t"}`, 503, bridge.CodeKernelUnavailable},
		"another pod":          {"other", `{"turn":"t"}`, 403, bridge.CodePodNotBound},
		"another world":        {"alien", `{"turn":"t"}`, 409, bridge.CodeTurnNotReady},
		"a turn that ended":    {"bound", `{"turn":"over"}`, 410, bridge.CodeTurnEnded},
		"no such turn":         {"bound", `{"turn":"never"}`, 404, bridge.CodeTurnNotFound},
		"an unknown field":     {"bound", `{"turn":"t","grants":[]}`, 400, bridge.CodeInvalidRequest},
		"another case":         {"bound", `{"Turn":"t"}`, 400, bridge.CodeInvalidRequest},
		"a duplicate key":      {"bound", `{"turn":"over","turn":"t"}`, 400, bridge.CodeInvalidRequest},
		"not JSON":             {"bound", `turn`, 400, bridge.CodeInvalidRequest},
		"too large":            {"bound", `{"turn":"` + strings.Repeat("t", 8<<10) + `"}`, 400, bridge.CodeInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := f.do(t, http.MethodPost, bridge.PathAttach, c.token, "", c.body)
			if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) {
				t.Errorf("%d %s, want %d %s", status, body, c.status, c.code)
			}
		})
	}
}

func TestBothCredentialsMustAgree(t *testing.T) {
	f := newFixture(t)
	good := f.attach(t).ExecutionToken
	const body = `{"callId":"c","tool":"files.read","arguments":{"path":["Work"]}}`
	if status, answer := f.do(t, http.MethodPost, bridge.PathInvoke, "bound", good, body); status != http.StatusOK {
		t.Fatalf("the bound pod: %d %s", status, answer)
	}
	for name, c := range map[string]struct {
		token, execution string
		status           int
	}{
		"no execution token":      {"bound", "", 401},
		"no pod token":            {"", good, 401},
		"another pod":             {"other", good, 403},
		"another world's pod":     {"alien", good, 401},
		"another key":             {"bound", f.mint(t, bytes.Repeat([]byte("x"), 32), nil), 401},
		"another catalogue":       {"bound", f.mint(t, secret, func(c *mcp.ExecutionClaims) { c.CatalogHash = strings.Repeat("0", 64) }), 401},
		"another actor":           {"bound", f.mint(t, secret, func(c *mcp.ExecutionClaims) { c.Actor = "agent:eve" }), 401},
		"another turn":            {"bound", f.mint(t, secret, func(c *mcp.ExecutionClaims) { c.ExecutionID = "other" }), 409},
		"expired":                 {"bound", f.mint(t, secret, func(c *mcp.ExecutionClaims) { c.ExpiresAt = contract.At(f.world.Clock.Now()) }), 410},
		"truncated":               {"bound", good[:len(good)-1], 401},
		"a third part":            {"bound", good + ".x", 401},
		"the pod token twice":     {"good", "good", 401},
		"an alg header as in JWT": {"bound", "eyJhbGciOiJub25lIn0." + good, 401},
	} {
		for _, path := range []struct{ method, path string }{
			{http.MethodPost, bridge.PathInvoke}, {http.MethodGet, bridge.PathCatalog},
			{http.MethodPost, bridge.PathOutcome}, {http.MethodGet, bridge.PathSession},
		} {
			t.Run(name+path.path, func(t *testing.T) {
				sent := ""
				if path.method == http.MethodPost {
					sent = body
				}
				if status, answer := f.do(t, path.method, path.path, c.token, c.execution, sent); status != c.status {
					t.Errorf("%d %s, want %d", status, answer, c.status)
				}
			})
		}
	}
	if _, ended := f.session.Execution().Ended(); ended {
		t.Error("one of them ended the turn")
	}
}

func TestInvokeAnswersRefusalsAsResults(t *testing.T) {
	f := newFixture(t)
	token := f.attach(t).ExecutionToken
	status, body := f.do(t, http.MethodPost, bridge.PathInvoke, "bound", token,
		`{"callId":"c","tool":"files.read","arguments":{"path":["Secret"]}}`)
	var result contract.ToolResult
	if err := json.Unmarshal([]byte(body), &result); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if result.Status != contract.StatusDenied || result.Error.Code != contract.CodeNoMatchingGrant || result.CallID != "c" {
		t.Errorf("result %+v", result)
	}
	for name, body := range map[string]string{
		"no call id":     `{"callId":"","tool":"files.read","arguments":{}}`,
		"a long call id": `{"callId":"` + strings.Repeat("c", 257) + `","tool":"files.read","arguments":{}}`,
		"an unknown key": `{"callId":"c","tool":"files.read","arguments":{},"context":{}}`,
	} {
		if status, answer := f.do(t, http.MethodPost, bridge.PathInvoke, "bound", token, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", name, status, answer)
		}
	}
}

func TestSessionStream(t *testing.T) {
	f := newFixture(t)
	token := f.attach(t).ExecutionToken
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.http.URL+bridge.PathSession, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer bound")
	req.Header.Set(bridge.HeaderExecutionToken, token)
	res, err := f.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	next := func() bridge.SessionEvent {
		t.Helper()
		var e bridge.SessionEvent
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := next(); e.Type != bridge.SessionAttached {
		t.Errorf("first line %+v", e)
	}
	if status, body := f.do(t, http.MethodPost, bridge.PathOutcome, "bound", token,
		`{"started":true,"exitCode":0,"initialized":true,"output":"ZG9uZQ==","outputSize":4}`); status != http.StatusNoContent {
		t.Fatalf("outcome: %d %s", status, body)
	}
	e := next()
	for e.Type == bridge.SessionHeartbeat {
		e = next()
	}
	if e.Type != bridge.SessionEnded || e.Status != contract.StatusSucceeded {
		t.Errorf("last line %+v", e)
	}
	if lines.Scan() {
		t.Errorf("a line after the end: %s", lines.Text())
	}
	if f.session.State().ReadyAt.IsZero() {
		t.Error("the stream did not make the bridge ready")
	}
}

// TestClocksThatDiffer: a token that another manager signed, whose clock is five minutes
// off. Its expiry counts, and no other time in it: one that is signed in the future is
// good, one that has run out by this manager's clock has ended with its turn.
func TestClocksThatDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		skew, life time.Duration
		status     int
	}{
		"ahead":                    {5 * time.Minute, time.Minute, http.StatusOK},
		"behind, still valid":      {-5 * time.Minute, 6 * time.Minute, http.StatusOK},
		"behind, expired already":  {-5 * time.Minute, 4 * time.Minute, http.StatusGone},
		"behind, expired just now": {-5 * time.Minute, 5 * time.Minute, http.StatusGone},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.attach(t)
			token := f.mint(t, secret, func(claims *mcp.ExecutionClaims) {
				claims.ExpiresAt = contract.At(f.world.Clock.Now().Add(c.skew + c.life))
			})
			if status, body := f.do(t, http.MethodGet, bridge.PathCatalog, "bound", token, ""); status != c.status {
				t.Errorf("%d %s, want %d", status, body, c.status)
			}
		})
	}
}

// TestSessionStreamsEndWithTheirManager: a bridge learns at once that it has to look
// for the next leader. Nothing is said about the turn, which goes on.
func TestSessionStreamsEndWithTheirManager(t *testing.T) {
	f := newFixture(t)
	token := f.attach(t).ExecutionToken
	close(f.stopping)
	status, body := f.do(t, http.MethodGet, bridge.PathSession, "bound", token, "")
	if status != http.StatusOK || strings.Count(body, "\n") != 1 || !strings.Contains(body, string(bridge.SessionAttached)) {
		t.Errorf("%d %q; want one line, attached, and the end of the stream", status, body)
	}
	if _, ended := f.session.Execution().Ended(); ended {
		t.Error("the turn ended with its stream")
	}
}

// FuzzServer looks for a panic, for a status outside the protocol, and for an
// answer to somebody without credentials.
func FuzzServer(f *testing.F) {
	f.Add(http.MethodPost, bridge.PathInvoke, "Bearer bound", "a.b", []byte(`{"callId":"c"}`))
	f.Add(http.MethodGet, bridge.PathSession, "bearer  x", "", []byte{})
	f.Add(http.MethodPost, bridge.PathAttach, "Basic bound", "", []byte(`{"turn":"t"}`))
	w := kerneltest.New()
	registry := sessions.New(sessions.Options{Kernel: w.Kernel(f), OnChange: func(sessions.Key) {}})
	handler := server.New(server.Options{
		Turns: registry, Keyring: keyring{mcp.Keys{Current: secret}}, Clock: w.Clock.Now, Log: logr.Discard(), Reviewer: reviewer{"bound": bound},
	})
	f.Fuzz(func(t *testing.T, method, path, authorization, execution string, body []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, "/", bytes.NewReader(body))
		if err != nil {
			return
		}
		req.URL.Path = path
		req.Header["Authorization"] = []string{authorization}
		req.Header[bridge.HeaderExecutionToken] = []string{execution}
		req.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, req)
		if recorder.Code < 300 {
			t.Errorf("%s %q answered %d without a turn", method, path, recorder.Code)
		}
	})
}
