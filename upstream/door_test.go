package upstream_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/upstream"
)

// TestOnlyItsOwnGoesOut: of every request, only headers that are the protocol's or the
// credential's, and of a call only the tool and its arguments.
func TestOnlyItsOwnGoesOut(t *testing.T) {
	t.Parallel()
	s := newRogue(t, func(s *rogue) {
		s.get = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) }
	})
	client := s.client(func(o *upstream.Options) {
		o.Headers = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer s3cret"}}, nil
		}
	})
	if _, err := echo(client, t.Context()); err != nil {
		t.Fatal(err)
	}
	client.Close()
	known := []string{
		"Accept", "Authorization", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "User-Agent",
	}
	for _, r := range s.all() {
		for name := range r.header {
			if !slices.Contains(known, name) {
				t.Errorf("%s: header %s", r.method, name)
			}
		}
		if r.header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("%s went out without the credential", r.method)
		}
		if strings.Contains(r.body, "_meta") || strings.Contains(r.body, "sharedos/") {
			t.Errorf("%s: %s", r.method, r.body)
		}
	}
	calls := s.saw("tools/call")
	if len(calls) != 1 || !strings.HasSuffix(calls[0].body, `"params":{"name":"echo","arguments":{"text":"x"}}}`) && !strings.Contains(calls[0].body, `"params":{"arguments":{"text":"x"},"name":"echo"}`) {
		t.Errorf("the call: %+v", calls)
	}
}

// TestCredentialsRotate: a new value is used once the old one is refused, and a call
// that was refused for it is made with the new one.
func TestCredentialsRotate(t *testing.T) {
	t.Parallel()
	var valid atomic.Value
	var status atomic.Int32
	valid.Store("one")
	status.Store(http.StatusUnauthorized)
	s := newRogue(t, func(s *rogue) {
		s.before = func(w http.ResponseWriter, r *http.Request, _ message) bool {
			ok := r.Header.Get("X-Key") == valid.Load()
			if !ok {
				w.WriteHeader(int(status.Load()))
			}
			return !ok
		}
	})
	held, stored := "one", "one"
	client := s.client(func(o *upstream.Options) {
		o.Headers = func(_ context.Context, fresh bool) (http.Header, error) {
			if stored == "" {
				return nil, errors.New("secret \"key\" has no key \"token\"")
			}
			if fresh {
				held = stored
			}
			return http.Header{"X-Key": {held}}, nil
		}
	})
	for _, value := range []string{"one", "two", "three"} {
		stored = value
		valid.Store(value)
		if _, err := echo(client, t.Context()); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	// Servers say either.
	status.Store(http.StatusForbidden)
	stored = "four"
	valid.Store("four")
	if _, err := echo(client, t.Context()); err != nil {
		t.Errorf("after 403: %v", err)
	}
	for _, code := range []int32{http.StatusUnauthorized, http.StatusForbidden} {
		status.Store(code)
		valid.Store("unknown")
		asked := len(s.all())
		if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeCredentials {
			t.Errorf("a refused credential: %v", err)
		}
		if n := len(s.all()) - asked; n != 1 {
			t.Errorf("%d: the same credential was sent %d times", code, n)
		}
	}
	stored = ""
	if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeCredentials || strings.Contains(err.Error(), "secret") {
		t.Errorf("a credential that is gone: %v", err)
	}
	fresh := s.client(func(o *upstream.Options) {
		o.Headers = func(context.Context, bool) (http.Header, error) { return http.Header{"X-Key": {"wrong-value"}}, nil }
	})
	if _, err := fresh.Discover(t.Context()); !errors.Is(err, upstream.ErrCredentials) || strings.Contains(err.Error(), "wrong-value") {
		t.Errorf("discovering with a refused credential: %v", err)
	}
}

// TestNothingIsFollowedElsewhere: the other origin sees no request at all.
func TestNothingIsFollowedElsewhere(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close)
	secret := func(o *upstream.Options) {
		o.Timeout = 5 * time.Second
		o.Headers = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer s3cret"}}, nil
		}
	}
	for _, code := range []int{300, 301, 302, 303, 307, 308} {
		s := newRogue(t, nil)
		client := s.client(secret)
		if _, err := echo(client, t.Context()); err != nil {
			t.Fatal(err)
		}
		s.set(func(s *rogue) {
			s.call = func(w http.ResponseWriter, r *http.Request, _ message) { http.Redirect(w, r, thief.URL+"/mcp", code) }
		})
		if _, err := echo(client, t.Context()); codeOf(err) != upstream.CodeRefused {
			t.Errorf("%d: %v", code, err)
		}
	}
	// The old transport names its endpoint: it may not be elsewhere either.
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(405)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: " + thief.URL + "/messages\n\n"))
		w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
		<-r.Context().Done()
	}))
	t.Cleanup(old.Close)
	o := upstream.Options{URL: old.URL}
	secret(&o)
	client, err := upstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := client.Discover(t.Context()); err == nil {
		t.Error("an endpoint elsewhere was taken")
	}
	if n := stolen.Load(); n != 0 {
		t.Errorf("the other origin saw %d requests", n)
	}
}

