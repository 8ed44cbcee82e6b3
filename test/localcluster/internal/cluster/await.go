package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/proc"
)

const (
	pollEvery = 50 * time.Millisecond
	// daemonLimit is how long one daemon may take to do its work; a machine
	// under load may need many times the usual few seconds.
	daemonLimit = 60 * time.Second
	stopGrace   = 10 * time.Second
)

// await polls check until it succeeds. It gives up at the limit, or as soon as
// the process that should make it succeed has ended.
func (c *Cluster) await(ctx context.Context, what string, limit time.Duration, r proc.Record, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if !c.procs.Alive(r) {
			return fmt.Errorf("wait for %s: %s ended; the end of %s:\n%s", what, r.Name, c.logFile(r.Name), proc.Tail(c.logFile(r.Name), 10))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s, up to %s: %w; last answer: %w (log: %s)", what, limit, ctx.Err(), err, c.logFile(r.Name))
		case <-ticker.C:
		}
	}
}
