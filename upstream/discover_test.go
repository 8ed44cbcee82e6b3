package upstream_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/upstream"
)

// schemas are inputs that a tool may have; each must come out value for value.
var schemas = map[string]string{
	"plain":         `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
	"no properties": `{"type":"object"}`,
	"no type":       `{"properties":{"a":{}}}`,
	"empty":         `{}`,
	"refs":          `{"type":"object","$defs":{"p":{"type":"array","items":{"$ref":"#/$defs/p"}}},"properties":{"p":{"$ref":"#/$defs/p"}}}`,
	"nullable":      `{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"type":["string","null"]}}}`,
	"numbers":       `{"type":"object","properties":{"a":{"maximum":9007199254740992,"multipleOf":0.1,"minimum":-1.50}}}`,
	"inexact":       `{"type":"object","properties":{"a":{"maximum":9007199254740993}}}`,
	"wrong type":    `{"type":"int"}`,
	"unicode":       "{\"type\":\"object\",\"title\":\"\\u00e9\u00e9\\ud83d\\ude00\",\"x-mcp-header\":\"A b\"}",
	"draft 7":       `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{}}`,
}

func TestSchemasComeOutAsTheyAre(t *testing.T) {
	t.Parallel()
	var list []string
	for name, schema := range schemas {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":%s,"outputSchema":%s}`, name, schema, schema))
	}
	s := newRogue(t, func(s *rogue) { s.tools = strings.Join(list, ",") })
	found, err := s.client(nil).Discover(t.Context())
	if err != nil || len(found.Tools) != len(schemas) {
		t.Fatalf("%v, %v", found, err)
	}
	for _, tool := range found.Tools {
		want := schemas[tool.Name]
		if string(tool.InputSchema) != want || string(tool.OutputSchema) != want {
			t.Errorf("%s: %s %s", tool.Name, tool.InputSchema, tool.OutputSchema)
		}
		digest, err := canonical.Hash(tool.InputSchema)
		if tool.Digest != digest || (tool.Flaw != "") != (err != nil) {
			t.Errorf("%s: digest %q, want %q; flaw %q, %v", tool.Name, tool.Digest, digest, tool.Flaw, err)
		}
	}
}

func TestListsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string
		tools  []string
		err    error
	}{
		"empty":         {`{"tools":[]}`, nil, nil},
		"odd ones":      {`{"tools":[null,1,{},{"name":""},{"name":"a","inputSchema":{}},{"name":"b"},{"name":"c","inputSchema":true}]}`, []string{"a", "b", "c"}, nil},
		"one twice":     {`{"tools":[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{"x":1}}]}`, []string{"a"}, nil},
		"no list":       {`{"tools":{}}`, nil, upstream.ErrDiscovery},
		"nothing":       {`{}`, nil, upstream.ErrDiscovery},
		"endless":       {`{"tools":[],"nextCursor":"x"}`, nil, upstream.ErrDiscovery},
		"too many":      {`{"tools":[` + strings.Repeat(`{"name":"a","inputSchema":{}},`, upstream.MaxTools) + `{"name":"a"}]}`, nil, upstream.ErrTooManyTools},
		"too large":     {`{"tools":[{"name":"a","description":"` + strings.Repeat("x", 5<<20) + `","inputSchema":{}}]}`, nil, upstream.ErrDiscovery},
		"twice the key": {`{"tools":[],"tools":[]}`, nil, upstream.ErrDiscovery},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRogue(t, func(s *rogue) {
				s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
					if m.Method == "tools/list" {
						s.result(w, m, c.result)
					}
					return m.Method == "tools/list"
				}
			})
			found, err := s.client(nil).Discover(t.Context())
			if !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if c.err != nil {
				return
			}
			var names []string
			for _, tool := range found.Tools {
				names = append(names, tool.Name)
				if (tool.Flaw == "") != (tool.Name == "a" && name != "one twice") {
					t.Errorf("%s: flaw %q", tool.Name, tool.Flaw)
				}
			}
			if diff := cmp.Diff(c.tools, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newRogue(t, func(s *rogue) {
		s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
			switch {
			case m.Method != "tools/list":
				return false
			case strings.Contains(string(m.Params), "second"):
				s.result(w, m, `{"tools":[{"name":"a","inputSchema":{}}]}`)
			default:
				s.result(w, m, `{"tools":[{"name":"b","inputSchema":{}}],"nextCursor":"second"}`)
			}
			return true
		}
	})
	found, err := s.client(nil).Discover(t.Context())
	if err != nil || len(found.Tools) != 2 || found.Tools[0].Name != "a" {
		t.Errorf("%+v %v", found, err)
	}
}

