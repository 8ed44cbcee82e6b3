package sidecar

import (
	"context"
	"sync"

	"github.com/sharedos-dev/operator/sidecar/control"
)

// state is where the sidecar stands, for many to wait on.
type state struct {
	mu      sync.Mutex
	now     control.State
	message string
	moved   chan struct{} // closed and replaced at every change
}

func newState() *state {
	return &state{now: control.StateStarting, moved: make(chan struct{})}
}

// set moves on. The end of a turn is final: what fails afterwards changes nothing.
func (s *state) set(to control.State, message string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == to || s.now == control.StateEnded {
		return false
	}
	s.now, s.message = to, message
	close(s.moved)
	s.moved = make(chan struct{})
	return true
}

func (s *state) get() (control.State, string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.message, s.moved
}

// wait returns once the state is not starting, or when ctx ends.
func (s *state) wait(ctx context.Context) control.State {
	for {
		now, _, moved := s.get()
		if now != control.StateStarting {
			return now
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return now
		}
	}
}
