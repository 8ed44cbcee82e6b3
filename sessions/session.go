package sessions

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// ErrAbandoned means that the session was dropped before its state was stored.
var ErrAbandoned = errors.New("session was dropped before its state was stored")

// Session is one live turn. It is safe for concurrent use.
type Session struct {
	subject   Subject
	execution executionKey
	exec      *envelope.Execution
	// request is the execution's, which never changes, without its tools and its reach;
	// asking for it copies both.
	request envelope.Request
	resumed bool
	// uncounted says that calls of the manager before may be missing in the count.
	uncounted atomic.Bool
	// progress says that the controller was told of calls it has not stored yet.
	progress atomic.Bool
	later    func()
	now      func() time.Time
	notify   func()
	onCall   func(Key, string, contract.Status, string)
	prepare  func(ctx context.Context, key Key, executionID, traceID string) context.Context
	calls    *callLog

	mu        sync.Mutex
	pod       Pod
	candidate *Pod
	readyAt   time.Time
	outcome   *bridge.Outcome
	// revision counts the changes that somebody waits for; persisted is the last
	// one that is stored. stored is closed and replaced whenever it advances.
	revision  uint64
	persisted uint64
	stored    chan struct{}
	abandoned bool
}

// Pod is the one pod that a turn runs in.
type Pod struct {
	Name string
	UID  string
}

// envelope makes the session's own envelope, whose hooks lead back to it.
func (s *Session) envelope(opts Options) *envelope.Envelope {
	return envelope.New(opts.Kernel, envelope.Options{
		DrainGrace:   opts.DrainGrace,
		OnEscalation: func(ctx context.Context, _ string, _ contract.Escalation) error { return s.store(ctx) },
		OnEvent:      s.onEvent,
	})
}

// onEvent runs inside the execution and must not call back into it.
func (s *Session) onEvent(e contract.ExecutionEvent) {
	switch e.Type {
	case contract.EventTurnCompleted, contract.EventTurnEscalated, contract.EventTurnFailed,
		contract.EventTurnDenied, contract.EventTurnCancelled, contract.EventTurnStarted:
		s.notify()
	case contract.EventToolRequested, contract.EventToolCompleted, contract.EventRuntime:
		if s.later != nil && !s.progress.Swap(true) {
			s.later()
		}
	}
}

// within is ctx as the turn's work runs under it.
func (s *Session) within(ctx context.Context, executionID, traceID string) context.Context {
	if s.prepare == nil {
		return ctx
	}
	return s.prepare(ctx, s.subject.Key, executionID, traceID)
}

// Execution is the turn itself.
func (s *Session) Execution() *envelope.Execution { return s.exec }

// Timeout is how long the turn may take once its bridge is ready.
func (s *Session) Timeout() time.Duration { return s.request.Timeout }

// Subject is the Turn that the session is for.
func (s *Session) Subject() Subject { return s.subject }

// Resumed says that another manager admitted the turn.
func (s *Session) Resumed() bool { return s.resumed }

// State is what the Turn controller stores.
type State struct {
	// Revision is passed to [Session.Persisted] once the rest is stored. That of an
	// ending is beyond all others: nothing that comes later is stored.
	Revision uint64
	// ReadyAt is when the bridge was ready; zero if it was not.
	ReadyAt time.Time
	// Candidate is a pod that asks to be bound.
	Candidate *Pod
	// Outcome is what the harness reported, if it did.
	Outcome *bridge.Outcome
	// Result is the ending, if the turn has ended.
	Result *contract.ExecutionResult
}

// State returns the session's present state.
func (s *Session) State() State {
	s.progress.Store(false)
	s.mu.Lock()
	out := State{Revision: s.revision, ReadyAt: s.readyAt, Candidate: s.candidate, Outcome: s.outcome}
	s.mu.Unlock()
	if result, ended := s.exec.Ended(); ended {
		out.Result, out.Revision = &result, math.MaxUint64
	}
	return out
}

// Persisted says that the state of that revision is stored.
func (s *Session) Persisted(revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.persisted {
		s.persisted = revision
		close(s.stored)
		s.stored = make(chan struct{})
	}
}

// abandon releases everybody who waits for a state to be stored.
func (s *Session) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.abandoned {
		s.abandoned = true
		close(s.stored)
		s.stored = make(chan struct{})
	}
}

// store asks the controller to store the present state and waits until it has.
func (s *Session) store(ctx context.Context) error {
	s.mu.Lock()
	s.revision++
	want := s.revision
	s.mu.Unlock()
	s.notify()
	for {
		s.mu.Lock()
		done, gone, stored := s.persisted >= want, s.abandoned, s.stored
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case gone:
			return ErrAbandoned
		}
		select {
		case <-stored:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