// TestBackOff: a server that does not answer keeps nobody waiting twice.
func TestBackOff(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	down := atomic.Bool{}
	down.Store(true)
	s := newRogue(t, func(s *rogue) {
		s.before = func(w http.ResponseWriter, _ *http.Request, _ message) bool {
			if down.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return down.Load()
		}
	})
	client := s.client(func(o *upstream.Options) { o.Clock = func() time.Time { return time.Unix(0, now.Load()) } })
	want := time.Second
	for range 8 {
		asked := len(s.all())
		if _, err := client.Tools(t.Context()); !errors.Is(err, upstream.ErrDiscovery) {
			t.Fatalf("%v", err)
		}
		if len(s.all()) != asked+1 {
			t.Fatalf("%d requests, want 1", len(s.all())-asked)
		}
		if wait := client.RetryAfter(); wait != min(want, time.Minute) {
			t.Errorf("wait %v, want %v", wait, want)
		}
		if _, err := client.Tools(t.Context()); err == nil || len(s.all()) != asked+1 {
			t.Errorf("asked again too early: %v", err)
		}
		now.Add(int64(client.RetryAfter()))
		want *= 2
	}
	down.Store(false)
	if _, err := client.Tools(t.Context()); err != nil || client.RetryAfter() != 0 {
		t.Errorf("%v, wait %v", err, client.RetryAfter())
	}
	asked := len(s.saw("tools/list"))
	if _, err := client.Tools(t.Context()); err != nil || len(s.saw("tools/list")) != asked {
		t.Errorf("what is fresh was asked for again: %v", err)
	}
	now.Add(int64(3 * time.Minute))
	if _, err := client.Tools(t.Context()); err != nil || len(s.saw("tools/list")) != asked+1 {
		t.Errorf("what is old was not asked for again: %v", err)
	}
}

// TestListChanged: the server says that its tools changed, and a turn that began
// before cannot call what it was not shown.
func TestListChanged(t *testing.T) {
	t.Parallel()
	say := make(chan string)
	changed := make(chan struct{}, 10)
	s := newRogue(t, func(s *rogue) {
		s.get = func(w http.ResponseWriter, r *http.Request) {
			s.stream(w, ": hello\n\n")
			for {
				select {
				case line := <-say:
					s.stream(w, line)
				case <-r.Context().Done():
					return
				}
			}
		}
	})
	client := s.client(func(o *upstream.Options) { o.Changed = func() { changed <- struct{}{} } })
	digest := digestOf(client, t.Context(), "echo")
	s.set(func(s *rogue) {
		s.tools = `{"name":"echo","description":"x","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"to":{"type":"string"}}}}`
	})
	say <- "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{\"_meta\":{\"x\":1}}}\n\n"
	<-changed
	if again := digestOf(client, t.Context(), "echo"); again == digest || again == "" {
		t.Errorf("the tools were not asked for again: %q", again)
	}
	if _, err := client.Call(t.Context(), upstream.Request{Tool: "echo", Digest: digest}); codeOf(err) != upstream.CodeChanged {
		t.Errorf("a call with the old schema: %v", err)
	}
	if n := len(s.saw("tools/call")); n != 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

// TestGetStreams: whatever a server does with the stream that it may offer, calls are
// not delayed and the session stays.
func TestGetStreams(t *testing.T) {
	t.Parallel()
	for name, get := range map[string]http.HandlerFunc{
		"stays open":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); <-r.Context().Done() },
		"never answers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"ends at once":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
		"a page":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"500":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"unauthorized":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"leads away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusTemporaryRedirect)
		},
		"forged answers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for id := range 20 {
				_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n\n", id+100)
			}
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(strings.Repeat("x", 6<<20) + "\n\ndata: {\n\n\x00"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRogue(t, func(s *rogue) { s.get = get })
			client := s.client(func(o *upstream.Options) { o.Timeout = 5 * time.Second })
			for range 3 {
				if out, err := echo(client, t.Context()); err != nil || string(out.Value) != `"ok"` {
					t.Errorf("%s %v", out.Value, err)
				}
			}
			if s.made() != 1 {
				t.Errorf("%d sessions", s.made())
			}
			client.Close()
		})
	}
}

// TestHungServerDelaysNoOther: two clients, one of a server that never answers.
func TestHungServerDelaysNoOther(t *testing.T) {
	t.Parallel()
	hung := newRogue(t, func(s *rogue) {
		s.before = func(_ http.ResponseWriter, r *http.Request, _ message) bool { <-r.Context().Done(); return true }
	})
	stuck := hung.client(func(o *upstream.Options) { o.Timeout = 500 * time.Millisecond })
	healthy := newRogue(t, nil).client(nil)
	failed := make(chan error, 1)
	go func() { _, err := stuck.Tools(t.Context()); failed <- err }()
	for range 10 {
		if _, err := echo(healthy, t.Context()); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-failed:
		t.Errorf("the hung server answered first: %v", err)
	default:
	}
	if err := <-failed; !errors.Is(err, upstream.ErrUnreachable) {
		t.Errorf("%v", err)
	}
	if _, err := stuck.Tools(t.Context()); !errors.Is(err, upstream.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}
