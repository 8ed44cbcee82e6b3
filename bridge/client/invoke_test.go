package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// A call whose first answer is lost in some way, and answered well after that.
func TestInvokeAtMostOnce(t *testing.T) {
	lost := map[string]func(w http.ResponseWriter){
		"connection breaks before an answer": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"connection breaks within the answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"callId":`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a proxy answers 502":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"the answer is not JSON":    func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"the answer is for another": func(w http.ResponseWriter) { answer(t, w, succeeded("c-other")) },
	}
	for name, lose := range lost {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				repeat   Repeat
				attempts int32
				status   contract.Status
			}{
				{AtMostOnce, 1, contract.StatusFailed},
				{Repeatable, 2, contract.StatusSucceeded},
			} {
				var attempts atomic.Int32
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					got := readCall(t, r)
					if attempts.Add(1) == 1 {
						lose(w)
						return
					}
					answer(t, w, succeeded(got.CallID))
				})
				result, err := attachedTo(t, s).Invoke(t.Context(), call("c-1"), tt.repeat)
				if err != nil {
					t.Fatal(err)
				}
				if attempts.Load() != tt.attempts || result.Status != tt.status || result.CallID != "c-1" {
					t.Errorf("repeat %d: %d attempts, result %+v; want %d attempts and %s",
						tt.repeat, attempts.Load(), result, tt.attempts, tt.status)
				}
				if tt.status == contract.StatusFailed {
					checkUnavailable(t, result, false)
				}
			}
		})
	}
}

func checkUnavailable(t *testing.T, r *contract.ToolResult, retryable bool) {
	t.Helper()
	if r.Status != contract.StatusFailed || r.Error == nil || r.Error.Code != bridge.CodeKernelUnavailable ||
		r.Error.Retryable == nil || *r.Error.Retryable != retryable {
		t.Errorf("result = %+v, error = %+v; want failed, kernel_unavailable, retryable %t", r, r.Error, retryable)
	}
	if err := r.Validate(); err != nil {
		t.Errorf("the bridge's own answer breaks the contract: %v", err)
	}
}

// A refusal that invites a repeat is given before anything is executed, so even
// a call that must not run twice is sent again, under the same id.
func TestInvokeRepeatsWhatTheKernelDidNotTake(t *testing.T) {
	var ids []string
	var mu sync.Mutex
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got := readCall(t, r)
		mu.Lock()
		ids = append(ids, got.CallID)
		n := len(ids)
		mu.Unlock()
		switch n {
		case 1, 2:
			refuse(w, http.StatusServiceUnavailable, bridge.CodeKernelUnavailable, true)
		case 3:
			refuse(w, http.StatusUnauthorized, bridge.CodeUnauthenticated, false)
		default:
			answer(t, w, succeeded(got.CallID))
		}
	})
	c := attachedTo(t, s)
	result, err := c.Invoke(t.Context(), call("c-1"), AtMostOnce)
	if err != nil || result.Status != contract.StatusSucceeded {
		t.Fatalf("result = %+v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"c-1", "c-1", "c-1", "c-1"}, ids); diff != "" {
		t.Errorf("call ids (-want +got):\n%s", diff)
	}
	if got := s.conns.Load(); got != 3 {
		t.Errorf("%d connections, want 3: a replica that does not lead is left", got)
	}
}

func TestInvokeFindsAKernelThatComesBack(t *testing.T) {
	listener := listen(t, "127.0.0.1:0")
	address := listener.Addr().String()
	_ = listener.Close()

	var attempts atomic.Int32
	handler := func(w http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		answer(t, w, succeeded(readCall(t, r).CallID))
	}
	ca := serve(t, handler).ca() // every test server has the same certificate
	clock := newJumpClock()
	clock.onWait = func(n int) {
		if n != 3 {
			return
		}
		serveOn(t, listen(t, address), handler)
	}
	c, err := New(Options{BaseURL: "https://" + address, RootCAs: ca, TokenFile: tokenFile(t, podToken), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	result, err := c.Invoke(t.Context(), call("c-1"), AtMostOnce)
	if err != nil || result.Status != contract.StatusSucceeded {
		t.Fatalf("result = %+v, %v", result, err)
	}
	if attempts.Load() != 1 || len(clock.waits()) != 3 {
		t.Errorf("%d executions after %d waits, want 1 after 3", attempts.Load(), len(clock.waits()))
	}
}

func TestInvokeGivesUpAfterTheWindow(t *testing.T) {
	listener := listen(t, "127.0.0.1:0")
	address := listener.Addr().String()
	_ = listener.Close()
	for _, repeat := range []Repeat{AtMostOnce, Repeatable} {
		clock := newJumpClock()
		began := clock.Now()
		c, err := New(Options{BaseURL: "https://" + address, RootCAs: selfSigned(t), TokenFile: tokenFile(t, podToken), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Invoke(t.Context(), call("c-1"), repeat)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		checkUnavailable(t, result, repeat == Repeatable)
		if spent := clock.Now().Sub(began); spent > defaultFailoverWindow || spent < defaultFailoverWindow-2*defaultLongest {
			t.Errorf("gave up after %v, want just under %v", spent, defaultFailoverWindow)
		}
	}
}

func TestInvokeRefused(t *testing.T) {
	var attempts atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		refuse(w, http.StatusGone, bridge.CodeTurnEnded, false)
	})
	_, err := attachedTo(t, s).Invoke(t.Context(), call("c-1"), Repeatable)
	var refused *bridge.Error
	if !errors.As(err, &refused) || refused.Code != bridge.CodeTurnEnded || attempts.Load() != 1 {
		t.Errorf("error = %v after %d attempts, want turn_ended after 1", err, attempts.Load())
	}
}

func TestInvokeIsCancelledAtTheKernelToo(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		readCall(t, r)
		close(arrived)
		<-r.Context().Done()
		close(left)
	})
	stop := errors.New("the turn is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(stop)
	}()
	if _, err := attachedTo(t, s).Invoke(ctx, call("c-1"), Repeatable); !errors.Is(err, stop) {
		t.Errorf("error = %v, want %v", err, stop)
	}
	<-left
}

func TestManyCallsShareOneConnection(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(t, w, succeeded(readCall(t, r).CallID)) })
	c := attachedTo(t, s)
	if _, err := c.Invoke(t.Context(), call("warm"), AtMostOnce); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() {
			id := fmt.Sprintf("c-%d", i)
			result, err := c.Invoke(t.Context(), call(id), AtMostOnce)
			if err != nil || result.CallID != id {
				t.Errorf("call %s: %+v, %v", id, result, err)
			}
		})
	}
	calls.Wait()
	if got := s.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

func TestRepeatOf(t *testing.T) {
	yes, no := true, false
	for name, tt := range map[string]struct {
		tool *contract.PublishedTool
		want Repeat
	}{
		"unknown":     {nil, AtMostOnce},
		"no hints":    {&contract.PublishedTool{}, AtMostOnce},
		"write":       {&contract.PublishedTool{Annotations: &contract.PublishedAnnotations{ReadOnlyHint: &no}}, AtMostOnce},
		"destructive": {&contract.PublishedTool{Annotations: &contract.PublishedAnnotations{DestructiveHint: &yes}}, AtMostOnce},
		"read":        {&contract.PublishedTool{Annotations: &contract.PublishedAnnotations{ReadOnlyHint: &yes}}, Repeatable},
		"idempotent":  {&contract.PublishedTool{Annotations: &contract.PublishedAnnotations{ReadOnlyHint: &no, IdempotentHint: &yes}}, Repeatable},
	} {
		if got := RepeatOf(tt.tool); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
