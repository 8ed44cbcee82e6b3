package client

import (
	"math/rand/v2"
	"time"
)

// The wait before the first repeat, and the longest one. Attaching is on the
// path of every pod's start, so the first waits are short.
const (
	defaultFirstWait = 100 * time.Millisecond
	defaultLongest   = 2 * time.Second
)

// backoff doubles the wait with every attempt and takes a random part between
// half and all of it, so that the sidecars of a restarted manager do not come
// back in one wave.
type backoff struct {
	first, longest time.Duration
}

// wait is the pause before repeat n, counted from 0.
func (b backoff) wait(n int) time.Duration {
	d := b.longest
	if n < 16 { // beyond that the shift alone exceeds every longest wait
		d = min(b.first<<n, b.longest)
	}
	half := d / 2
	return half + rand.N(d-half+1) //nolint:gosec // jitter, not a secret
}
