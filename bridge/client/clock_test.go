package client

import (
	"sync"
	"time"
)

// jumpClock lets every wait between attempts pass at once, by moving its time
// forward; a longer wait is a limit and runs out only when expire is called.
type jumpClock struct {
	mu      sync.Mutex
	now     time.Time
	waited  []time.Duration
	limits  map[int]limit
	next    int
	changed chan struct{}
	// onWait, when set, runs before a wait is over.
	onWait func(n int)
}

type limit struct {
	after time.Duration
	run   func()
}

func newJumpClock() *jumpClock {
	return &jumpClock{
		now:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		limits:  map[int]limit{},
		changed: make(chan struct{}),
	}
}

func (c *jumpClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *jumpClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= defaultLongest {
		c.now = c.now.Add(d)
		c.waited = append(c.waited, d)
		n, hook := len(c.waited), c.onWait
		go func() {
			if hook != nil {
				hook(n)
			}
			f()
		}()
		return func() bool { return false }
	}
	id := c.next
	c.next++
	c.limits[id] = limit{d, f}
	close(c.changed)
	c.changed = make(chan struct{})
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, pending := c.limits[id]
		delete(c.limits, id)
		return pending
	}
}

// expire waits until a limit of this length is set and lets it run out.
func (c *jumpClock) expire(after time.Duration) {
	for {
		c.mu.Lock()
		for id, l := range c.limits {
			if l.after == after {
				delete(c.limits, id)
				c.now = c.now.Add(after)
				c.mu.Unlock()
				l.run()
				return
			}
		}
		changed := c.changed
		c.mu.Unlock()
		<-changed
	}
}

func (c *jumpClock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.waited...)
}
