package client

import (
	"context"
	"fmt"
	"time"
)

// Clock is the only source of time of a [Client].
type Clock interface {
	// Now is the current instant, with a monotonic reading where there is one.
	Now() time.Time
	// AfterFunc runs f in its own goroutine once d has passed. The returned
	// function prevents that and reports whether it was still possible.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements [Clock].
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc implements [Clock].
func (SystemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// sleep waits for d or for the end of ctx, whichever comes first.
func sleep(ctx context.Context, clock Clock, d time.Duration) error {
	woken := make(chan struct{})
	stop := clock.AfterFunc(d, func() { close(woken) })
	defer stop()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timeoutError is the cause of a context that the clock ended.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// withTimeout is context.WithTimeout on a [Clock]; d <= 0 sets no limit.
func withTimeout(ctx context.Context, clock Clock, d time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		return limited, func() { cancel(context.Canceled) }
	}
	stop := clock.AfterFunc(d, func() { cancel(&timeoutError{d}) })
	return limited, func() {
		stop()
		cancel(context.Canceled)
	}
}
