package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/upstream"
)

func codeOf(err error) string {
	if f, ok := errors.AsType[*kernel.Failure](err); ok {
		return f.Err.Code
	}
	return fmt.Sprint(err)
}

func retryable(err error) bool {
	f, ok := errors.AsType[*kernel.Failure](err)
	return ok && f.Err.Retryable != nil && *f.Err.Retryable
}

// TestResults: what becomes of each kind of answer.
func TestResults(t *testing.T) {
	t.Parallel()
	const media = `{"sharedos/content":"mcp"}`
	for name, c := range map[string]struct {
		result     string
		structured bool
		value      string
		metadata   string
		code       string
	}{
		"text":                {result: `{"content":[{"type":"text","text":"a\nb","_meta":{"x":1}}],"_meta":{"secret":1}}`, value: `"a\nb"`},
		"texts":               {result: `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, value: `"a\nb"`},
		"nothing":             {result: `{"content":[]}`, value: `""`},
		"no content":          {result: `{}`, value: `""`},
		"structured":          {result: `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":9007199254740993,"d":1.10}}`, value: `{"n":9007199254740993,"d":1.10}`},
		"image":               {result: `{"content":[{"type":"text","text":"see"},{"type":"image","data":"aGk=","mimeType":"image/png","_meta":{"a":1},"evil":2}]}`, value: `{"content":[{"type":"text","text":"see"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, metadata: media},
		"audio":               {result: `{"content":[{"type":"audio","data":"","mimeType":"audio/wav","annotations":{"priority":0.5,"x":1}}]}`, value: `{"content":[{"type":"audio","data":"","mimeType":"audio/wav","annotations":{"priority":0.5}}]}`, metadata: media},
		"resource":            {result: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t","_meta":{"k":1}}}]}`, value: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}}]}`, metadata: media},
		"link":                {result: `{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":3}]}`, value: `{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":3}]}`, metadata: media},
		"image and object":    {result: `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":{"a":1}}`, value: `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, metadata: media},
		"object with schema":  {result: `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":{"a":1}}`, structured: true, value: `{"a":1}`},
		"pretty":              {result: "{\n \"content\": [ {\"type\":\"image\",\n\"data\":\"aGk=\",\"mimeType\":\"i/p\", \"annotations\": {\"audience\": [\n\"user\"]}} ]}", value: `{"content":[{"type":"image","data":"aGk=","mimeType":"i/p","annotations":{"audience":[ "user"]}}]}`, metadata: media},
		"tool error":          {result: `{"content":[{"type":"text","text":"no such page\u001b[31m"}],"isError":true}`, code: upstream.CodeTool},
		"tool error, silent":  {result: `{"content":[],"isError":true}`, code: upstream.CodeTool},
		"unknown block":       {result: `{"content":[{"type":"video"}]}`, code: contract.CodeInvalidToolResult},
		"no base64":           {result: `{"content":[{"type":"image","data":"%%","mimeType":"image/png"}]}`, code: contract.CodeInvalidToolResult},
		"text is a number":    {result: `{"content":[{"type":"text","text":1}]}`, code: contract.CodeInvalidToolResult},
		"content is a string": {result: `{"content":"x"}`, code: contract.CodeInvalidToolResult},
		"a string":            {result: `"x"`, code: contract.CodeInvalidToolResult},
		"key twice":           {result: `{"content":[],"content":[]}`, code: contract.CodeInvalidToolResult},
		"resource of nothing": {result: `{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}`, code: contract.CodeInvalidToolResult},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/streamed=%v", name, streamed), func(t *testing.T) {
				t.Parallel()
				s := newRogue(t, func(s *rogue) {
					s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
						if !streamed {
							s.result(w, m, c.result)
							return
						}
						data := strings.ReplaceAll(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.result), "\n", "\ndata: ")
						s.stream(w, "event: message\ndata: "+data+"\n\n")
					}
				})
				client := s.client(nil)
				out, err := client.Call(t.Context(), upstream.Request{Tool: "echo", Digest: digestOf(client, t.Context(), "echo"), Structured: c.structured, Arguments: contract.Object(`{}`)})
				if c.code != "" {
					if codeOf(err) != c.code {
						t.Errorf("%s %v, want %s", out.Value, err, c.code)
					}
					if strings.ContainsRune(err.Error(), 0x1b) {
						t.Error("an escape sequence is in the message")
					}
					return
				}
				if err != nil || string(out.Value) != c.value || string(out.Metadata) != c.metadata {
					t.Errorf("%s %s %v, want %s %s", out.Value, out.Metadata, err, c.value, c.metadata)
				}
			})
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{64<<10 + 1, 1 << 20, 10 << 20} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/streamed=%v", size, streamed), func(t *testing.T) {
				t.Parallel()
				text := strings.Repeat("x", size)
				s := newRogue(t, func(s *rogue) {
					s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
						result := `{"content":[{"type":"text","text":"` + text + `"}]}`
						if streamed {
							s.stream(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result))
							return
						}
						s.result(w, m, result)
					}
				})
				client := s.client(nil)
				out, err := echo(client, t.Context())
				if size > upstream.DefaultMaxAnswer {
					if codeOf(err) != upstream.CodeTooLarge {
						t.Errorf("%v, want %s", err, upstream.CodeTooLarge)
					}
				} else if err != nil || len(out.Value) != size+2 {
					t.Errorf("%d bytes, %v", len(out.Value), err)
				}
				s.set(func(s *rogue) {
					s.call = func(w http.ResponseWriter, _ *http.Request, m message) { s.result(w, m, `{"content":[]}`) }
				})
				if _, err := echo(client, t.Context()); err != nil || s.made() != 1 {
					t.Errorf("the next call: %v, in session %d", err, s.made())
				}
			})
		}
	}
}

