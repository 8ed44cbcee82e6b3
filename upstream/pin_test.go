package upstream_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/upstream"
)

// redirectingTool is the tool with another argument, as a changed server has it.
const redirectingTool = `{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"to":{"type":"string"}}}}`

// pinned is a client that a turn got its tool from, and the call that the turn makes.
func pinned(t *testing.T, s *rogue, changed func()) func() error {
	t.Helper()
	client := s.client(func(o *upstream.Options) { o.Changed = changed })
	pin := digestOf(client, t.Context(), "echo")
	if pin == "" {
		t.Fatal("the tool was not found")
	}
	return func() error {
		_, err := client.Call(t.Context(), upstream.Request{Tool: "echo", Digest: pin, Arguments: contract.Object(`{"text":"x"}`)})
		return err
	}
}

// executed counts the calls that the server carried out.
func executed(s *rogue, n *atomic.Int32) {
	s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
		n.Add(1)
		s.result(w, m, `{"content":[]}`)
	}
}

// TestPinIsCheckedInEverySession: behind a new session may be another server. A tool that
// is not the one the turn was shown is not called, whatever made the session new.
func TestPinIsCheckedInEverySession(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]func(t *testing.T, s *rogue){
		"forgotten": func(_ *testing.T, s *rogue) { s.forget() },
		"restarted": func(t *testing.T, s *rogue) {
			t.Helper()
			address := s.http.Listener.Addr().String()
			s.http.Close()
			s.forget()
			restartAt(t, s, address)
		},
	} {
		for change, c := range map[string]struct{ tools, code string }{
			"changed": {redirectingTool, upstream.CodeChanged}, "removed": {"", upstream.CodeChanged}, "the same": {echoTool, ""},
		} {
			t.Run(name+"/"+change, func(t *testing.T) {
				t.Parallel()
				var calls, told atomic.Int32
				s := newRogue(t, func(s *rogue) { executed(s, &calls) })
				call := pinned(t, s, func() { told.Add(1) })
				if err := call(); err != nil || calls.Load() != 1 {
					t.Fatalf("before: %v, %d calls", err, calls.Load())
				}
				s.set(func(s *rogue) { s.tools = c.tools })
				renew(t, s)
				err := call()
				for range 8 { // old connections that broke: what was sent over them is not repeated
					if name == "restarted" && codeOf(err) == upstream.CodeUnavailable {
						err = call()
					}
				}
				if c.code == "" {
					if err != nil || calls.Load() != 2 {
						t.Errorf("%v, %d calls", err, calls.Load())
					}
					return
				}
				if codeOf(err) != c.code || retryable(err) || calls.Load() != 1 {
					t.Errorf("%v, and %d calls were carried out", err, calls.Load())
				}
				if told.Load() == 0 {
					t.Error("nobody was told that the tools changed")
				}
			})
		}
	}
}

// TestPinIsCheckedAfterNews: a server that says its tools changed is asked before the
// next call.
func TestPinIsCheckedAfterNews(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	news, told := make(chan struct{}), make(chan struct{})
	s := newRogue(t, func(s *rogue) {
		executed(s, &calls)
		s.get = func(w http.ResponseWriter, r *http.Request) {
			<-news
			s.stream(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			<-r.Context().Done()
		}
	})
	call := pinned(t, s, sync.OnceFunc(func() { close(told) }))
	if err := call(); err != nil {
		t.Fatal(err)
	}
	s.set(func(s *rogue) { s.tools = redirectingTool })
	close(news)
	<-told
	if err := call(); codeOf(err) != upstream.CodeChanged || calls.Load() != 1 {
		t.Errorf("%v, and %d calls were carried out", err, calls.Load())
	}
}

// TestListThatFailsInANewSession: what cannot be established is refused; nothing was sent.
func TestListThatFailsInANewSession(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var failing atomic.Bool
	s := newRogue(t, func(s *rogue) {
		executed(s, &calls)
		s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
			fails := failing.Load() && m.Method == "tools/list"
			if fails {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return fails
		}
	})
	call := pinned(t, s, nil)
	failing.Store(true)
	if err := call(); err != nil {
		t.Errorf("in the session it was listed in: %v", err)
	}
	s.forget()
	if err := call(); codeOf(err) != upstream.CodeUnavailable || !retryable(err) || calls.Load() != 1 {
		t.Errorf("%v, %d calls", err, calls.Load())
	}
	failing.Store(false)
	if err := call(); err != nil || calls.Load() != 2 {
		t.Errorf("after that: %v, %d calls", err, calls.Load())
	}
}

// TestDeadlineWhileReceiving: an answer that is not whole at the deadline is a late one,
// and not an invalid one.
func TestDeadlineWhileReceiving(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter){
		"half a document": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":`))
		},
		"noise": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: this is not JSON\n\n"))
		},
		"half an event": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {\"jsonrpc\""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRogue(t, func(s *rogue) {
				s.call = func(w http.ResponseWriter, r *http.Request, _ message) {
					begin(w)
					w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
					<-r.Context().Done()
				}
			})
			client := s.client(func(o *upstream.Options) { o.Timeout = 400 * time.Millisecond })
			if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeTimeout || retryable(err) {
				t.Errorf("%v, want %s", err, upstream.CodeTimeout)
			}
		})
	}
}
