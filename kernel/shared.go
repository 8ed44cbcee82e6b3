package kernel

import (
	"crypto/sha256"
	"runtime"
	"strconv"
	"sync"
	"weak"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// contentKey is the hash of everything that a shared value consists of.
type contentKey [sha256.Size]byte

// shared keeps one copy of values that never change for all who hold the same, as the
// many turns of one agent do. A value goes when the last who holds it goes.
type shared[T any] struct {
	mu    sync.Mutex
	known map[contentKey]weak.Pointer[T]
}

// one returns the value of that key that was there first, or the one that fresh makes.
func (s *shared[T]) one(key contentKey, fresh func() *T) *T {
	if there := s.get(key); there != nil {
		return there
	}
	made := fresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.known[key].Value(); there != nil {
		return there // somebody was faster
	}
	if s.known == nil {
		s.known = map[contentKey]weak.Pointer[T]{}
	}
	s.known[key] = weak.Make(made)
	runtime.AddCleanup(made, s.forget, key)
	return made
}

func (s *shared[T]) get(key contentKey) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key].Value()
}

// forget drops the key of a value that is gone, unless another has taken it.
func (s *shared[T]) forget(key contentKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].Value() == nil {
		delete(s.known, key)
	}
}

// len is how many values are known.
func (s *shared[T]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}

// key relies on the grants being sealed and prepared. The set's hash covers the grants
// to the last member; what the context decides about them is added to it.
func (a *authority) key(ac *contract.AccessContext) contentKey {
	raw := make([]byte, 0, len(a.hash)+len(a.grants)+128)
	raw = append(raw, a.hash...)
	for i := range a.grants {
		raw = append(raw, byte(a.grants[i].standing))
	}
	return sha256.Sum256(ac.Owner.AppendCanonical(raw)) // the index leaves out what is another owner's
}

// reachKey covers a reach to the last string.
func reachKey(r *contract.ReachResult) contentKey {
	sum := sha256.New()
	var raw []byte
	add := func(parts ...string) {
		raw = strconv.AppendInt(raw[:0], int64(len(parts)), 10)
		for _, part := range parts {
			raw = strconv.AppendInt(append(raw, ':'), int64(len(part)), 10)
			raw = append(append(raw, ':'), part...)
		}
		sum.Write(raw)
	}
	add(r.Status, r.ReasonCode, strconv.FormatBool(r.Reach == nil))
	for i := range r.Reach {
		e := &r.Reach[i]
		add(e.Namespace, string(e.Scope))
		add(e.Path...)
		add(e.Actions...)
	}
	return contentKey(sum.Sum(nil))
}
