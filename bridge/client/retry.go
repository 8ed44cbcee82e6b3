package client

import (
	"context"
	"errors"
	"fmt"
)

// untilDone repeats r until it is answered, refused for good, or ctx ends.
func (c *Client) untilDone(ctx context.Context, r request) ([]byte, error) {
	for n := 0; ; n++ {
		body, err := c.authorized(ctx, r)
		if err == nil {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, r, err)
		}
		if !retryable(err) {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		c.log.DebugContext(ctx, "Request to the kernel will be repeated",
			"path", r.path, "attempt", n+1, "error", err)
		if sleep(ctx, c.clock, c.backoff.wait(n)) != nil {
			return nil, ended(ctx, r, err)
		}
	}
}

// ended reports both why waiting stopped and what was being waited out.
func ended(ctx context.Context, r request, last error) error {
	stopped := context.Cause(ctx)
	if errors.Is(last, stopped) {
		return fmt.Errorf("%s %s: %w", r.method, r.path, last)
	}
	return fmt.Errorf("%s %s: %w, last: %w", r.method, r.path, stopped, last)
}
