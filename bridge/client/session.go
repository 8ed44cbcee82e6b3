package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// maxSessionLine is the longest line of the stream, bytes.
const maxSessionLine = 64 << 10

// silence is how long the stream may be silent.
const silence = 3 * bridge.HeartbeatSeconds * time.Second

// Why a stream is left before its end.
var (
	errSilent error = &timeoutError{silence}
	errMoved        = errors.New("the connection was turned to another replica")
)

// Session follows the turn. It yields every line of the stream, opens it again
// when it breaks or falls silent (the next line is then attached, once more),
// and stops after ended, after an error that no repeat can mend, and, without an
// error, when ctx ends. A turn found ended on reconnecting is yielded as ended
// without a status.
func (c *Client) Session(ctx context.Context) iter.Seq2[bridge.SessionEvent, error] {
	return func(yield func(bridge.SessionEvent, error) bool) {
		refused := false
		for n := 0; ctx.Err() == nil; n++ {
			f := &follower{client: c, yield: yield}
			err := f.follow(ctx)
			switch {
			case f.stopped || ctx.Err() != nil:
				return
			case hasCode(err, bridge.CodeTurnEnded):
				yield(bridge.SessionEvent{Type: bridge.SessionEnded}, nil)
				return
			case hasCode(err, bridge.CodeUnauthenticated) && !refused:
				refused = true // the token may just have been rotated
				continue
			case !retryable(err):
				yield(bridge.SessionEvent{}, fmt.Errorf("follow session: %w", err))
				return
			}
			if f.lines > 0 {
				n, refused = 0, false
			}
			c.log.WarnContext(ctx, "Session stream broke, it will be opened again", "error", err)
			if sleep(ctx, c.clock, c.backoff.wait(n)) != nil {
				return
			}
		}
	}
}

// follower reads one stream.
type follower struct {
	client  *Client
	yield   func(bridge.SessionEvent, error) bool
	lines   int
	stopped bool // ended was yielded, or the consumer has had enough
}

// follow opens the stream and reads it to its end. It returns nil only when
// stopped is set.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := newWatchdog(f.client.clock, silence, func() { cancel(errSilent) })
	defer alive.stop()

	resp, err := f.client.send(ctx, request{method: http.MethodGet, path: bridge.PathSession})
	if err != nil {
		return err
	}
	defer f.client.finish(resp)
	go func() {
		select {
		case <-resp.wire.retired: // turned to another replica: the session follows
			cancel(errMoved)
		case <-ctx.Done():
		}
	}()

	lines := bufio.NewScanner(resp.body)
	lines.Buffer(make([]byte, 0, 1024), maxSessionLine)
	for lines.Scan() {
		alive.reset()
		event, ok, err := parseEvent(lines.Bytes())
		if err != nil {
			return &connectionError{sent: true, err: err}
		}
		if !ok {
			continue
		}
		f.lines++
		if !f.yield(event, nil) || event.Type == bridge.SessionEnded {
			f.stopped = true
			return nil
		}
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		f.client.link.drop(resp.wire)
	}
	err = lines.Err()
	if err == nil {
		err = errors.New("the stream was closed")
	}
	return &connectionError{sent: true, err: cause(ctx, err)}
}
