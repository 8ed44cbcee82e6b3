package authority

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// lines let those who want the same Grant through one after the other, in the order
// in which they came.
type lines struct {
	mu     sync.Mutex
	grants map[types.NamespacedName]*line
}

// line is one Grant's. It exists while somebody is in it.
type line struct {
	front chan struct{} // holds a token while somebody is at the front
	in    int
}

// join waits for the front of the Grant's line. Whoever got there must leave.
func (l *lines) join(ctx context.Context, grant types.NamespacedName) (leave func(), err error) {
	l.mu.Lock()
	if l.grants == nil {
		l.grants = map[types.NamespacedName]*line{}
	}
	of, there := l.grants[grant]
	if !there {
		of = &line{front: make(chan struct{}, 1)}
		l.grants[grant] = of
	}
	of.in++
	l.mu.Unlock()
	select {
	case of.front <- struct{}{}:
		return func() {
			<-of.front
			l.drop(grant, of)
		}, nil
	case <-ctx.Done():
		l.drop(grant, of)
		return nil, context.Cause(ctx)
	}
}

func (l *lines) drop(grant types.NamespacedName, of *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.in--; of.in == 0 {
		delete(l.grants, grant)
	}
}
