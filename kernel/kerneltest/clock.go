package kerneltest

import (
	"slices"
	"sync"
	"time"
)

// Clock moves only when told, and fires the timers that it passes.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
}

type timer struct {
	at      time.Time
	fire    func()
	stopped bool
}

// NewClock returns a clock that stands at now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the instant.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock and runs, in order and in this goroutine, every timer
// whose time has come.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.at.After(c.now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	slices.SortStableFunc(due, func(a, b *timer) int { return a.at.Compare(b.at) })
	for _, t := range due {
		c.mu.Lock()
		stopped := t.stopped
		c.mu.Unlock()
		if !stopped {
			t.fire()
		}
	}
}

// AfterFunc arranges for f to run once the clock has moved by d.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{at: c.now.Add(d), fire: f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := !t.stopped
		t.stopped = true
		return was
	}
}
