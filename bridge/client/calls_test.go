package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

func TestAttachWaitsForAdmissionAndKeepsTheToken(t *testing.T) {
	var attempts atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+podToken {
			t.Errorf("%s: Authorization = %q", r.URL.Path, got)
		}
		if r.ProtoMajor != 2 {
			t.Errorf("%s came over %s, want HTTP/2", r.URL.Path, r.Proto)
		}
		execution := r.Header.Get(bridge.HeaderExecutionToken)
		switch r.URL.Path {
		case bridge.PathAttach:
			if execution != "" {
				t.Error("attach carries an execution token")
			}
			switch attempts.Add(1) {
			case 1:
				refuse(w, http.StatusConflict, bridge.CodeTurnNotReady, true)
			case 2:
				panic(http.ErrAbortHandler)
			default:
				answer(t, w, attachAnswer())
			}
		case bridge.PathOutcome:
			if execution != execToken {
				t.Errorf("outcome carries execution token %q", execution)
			}
			if calls := r.Header.Get(bridge.HeaderCallsBefore); calls != "0" {
				t.Errorf("outcome after no call says %q", calls)
			}
			w.WriteHeader(http.StatusNoContent)
		}
	})
	c := connect(t, s)
	got, err := c.Attach(t.Context(), "turn-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(attachAnswer(), *got); diff != "" {
		t.Errorf("attach answer (-want +got):\n%s", diff)
	}
	if attempts.Load() != 3 {
		t.Errorf("attempts = %d, want 3", attempts.Load())
	}
	// A second attach must not carry the token of the first either.
	if _, err := c.Attach(t.Context(), "turn-1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Outcome(t.Context(), bridge.Outcome{Started: true}); err != nil {
		t.Error(err)
	}
}

func TestAttachStopsWhereNoRepeatHelps(t *testing.T) {
	tests := map[string]struct {
		status   int
		code     string
		attempts int32
	}{
		"another pod":         {http.StatusForbidden, bridge.CodePodNotBound, 1},
		"no turn":             {http.StatusNotFound, bridge.CodeTurnNotFound, 1},
		"ended":               {http.StatusGone, bridge.CodeTurnEnded, 1},
		"refused credentials": {http.StatusUnauthorized, bridge.CodeUnauthenticated, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int32
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				attempts.Add(1)
				refuse(w, tt.status, tt.code, false)
			})
			_, err := connect(t, s).Attach(t.Context(), "turn-1")
			var refused *bridge.Error
			if !errors.As(err, &refused) || refused.Code != tt.code {
				t.Errorf("error = %v, want code %s", err, tt.code)
			}
			if got := attempts.Load(); got != tt.attempts {
				t.Errorf("attempts = %d, want %d", got, tt.attempts)
			}
		})
	}
}

func TestAttachEndsWithItsContext(t *testing.T) {
	stop := errors.New("pod is going")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusConflict, bridge.CodeTurnNotReady, true)
	})
	clock := newJumpClock()
	clock.onWait = func(n int) {
		if n == 3 {
			cancel(stop)
		}
	}
	_, err := connect(t, s, func(o *Options) { o.Clock = clock }).Attach(ctx, "turn-1")
	var last *bridge.Error
	if !errors.Is(err, stop) || !errors.As(err, &last) {
		t.Errorf("error = %v, want both the cause and the last answer", err)
	}
}

func TestWaitsGrowAndStayBounded(t *testing.T) {
	var attempts atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if attempts.Add(1) <= 20 {
			refuse(w, http.StatusConflict, bridge.CodeTurnNotReady, true)
			return
		}
		answer(t, w, attachAnswer())
	})
	clock := newJumpClock()
	if _, err := connect(t, s, func(o *Options) { o.Clock = clock }).Attach(t.Context(), "turn-1"); err != nil {
		t.Fatal(err)
	}
	waits := clock.waits()
	if len(waits) != 20 {
		t.Fatalf("%d waits, want 20", len(waits))
	}
	for n, got := range waits {
		full := min(defaultFirstWait<<n, defaultLongest)
		if got < full/2 || got > full {
			t.Errorf("wait %d = %v, want %v to %v", n, got, full/2, full)
		}
	}
}

func TestAnAttemptWithoutAnswerIsRepeated(t *testing.T) {
	var attempts atomic.Int32
	clock := newJumpClock()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if attempts.Add(1) == 1 {
			clock.expire(defaultAttemptTimeout)
			<-r.Context().Done() // never answers
			return
		}
		answer(t, w, attachAnswer())
	})
	c := connect(t, s, func(o *Options) { o.Clock = clock })
	if _, err := c.Attach(t.Context(), "turn-1"); err != nil {
		t.Fatal(err)
	}
	if got := attempts.Load(); got != 2 {
		t.Errorf("attempts = %d, want 2", got)
	}
}