func TestRedirectsWithinTheOrigin(t *testing.T) {
	t.Parallel()
	s := newRogue(t, nil)
	s.set(func(s *rogue) {
		s.before = func(w http.ResponseWriter, r *http.Request, _ message) bool {
			if r.URL.Path != "/mcp" {
				return false
			}
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return true
		}
	})
	if out, err := echo(s.client(nil), t.Context()); err != nil || string(out.Value) != `"ok"` {
		t.Errorf("%s %v", out.Value, err)
	}
	s.set(func(s *rogue) {
		s.before = func(w http.ResponseWriter, r *http.Request, _ message) bool {
			http.Redirect(w, r, "/mcp", http.StatusPermanentRedirect)
			return true
		}
	})
	if _, err := s.client(nil).Discover(t.Context()); err == nil {
		t.Error("a circle was followed")
	}
}

// sdk is a server of the official SDK with three tools.
func sdk() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	type out struct {
		Said string `json:"said"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, args in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.Text}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "say"}, func(_ context.Context, _ *mcp.CallToolRequest, args in) (*mcp.CallToolResult, out, error) {
		return nil, out{args.Text}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("no such page")
	})
	return server
}

// TestOfficialServer over both transports and in every mode.
func TestOfficialServer(t *testing.T) {
	t.Parallel()
	server := sdk()
	get := func(*http.Request) *mcp.Server { return server }
	for name, handler := range map[string]http.Handler{
		"streams":   mcp.NewStreamableHTTPHandler(get, nil),
		"json":      mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}),
		"resumable": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}),
		"old":       mcp.NewSSEHandler(get, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(handler)
			t.Cleanup(web.CloseClientConnections)
			client, err := upstream.New(upstream.Options{URL: web.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			for range 3 {
				if out, err := echo(client, t.Context()); err != nil || string(out.Value) != `"x"` {
					t.Errorf("echo: %s %v", out.Value, err)
				}
			}
			out, err := client.Call(t.Context(), upstream.Request{
				Tool: "say", Digest: digestOf(client, t.Context(), "say"), Structured: true, Arguments: contract.Object(`{"text":"y"}`),
			})
			if err != nil || string(out.Value) != `{"said":"y"}` {
				t.Errorf("say: %s %v", out.Value, err)
			}
			_, err = client.Call(t.Context(), upstream.Request{Tool: "fail", Digest: digestOf(client, t.Context(), "fail"), Arguments: contract.Object(`{"text":"y"}`)})
			if codeOf(err) != upstream.CodeTool || !strings.Contains(err.Error(), "no such page") {
				t.Errorf("fail: %v", err)
			}
			if _, err := client.Call(t.Context(), upstream.Request{Tool: "none"}); codeOf(err) != upstream.CodeChanged {
				t.Errorf("none: %v", err)
			}
		})
	}
}

// TestTLS: a server is verified, and what it is verified with can be replaced.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := newRogue(t, nil)
	web := httptest.NewTLSServer(s)
	t.Cleanup(web.Close)
	client := s.client(func(o *upstream.Options) { o.URL = web.URL })
	if _, err := client.Discover(t.Context()); !errors.Is(err, upstream.ErrUnreachable) {
		t.Errorf("an unknown authority: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	client.SetTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if _, err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := echo(client, t.Context()); err != nil {
		t.Error(err)
	}
	client.SetTLS(nil)
	if out, err := echo(client, t.Context()); err == nil {
		t.Errorf("after the authority was withdrawn: %s", out.Value)
	}
	for _, wrong := range []string{"", "ftp://a", "https://u:p@a/", "https:///x", "https://a/#f", "://"} {
		if _, err := upstream.New(upstream.Options{URL: wrong}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
