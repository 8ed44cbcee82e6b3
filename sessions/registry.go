package sessions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// Key names one Turn.
type Key struct {
	Namespace string
	Turn      string
}

// Standing is what is known of a turn that has no session here.
type Standing int

// The standings. The zero value claims nothing.
const (
	// StandingUnknown means that the turn may get a session yet.
	StandingUnknown Standing = iota
	// StandingMissing means that there is no such Turn.
	StandingMissing
	// StandingEnded means that the turn has ended.
	StandingEnded
)

// Options configure a [Registry].
type Options struct {
	// Kernel decides for every turn.
	Kernel *kernel.Kernel
	// DrainGrace is the envelope's.
	DrainGrace time.Duration
	// OnChange is told that a session has something to store. It must not block.
	OnChange func(Key)
	// OnProgress is told of the first call since the state was last read, so that
	// counters are stored in a while. It must not block and may be nil.
	OnProgress func(Key)
	// OnCall is told how each call ended, for the Turn's events. It must not block
	// and may be nil.
	OnCall func(key Key, tool string, status contract.Status, code string)
	// Context prepares the context that a turn's work runs under, so that traces
	// know their turn. It may be nil.
	Context func(ctx context.Context, key Key, executionID, traceID string) context.Context
	// Lookup says how a turn stands that has no session; by name, or by execution
	// id when the name is empty. Nil knows nothing.
	Lookup func(ctx context.Context, key Key, executionID string) Standing
}

// Registry is the live sessions of this manager. It is safe for concurrent use.
type Registry struct {
	opts Options

	mu          sync.RWMutex
	byKey       map[Key]*Session
	byExecution map[executionKey]*Session
	// owners are the Turns that have an execution id, opened yet or not.
	owners map[executionKey]Key
}

type executionKey struct{ namespace, executionID string }

// New returns an empty registry.
func New(opts Options) *Registry {
	return &Registry{opts: opts, byKey: map[Key]*Session{}, byExecution: map[executionKey]*Session{}, owners: map[executionKey]Key{}}
}

// Subject is the Turn that a session is for.
type Subject struct {
	Key Key
	// UID of the Turn: a recreated Turn is another one.
	UID string
	// Harness is the harness type, which decides the connection file.
	Harness string
	// JSONOutput says that the harness prints JSON.
	JSONOutput bool
	// CallTimeout goes into the connection file.
	CallTimeout time.Duration
	// StartTimeout is how long the pod may take until the bridge is ready.
	StartTimeout time.Duration
}

// ErrExecutionTaken means that another Turn of the world has the execution id.
var ErrExecutionTaken = errors.New("execution id is another turn's")

// Open admits a turn. A turn that was refused comes back as an ended session. An
// execution id that another Turn has is [ErrExecutionTaken]: a bridge is known by
// it, so that sharing one would hand a turn's calls to another.
func (r *Registry) Open(ctx context.Context, subject Subject, req contract.ExecutionRequest) (*Session, error) {
	s := r.newSession(subject)
	if err := r.reserve(s, req.ExecutionID); err != nil {
		return nil, err
	}
	ctx = s.within(ctx, req.ExecutionID, req.Message.TraceID)
	s.exec = s.envelope(r.opts).Open(ctx, req)
	return r.publish(s), nil
}

// Resume continues a turn that another manager admitted. It fails as [Registry.Open].
func (r *Registry) Resume(ctx context.Context, subject Subject, req contract.ExecutionRequest, from envelope.Checkpoint) (*Session, error) {
	s := r.newSession(subject)
	if err := r.reserve(s, req.ExecutionID); err != nil {
		return nil, err
	}
	ctx = s.within(ctx, req.ExecutionID, req.Message.TraceID)
	s.exec = s.envelope(r.opts).Resume(ctx, req, from)
	s.resumed = true
	s.uncounted.Store(from.StartedAt != nil)
	return r.publish(s), nil
}

func (r *Registry) newSession(subject Subject) *Session {
	var later func()
	if r.opts.OnProgress != nil {
		later = func() { r.opts.OnProgress(subject.Key) }
	}
	return &Session{
		later: later, subject: subject, now: r.opts.Kernel.Now, notify: func() { r.opts.OnChange(subject.Key) },
		onCall: r.opts.OnCall, prepare: r.opts.Context, stored: make(chan struct{}), calls: newCallLog(),
	}
}

// reserve takes the execution id for the Turn, before anything is opened.
func (r *Registry) reserve(s *Session, executionID string) error {
	s.execution = executionKey{s.subject.Key.Namespace, executionID}
	r.mu.Lock()
	defer r.mu.Unlock()
	if owner, taken := r.owners[s.execution]; taken && owner != s.subject.Key {
		return ErrExecutionTaken
	}
	r.owners[s.execution] = s.subject.Key
	return nil
}

// publish makes an opened session findable.
func (r *Registry) publish(s *Session) *Session {
	s.request = s.exec.Request()
	s.request.Catalogue.Tools, s.request.Reach = nil, contract.ReachResult{} // the execution has them
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.byKey[s.subject.Key]; ok && old.execution != s.execution {
		r.drop(old)
	}
	r.byKey[s.subject.Key] = s
	r.byExecution[s.execution] = s
	return s
}

// drop forgets a session and its execution id. The caller holds the lock.
func (r *Registry) drop(s *Session) {
	delete(r.byKey, s.subject.Key)
	delete(r.byExecution, s.execution)
	delete(r.owners, s.execution)
}

// Get returns the session of the Turn with that UID.
func (r *Registry) Get(key Key, uid string) (*Session, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s, ok := r.byKey[key]
	if !ok || s.subject.UID != uid {
		return nil, false
	}
	return s, true
}

// Forget drops the Turn's session. A session that has not ended is cancelled, so
// that nobody is left with a door to a turn that no longer exists.
func (r *Registry) Forget(ctx context.Context, key Key) {
	r.mu.Lock()
	s, ok := r.byKey[key]
	if ok {
		r.drop(s)
	}
	r.mu.Unlock()
	if ok {
		s.exec.Cancel(ctx, "the Turn is gone")
		s.abandon()
	}
}

// Len is how many sessions there are.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byKey)
}

// ByTurn finds a session by its Turn's name.
func (r *Registry) ByTurn(ctx context.Context, key Key) (*Session, Standing) {
	r.mu.RLock()
	s, ok := r.byKey[key]
	r.mu.RUnlock()
	if ok {
		return s, StandingUnknown
	}
	return nil, r.lookup(ctx, key, "")
}

// ByExecution finds a session by its execution id.
func (r *Registry) ByExecution(ctx context.Context, namespace, executionID string) (*Session, Standing) {
	r.mu.RLock()
	s, ok := r.byExecution[executionKey{namespace, executionID}]
	r.mu.RUnlock()
	if ok {
		return s, StandingUnknown
	}
	return nil, r.lookup(ctx, Key{Namespace: namespace}, executionID)
}

func (r *Registry) lookup(ctx context.Context, key Key, executionID string) Standing {
	if r.opts.Lookup == nil {
		return StandingUnknown
	}
	return r.opts.Lookup(ctx, key, executionID)
}