func TestAReplacedTokenIsUsed(t *testing.T) {
	var want atomic.Pointer[string]
	path := tokenFile(t, "first\n")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*want.Load() {
			// The kubelet rotates it while the request is on its way.
			writeToken(t, path, *want.Load())
			refuse(w, http.StatusUnauthorized, bridge.CodeUnauthenticated, false)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c := attachedTo(t, s, func(o *Options) { o.TokenFile = path })
	for _, token := range []string{"first", "second", "third"} {
		want.Store(&token)
		if err := c.Outcome(t.Context(), bridge.Outcome{}); err != nil {
			t.Errorf("token %s: %v", token, err)
		}
	}
}

func TestATokenThatIsNotThereYetIsWaitedFor(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, attachAnswer()) })
	path := tokenFile(t, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	clock := newJumpClock()
	clock.onWait = func(n int) {
		if n == 2 {
			writeToken(t, path, podToken)
		}
	}
	c := connect(t, s, func(o *Options) { o.TokenFile, o.Clock = path, clock })
	if _, err := c.Attach(t.Context(), "turn-1"); err != nil {
		t.Fatal(err)
	}
	if got := len(clock.waits()); got < 2 {
		t.Errorf("%d waits, want at least 2", got)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var stolen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		})
		c := attachedTo(t, s)
		if _, err := c.Attach(t.Context(), "turn-1"); err == nil {
			t.Errorf("%d: attach succeeded", status)
		}
		if _, err := c.Invoke(t.Context(), call("c-1"), Repeatable); err == nil {
			t.Errorf("%d: invoke succeeded", status)
		}
		for _, err := range c.Session(t.Context()) {
			if err == nil {
				t.Errorf("%d: session has a line", status)
			}
		}
	}
	if n := stolen.Load(); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
}

func TestCredentialsNeverAppearInErrors(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		body := `{"error":{"code":"invalid_request","message":"` +
			r.Header.Get("Authorization") + " " + r.Header.Get(bridge.HeaderExecutionToken) + `"}}`
		_, _ = w.Write([]byte(body))
	})
	err := attachedTo(t, s).Outcome(t.Context(), bridge.Outcome{})
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), podToken) || strings.Contains(err.Error(), execToken) {
		t.Errorf("error repeats a credential: %v", err)
	}
	if !strings.Contains(err.Error(), "[redacted]") {
		t.Errorf("error = %v, want it to say that something was left out", err)
	}
}

func TestAnotherAuthoritysCertificateIsRefused(t *testing.T) {
	var reached atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	clock := newJumpClock()
	clock.onWait = func(int) { cancel(stop) }
	other := selfSigned(t)
	_, err := connect(t, s, func(o *Options) { o.RootCAs, o.Clock = other, clock }).Attach(ctx, "turn-1")
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("error = %v, want %v", err, ErrUnreachable)
	}
	if reached.Load() != 0 {
		t.Error("the request was sent to a server that could not prove itself")
	}
}

func TestCatalogueMustBeWhole(t *testing.T) {
	good := contract.Catalogue{Version: contract.Version, ExecutionID: "e-1", Tools: []contract.PublishedTool{
		{Name: "files.read", Description: "Reads.", InputSchema: contract.Object(`{"type":"object"}`)}}}
	hash, err := contract.CatalogHash(good.Tools)
	if err != nil {
		t.Fatal(err)
	}
	good.CatalogHash = hash
	forged := good
	forged.CatalogHash = strings.Repeat("0", 64)
	for name, tt := range map[string]struct {
		catalogue contract.Catalogue
		ok        bool
	}{"good": {good, true}, "forged hash": {forged, false}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, tt.catalogue) })
			got, err := attachedTo(t, s).Catalog(t.Context())
			if (err == nil) != tt.ok {
				t.Fatalf("error = %v", err)
			}
			if tt.ok && got.CatalogHash != hash {
				t.Errorf("hash = %s, want %s", got.CatalogHash, hash)
			}
		})
	}
}

func TestAttachAnswerIsReadStrictly(t *testing.T) {
	for name, body := range map[string]string{
		"duplicate token": `{"executionId":"e","namespaceId":"n","actor":"a","traceId":"t","executionToken":"x","executionToken":"y"}`,
		"other case":      `{"executionid":"e"}`,
		"not JSON":        `hello`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
			c := connect(t, s)
			if _, err := c.Attach(t.Context(), "turn-1"); err == nil {
				t.Error("accepted")
			}
			if got := c.executionToken(); got != "" {
				t.Errorf("kept execution token %q", got)
			}
		})
	}
}