// TestNoise: an answer among what is no answer.
func TestNoise(t *testing.T) {
	t.Parallel()
	s := newRogue(t, func(s *rogue) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			s.stream(w, strings.ReplaceAll(`: a comment
no colon here
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}

data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}

data: this is not JSON

data: {"jsonrpc":"1.0","id":ID,"result":{"content":[{"type":"text","text":"wrong version"}]}}

data: {"jsonrpc":"2.0","id":987654,"result":{"content":[{"type":"text","text":"another's"}]}}

data: {"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"an id of another type"}]}}

data: {"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{"messages":[]}}

data: {"jsonrpc":"2.0","id":78,"method":"roots/list"}

event: other
data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"of another event"}]}}

id:
retry: soon

data: {"jsonrpc":"2.0",
data: "id":ID,"result":{"content":[{"type":"text","text":"right"}]}}

data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a second one"}]}}

`, "ID", string(m.ID)))
		}
	})
	client := s.client(nil)
	for range 3 {
		if out, err := echo(client, t.Context()); err != nil || string(out.Value) != `"right"` {
			t.Fatalf("%s %v", out.Value, err)
		}
	}
	if s.made() != 1 {
		t.Errorf("%d sessions, want 1", s.made())
	}
}

// TestFailures: each failed answer has its code, and none takes the session along.
func TestFailures(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, _ message) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		answer    func(http.ResponseWriter, message)
		code      string
		retryable bool
	}{
		"protocol error": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad"}}`, m.ID)
		}, upstream.CodeProtocol, false},
		"401":              {status(401), upstream.CodeCredentials, false},
		"403":              {status(403), upstream.CodeCredentials, false},
		"405":              {status(405), upstream.CodeRefused, false},
		"413":              {status(413), upstream.CodeRefused, false},
		"429":              {status(429), upstream.CodeUnavailable, true},
		"500":              {status(500), upstream.CodeUnavailable, false},
		"503":              {status(503), upstream.CodeUnavailable, true},
		"202 to a request": {status(202), contract.CodeInvalidToolResult, false},
		"a page":           {func(w http.ResponseWriter, _ message) { _, _ = w.Write([]byte("<html>")) }, contract.CodeInvalidToolResult, false},
		"no JSON": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{"))
		}, contract.CodeInvalidToolResult, false},
		"an answer to another": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`))
		}, contract.CodeInvalidToolResult, false},
		"a stream that ends": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
		}, upstream.CodeUnavailable, false},
		"broken off": {func(http.ResponseWriter, message) { panic(http.ErrAbortHandler) }, upstream.CodeUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRogue(t, nil)
			good := s.call
			client := s.client(nil)
			if _, err := echo(client, t.Context()); err != nil {
				t.Fatal(err)
			}
			s.set(func(s *rogue) { s.call = func(w http.ResponseWriter, _ *http.Request, m message) { c.answer(w, m) } })
			_, err := echo(client, t.Context())
			if codeOf(err) != c.code || retryable(err) != c.retryable {
				t.Errorf("%v, retryable %v; want %s, %v", err, retryable(err), c.code, c.retryable)
			}
			if len(s.saw("tools/call")) != 2 {
				t.Errorf("%d calls, want 2: nothing is called twice", len(s.saw("tools/call")))
			}
			s.set(func(s *rogue) { s.call = good })
			if _, err := echo(client, t.Context()); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if s.made() != 1 {
				t.Errorf("%d sessions, want 1", s.made())
			}
		})
	}
}

func TestRepeatableCallsSaySo(t *testing.T) {
	t.Parallel()
	s := newRogue(t, nil)
	client := s.client(nil)
	if _, err := client.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.set(func(s *rogue) {
		s.call = func(http.ResponseWriter, *http.Request, message) { panic(http.ErrAbortHandler) }
	})
	_, err := client.Call(t.Context(), upstream.Request{Tool: "echo", Digest: digestOf(client, t.Context(), "echo"), Repeatable: true, Arguments: contract.Object(`{}`)})
	if codeOf(err) != upstream.CodeUnavailable || !retryable(err) {
		t.Errorf("%v, retryable %v", err, retryable(err))
	}
}

// TestForgottenSession: a session that is gone is made anew, and the call is made.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	s := newRogue(t, nil)
	client := s.client(nil)
	for i := range 3 {
		if out, err := echo(client, t.Context()); err != nil || string(out.Value) != `"ok"` {
			t.Fatalf("call %d: %s %v", i, out.Value, err)
		}
		s.forget()
	}
	if s.made() != 3 {
		t.Errorf("%d sessions, want 3", s.made())
	}
	// One that never knows its own session fails, and is not asked for ever.
	s.set(func(s *rogue) {
		s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
			if m.Method == "tools/call" {
				w.WriteHeader(http.StatusNotFound)
			}
			return m.Method == "tools/call"
		}
	})
	calls := len(s.saw("tools/call"))
	if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeRefused || len(s.saw("tools/call")) != calls+2 {
		t.Errorf("%v after %d calls", err, len(s.saw("tools/call"))-calls)
	}
}

// TestRestart: the server goes away between list and call, and comes back.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newRogue(t, nil)
	client := s.client(nil)
	if _, err := echo(client, t.Context()); err != nil {
		t.Fatal(err)
	}
	address := s.http.Listener.Addr().String()
	s.http.Close()
	if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeUnavailable {
		t.Errorf("while it is away: %v", err)
	}
	s.forget()
	restartAt(t, s, address)
	out, err := echo(client, t.Context())
	for range 8 { // old connections that broke: what was sent over them is not repeated
		if codeOf(err) == upstream.CodeUnavailable {
			out, err = echo(client, t.Context())
		}
	}
	if err != nil || string(out.Value) != `"ok"` {
		t.Errorf("after it came back: %s %v", out.Value, err)
	}
}

func TestDeadlineAndCancellation(t *testing.T) {
	t.Parallel()
	release, late := make(chan struct{}), make(chan struct{})
	answered := sync.OnceFunc(func() { close(late) })
	s := newRogue(t, func(s *rogue) {
		s.call = func(w http.ResponseWriter, r *http.Request, m message) {
			if strings.Contains(string(m.Params), `"fast"`) {
				s.result(w, m, `{"content":[{"type":"text","text":"fast"}]}`)
				return
			}
			<-release
			s.result(w, m, `{"content":[{"type":"text","text":"late"}]}`)
			answered()
		}
	})
	client := s.client(func(o *upstream.Options) { o.Timeout = 300 * time.Millisecond })
	if _, err := client.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, text string) (kernel.Output, error) {
		return client.Call(ctx, upstream.Request{Tool: "echo", Digest: digestOf(client, ctx, "echo"), Arguments: contract.Object(`{"text":"` + text + `"}`)})
	}
	slow := make(chan error, 1)
	go func() { _, err := call(t.Context(), "slow"); slow <- err }()
	if out, err := call(t.Context(), "fast"); err != nil || string(out.Value) != `"fast"` {
		t.Errorf("beside a hung call: %s %v", out.Value, err)
	}
	if err := <-slow; codeOf(err) != upstream.CodeTimeout || retryable(err) {
		t.Errorf("a hung call: %v", err)
	}
	close(release)
	<-late
	if out, err := call(t.Context(), "fast"); err != nil || string(out.Value) != `"fast"` {
		t.Errorf("after a late answer: %s %v", out.Value, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, "slow"); codeOf(err) != upstream.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	s := newRogue(t, func(s *rogue) {
		s.call = func(_ http.ResponseWriter, r *http.Request, _ message) { close(entered); <-r.Context().Done() }
	})
	client := s.client(nil)
	running := make(chan error, 1)
	go func() { _, err := echo(client, context.Background()); running <- err }()
	<-entered
	client.Close()
	if err := <-running; codeOf(err) != upstream.CodeCancelled {
		t.Errorf("a running call: %v", err)
	}
	if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeChanged {
		t.Errorf("a later call: %v", err)
	}
	if _, err := client.Discover(t.Context()); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("discovering: %v", err)
	}
}
