package mcp

import (
	"context"
	"errors"
	"sync"
)

// errClientCancelled is the cause of a call's end when its client cancelled it.
var errClientCancelled = errors.New("cancelled by the client")

// session is what one transport's client shares between its messages: which of its
// calls are running.
type session struct {
	mu      sync.Mutex
	running map[string][]*runningCall
}

type runningCall struct {
	key    string
	cancel context.CancelCauseFunc
}

func newSession() *session { return &session{running: make(map[string][]*runningCall)} }

// begin enters a call under its request's id.
func (s *session) begin(ctx context.Context, key string) (context.Context, *runningCall) {
	ctx, cancel := context.WithCancelCause(ctx)
	call := &runningCall{key: key, cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[key] = append(s.running[key], call)
	return ctx, call
}

func (s *session) end(call *runningCall) {
	call.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.running[call.key]
	for i, other := range calls {
		if other == call {
			calls = append(calls[:i], calls[i+1:]...)
			break
		}
	}
	if len(calls) == 0 {
		delete(s.running, call.key)
	} else {
		s.running[call.key] = calls
	}
}

// cancel ends the call that runs under the id. If two clients use the same id at
// once it is not known whose is meant, and neither is cancelled.
func (s *session) cancel(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if calls := s.running[key]; len(calls) == 1 {
		calls[0].cancel(errClientCancelled)
	}
}
