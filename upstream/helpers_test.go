package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/upstream"
)

// rogue is a server that does exactly what a test tells it to.
type rogue struct {
	t    *testing.T
	http *httptest.Server

	mu       sync.Mutex
	requests []seen
	sessions int // that were made

	// tools is the JSON of the list.
	tools string
	// call answers tools/call; answer is a helper that makes a result.
	call func(w http.ResponseWriter, r *http.Request, m message)
	// before, when set, may answer in the place of everything else.
	before func(w http.ResponseWriter, r *http.Request, m message) (done bool)
	// get answers GET; nil is 405.
	get http.HandlerFunc
	// noSession makes it a server without sessions.
	noSession bool
	// valid is the session that is known; requests of others get 404.
	valid string
}

type seen struct {
	method string // of the protocol, or of HTTP
	header http.Header
	body   string
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

const echoTool = `{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

func newRogue(t *testing.T, change func(*rogue)) *rogue {
	t.Helper()
	s := &rogue{t: t, tools: echoTool}
	s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
		s.result(w, m, `{"content":[{"type":"text","text":"ok"}]}`)
	}
	if change != nil {
		change(s)
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

func (s *rogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m message
	_ = json.Unmarshal(body, &m)
	what := m.Method
	if r.Method != http.MethodPost {
		what = r.Method
	}
	s.mu.Lock()
	s.requests = append(s.requests, seen{what, r.Header.Clone(), string(body)})
	valid, before, get, call, tools := s.valid, s.before, s.get, s.call, s.tools
	s.mu.Unlock()
	if before != nil && before(w, r, m) {
		return
	}
	switch {
	case r.Method == http.MethodGet && get != nil:
		get(w, r)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.Method == "initialize":
		s.initialize(w, m)
		return
	case !s.noSession && r.Header.Get("Mcp-Session-Id") != valid:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch m.Method {
	case "tools/list":
		s.result(w, m, `{"tools":[`+tools+`]}`)
	case "tools/call":
		call(w, r, m)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *rogue) initialize(w http.ResponseWriter, m message) {
	s.mu.Lock()
	s.sessions++
	s.valid = fmt.Sprintf("session-%d", s.sessions)
	if !s.noSession {
		w.Header().Set("Mcp-Session-Id", s.valid)
	}
	s.mu.Unlock()
	s.result(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"rogue","version":"1"}}`)
}

// set changes what the server does.
func (s *rogue) set(change func(*rogue)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// forget makes the server forget its session.
func (s *rogue) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.valid = "another"
}

func (s *rogue) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func (s *rogue) saw(method string) []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []seen
	for _, r := range s.requests {
		if r.method == method {
			out = append(out, r)
		}
	}
	return out
}

func (s *rogue) all() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *rogue) result(w http.ResponseWriter, m message, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// stream answers with lines of an event stream, as they are.
func (s *rogue) stream(w http.ResponseWriter, lines string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, lines)
	w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
}

func (s *rogue) client(change func(*upstream.Options)) *upstream.Client {
	s.t.Helper()
	o := upstream.Options{URL: s.http.URL + "/mcp", Timeout: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := upstream.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func echo(c *upstream.Client, ctx context.Context) (kernel.Output, error) { //nolint:revive // the client is the subject
	return c.Call(ctx, upstream.Request{Tool: "echo", Digest: digestOf(c, ctx, "echo"), Arguments: contract.Object(`{"text":"x"}`)})
}

func digestOf(c *upstream.Client, ctx context.Context, name string) string { //nolint:revive // the client is the subject
	found, err := c.Tools(ctx)
	if err != nil {
		return ""
	}
	tool, ok := found.Find(name)
	if !ok {
		return ""
	}
	return tool.Digest
}

// restartAt serves again at the address.
func restartAt(t *testing.T, s *rogue, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(s)
	_ = again.Listener.Close()
	again.Listener = listener
	again.Start()
	t.Cleanup(again.Close)
}
