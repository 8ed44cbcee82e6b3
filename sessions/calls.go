package sessions

import (
	"context"
	"sync"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Limits of what a session remembers of its calls.
const (
	// maxKeptBytes is how much of past answers is kept for repeats.
	maxKeptBytes = 8 << 20
	// maxKeptIDs is how many call ids are remembered.
	maxKeptIDs = 65536
)

// CallsBefore takes a bridge's word on how many calls it sent before the one at
// hand. Only after a failover is it news: calls since the last checkpoint are
// missing then. A count is never lowered, nor raised above the budget: what a bridge
// sent beyond it was refused and spent nothing.
func (s *Session) CallsBefore(n int64) {
	if s.resumed {
		s.uncounted.Store(false)
		s.exec.CountAtLeast(min(n, s.request.MaxCalls))
	}
}

// recount is for a bridge that attaches anew to a turn that another manager had
// started: neither end knows any more what was spent, so nothing is left.
func (s *Session) recount() {
	if s.uncounted.Swap(false) {
		s.exec.CountAtLeast(s.request.MaxCalls)
	}
}

// callLog makes every call id run at most once.
type callLog struct {
	mu    sync.Mutex
	calls map[string]*call
	order []string // ids, oldest first
	kept  []string // ids with an answer kept, oldest first
	bytes int
}

type call struct {
	done   chan struct{}
	result *contract.ToolResult // nil while it runs, and once dropped
	size   int
}

func newCallLog() *callLog { return &callLog{calls: map[string]*call{}} }

// once runs f for an id that was never seen, and otherwise returns the first
// answer, waiting for it if need be. Nil means that there is none to give. The
// answer to a repeatable call that its own cancellation ended is not kept, because
// the repeat exists to get a better one.
func (l *callLog) once(ctx context.Context, id string, repeatable bool, f func() contract.ToolResult) *contract.ToolResult {
	l.mu.Lock()
	if c, seen := l.calls[id]; seen {
		l.mu.Unlock()
		return l.wait(ctx, c)
	}
	c := &call{done: make(chan struct{})}
	l.calls[id] = c
	l.order = append(l.order, id)
	l.mu.Unlock()

	result := f()

	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(c.done)
	if repeatable && ctx.Err() != nil && result.Status == contract.StatusFailed {
		delete(l.calls, id)
		return &result
	}
	c.result, c.size = &result, len(result.Output)+len(result.Metadata)+256
	l.kept = append(l.kept, id)
	l.bytes += c.size
	l.trim()
	return &result
}

func (l *callLog) wait(ctx context.Context, c *call) *contract.ToolResult {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.result
}

// trim drops the oldest answers, then the oldest ids. The caller holds the lock.
func (l *callLog) trim() {
	for l.bytes > maxKeptBytes && len(l.kept) > 1 {
		if c, ok := l.calls[l.kept[0]]; ok {
			l.bytes -= c.size
			c.result, c.size = nil, 0
		}
		l.kept = l.kept[1:]
	}
	for len(l.order) > maxKeptIDs {
		if c, ok := l.calls[l.order[0]]; ok && c.result == nil {
			select {
			case <-c.done:
				delete(l.calls, l.order[0])
			default:
				return // the oldest still runs
			}
		} else if ok {
			l.bytes -= c.size
			delete(l.calls, l.order[0])
		}
		l.order = l.order[1:]
	}
}
