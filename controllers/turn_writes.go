package controllers

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// writes remembers how each running Turn was written last, for as long as the cache may
// not show that yet. It is safe for concurrent use.
type writes struct {
	mu   sync.Mutex
	last map[types.UID]writing
}

type writing struct {
	version string
	// before are versions that are older for certain.
	before []string
	// turn is how it was written; nil once the cache has shown it, or a conflict has
	// shown that somebody else wrote too.
	turn *v1alpha1.Turn
}

// maxBefore is how many older versions are worth knowing: the cache is a few writes
// behind at most.
const maxBefore = 8

// note remembers a Turn as it was written over that version.
func (w *writes) note(over string, turn *v1alpha1.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.UID]writing{}
	}
	old := w.last[turn.UID]
	if over == turn.ResourceVersion { // nothing was written
		if old.version != over {
			w.last[turn.UID] = writing{version: over}
		}
		return
	}
	before := append(slices.Clone(old.before), over)
	if old.version != "" && old.version != over {
		before = append(before, old.version)
	}
	w.last[turn.UID] = writing{
		version: turn.ResourceVersion, before: before[max(0, len(before)-maxBefore):], turn: turn.DeepCopy(),
	}
}

// get returns the Turn as it was written last, if the cache shows that or something
// older. Whatever is written on top of it fails if there is something newer. known
// says that it was written, or found as it had been written, at all.
func (w *writes) get(cached *v1alpha1.Turn) (_ *v1alpha1.Turn, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.last[cached.UID]
	switch {
	case known && last.version == cached.ResourceVersion:
		w.last[cached.UID] = writing{version: last.version}
		return cached, true
	case known && last.turn != nil && slices.Contains(last.before, cached.ResourceVersion):
		return last.turn.DeepCopy(), true
	default:
		return nil, known
	}
}

// doubt says that writing on top of what is remembered may have failed because there is
// something newer.
func (w *writes) doubt(turn types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, known := w.last[turn]; known {
		w.last[turn] = writing{version: last.version}
	}
}

func (w *writes) drop(turn types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, turn)
}
