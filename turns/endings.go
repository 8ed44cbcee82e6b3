package turns

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Endings tells who waits for a Turn that it has ended. It handles the events of an
// informer of Turns. It is safe for concurrent use.
type Endings struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName]map[*watch]struct{}
}

// maxEnded is more Turns of one name than can end while one of them is waited for.
const maxEnded = 8

// watch is one who waits.
type watch struct {
	ended chan *v1alpha1.Turn
	told  map[types.UID]bool
}

var _ toolscache.ResourceEventHandler = (*Endings)(nil)

// Watch waits for the Turn of that name, which may not exist yet. The channel
// receives each Turn of the name once, when it has ended or was deleted before. Stop
// must be called.
func (e *Endings) Watch(turn types.NamespacedName) (ended <-chan *v1alpha1.Turn, stop func()) {
	w := &watch{ended: make(chan *v1alpha1.Turn, maxEnded), told: map[types.UID]bool{}}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[types.NamespacedName]map[*watch]struct{}{}
	}
	if e.waiting[turn] == nil {
		e.waiting[turn] = map[*watch]struct{}{}
	}
	e.waiting[turn][w] = struct{}{}
	return w.ended, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting[turn], w)
		if len(e.waiting[turn]) == 0 {
			delete(e.waiting, turn)
		}
	}
}

// OnAdd implements [toolscache.ResourceEventHandler].
func (e *Endings) OnAdd(object any, _ bool) { e.look(object) }

// OnUpdate implements [toolscache.ResourceEventHandler].
func (e *Endings) OnUpdate(_, object any) { e.look(object) }

// OnDelete implements [toolscache.ResourceEventHandler].
func (e *Endings) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if turn, ok := object.(*v1alpha1.Turn); ok {
		e.tell(turn)
	}
}

func (e *Endings) look(object any) {
	if turn, ok := object.(*v1alpha1.Turn); ok && turn.IsFinished() {
		e.tell(turn)
	}
}

func (e *Endings) tell(turn *v1alpha1.Turn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.waiting[types.NamespacedName{Namespace: turn.Namespace, Name: turn.Name}] {
		if w.told[turn.UID] || len(w.told) == maxEnded {
			continue
		}
		w.told[turn.UID] = true
		w.ended <- turn.DeepCopy() // there is room for all that are told
	}
}
