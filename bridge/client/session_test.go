package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

func line(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text+"\n")
	_ = http.NewResponseController(w).Flush()
}

func follow(ctx context.Context, c *Client) (lines []string, last error) {
	for event, err := range c.Session(ctx) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(event.Type)+string(event.Status))
	}
	return lines, nil
}

func TestSessionIsReopenedUntilTheTurnEnds(t *testing.T) {
	var streams atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(bridge.HeaderExecutionToken) != execToken {
			t.Error("the stream lacks the execution token")
		}
		switch streams.Add(1) {
		case 1:
			line(w, `{"type":"attached"}`)
			line(w, ``)
			line(w, `{"type":"news","more":1}`)
			line(w, `{"type":"heartbeat"}`)
			panic(http.ErrAbortHandler)
		case 2:
			refuse(w, http.StatusServiceUnavailable, bridge.CodeKernelUnavailable, true)
		case 3:
			refuse(w, http.StatusUnauthorized, bridge.CodeUnauthenticated, false)
		case 4:
			line(w, `{"type":"attached"}`) // and a proper end without "ended"
		case 5:
			line(w, `{"type":"attached"}`)
			line(w, `{"type":`) // nonsense
			<-r.Context().Done()
		default:
			line(w, `{"type":"attached"}`)
			line(w, `{"type":"ended","status":"cancelled"}`)
			line(w, `{"type":"heartbeat"}`) // nobody is to see this
		}
	})
	lines, err := follow(t.Context(), attachedTo(t, s))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"attached", "heartbeat", "attached", "attached", "attached", "endedcancelled"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestASilentSessionIsReopenedOnAnotherConnection(t *testing.T) {
	for name, speak := range map[string]bool{"after a line": true, "before the first": false} {
		t.Run(name, func(t *testing.T) {
			var streams atomic.Int32
			clock := newJumpClock()
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if streams.Add(1) == 1 {
					if speak {
						line(w, `{"type":"attached"}`)
					} else {
						clock.expire(silence)
					}
					<-r.Context().Done()
					return
				}
				line(w, `{"type":"ended","status":"succeeded"}`)
			})
			c := attachedTo(t, s, func(o *Options) { o.Clock = clock })
			var lines []string
			for event, err := range c.Session(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, string(event.Type))
				if event.Type == bridge.SessionAttached {
					clock.expire(silence)
				}
			}
			if got := lines[len(lines)-1]; got != "ended" {
				t.Errorf("lines = %v, want ended last", lines)
			}
			if got := s.conns.Load(); got != 2 {
				t.Errorf("%d connections, want 2", got)
			}
		})
	}
}

func TestSessionFollowsTheCallsToAnotherReplica(t *testing.T) {
	var invokes, streams atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == bridge.PathSession {
			if streams.Add(1) == 1 {
				line(w, `{"type":"attached"}`)
				<-r.Context().Done()
				return
			}
			line(w, `{"type":"ended"}`)
			return
		}
		got := readCall(t, r)
		if invokes.Add(1) == 1 {
			refuse(w, http.StatusServiceUnavailable, bridge.CodeKernelUnavailable, true)
			return
		}
		answer(t, w, succeeded(got.CallID))
	})
	c := attachedTo(t, s)
	for event, err := range c.Session(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == bridge.SessionAttached {
			if r, err := c.Invoke(t.Context(), call("c-1"), AtMostOnce); err != nil || r.Status != contract.StatusSucceeded {
				t.Fatalf("invoke: %+v, %v", r, err)
			}
		}
	}
	if got := streams.Load(); got != 2 {
		t.Errorf("%d streams, want 2", got)
	}
}

func TestSessionOfATurnFoundEnded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusGone, bridge.CodeTurnEnded, false)
	})
	lines, err := follow(t.Context(), attachedTo(t, s))
	if diff := cmp.Diff([]string{"ended"}, lines); diff != "" || err != nil {
		t.Errorf("error %v, lines (-want +got):\n%s", err, diff)
	}
}

func TestSessionStopsWhereNoRepeatHelps(t *testing.T) {
	for _, tt := range []struct {
		status  int
		code    string
		streams int32
	}{
		{http.StatusForbidden, bridge.CodePodNotBound, 1},
		{http.StatusUnauthorized, bridge.CodeUnauthenticated, 2},
	} {
		var streams atomic.Int32
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			streams.Add(1)
			refuse(w, tt.status, tt.code, false)
		})
		_, err := follow(t.Context(), attachedTo(t, s))
		if !hasCode(err, tt.code) || streams.Load() != tt.streams {
			t.Errorf("error %v after %d streams, want %s after %d", err, streams.Load(), tt.code, tt.streams)
		}
	}
}

func TestSessionEndsWithItsContextAndItsConsumer(t *testing.T) {
	left := make(chan struct{}, 2)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		line(w, `{"type":"attached"}`)
		<-r.Context().Done()
		left <- struct{}{}
	})
	c := attachedTo(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, err := range c.Session(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		cancel(errors.New("enough"))
	}
	<-left
	for _, err := range c.Session(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-left
}

func FuzzParseEvent(f *testing.F) {
	for _, seed := range []string{``, ` `, `{"type":"attached"}`, `{"type":"ended","status":"failed"}`, `{"Type":"ended"}`,
		`{"type":"ended","type":"attached"}`, `[]`, `null`, `{"type":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		event, ok, err := parseEvent(data)
		if ok && err != nil {
			t.Fatal("both an event and an error")
		}
		switch event.Type {
		case bridge.SessionAttached, bridge.SessionHeartbeat, bridge.SessionEnded:
			if !ok {
				t.Fatal("a known event is not one")
			}
		default:
			if ok || event.Type != "" {
				t.Fatalf("unknown event %q passed", event.Type)
			}
		}
	})
}
