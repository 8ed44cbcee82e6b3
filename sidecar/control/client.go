package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// Client speaks to the sidecar of its pod. The zero value with a Path works.
type Client struct {
	// Path of the socket.
	Path string
	// Pause is waited between two attempts to connect; 100 ms when nil.
	Pause func(ctx context.Context) error
}

// NotReadyError says in which state the bridge is instead of ready.
type NotReadyError struct{ Status Status }

// Error implements error.
func (e *NotReadyError) Error() string {
	if e.Status.Message != "" {
		return fmt.Sprintf("the bridge is %s: %s", e.Status.State, e.Status.Message)
	}
	return fmt.Sprintf("the bridge is %s", e.Status.State)
}

// RefusedError is the sidecar's answer to a request that was not done.
type RefusedError struct{ Message string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

// Status asks once where the sidecar stands.
func (c *Client) Status(ctx context.Context) (Status, error) {
	out, err := c.ask(ctx, request{Op: OpStatus})
	return out.Status, err
}

// WaitReady returns once the bridge is ready, waiting for a sidecar that is not
// there yet, or is there again. Its error is a [*NotReadyError] when the turn has
// ended, and wraps the cause when ctx ended.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		out, err := c.ask(ctx, request{Op: OpWait})
		switch {
		case err == nil && out.Status.State == StateReady:
			return nil
		case err == nil && out.Status.State == StateEnded:
			return &NotReadyError{out.Status}
		case err == nil:
			// A sidecar that failed exits, and is started again.
			err = &NotReadyError{out.Status}
		}
		if pauseErr := c.pause(ctx); pauseErr != nil {
			return fmt.Errorf("wait for the bridge: %w, last: %w", pauseErr, err)
		}
	}
}

// Report hands over the outcome and returns once the kernel has it, trying again
// while the sidecar cannot be reached. Its error is a [*RefusedError] when the
// sidecar would not take it.
func (c *Client) Report(ctx context.Context, outcome bridge.Outcome) error {
	for {
		_, err := c.ask(ctx, request{Op: OpOutcome, Outcome: &outcome})
		var refused *RefusedError
		if err == nil || errors.As(err, &refused) {
			return err
		}
		if pauseErr := c.pause(ctx); pauseErr != nil {
			return fmt.Errorf("report outcome: %w, last: %w", pauseErr, err)
		}
	}
}

func (c *Client) pause(ctx context.Context) error {
	if c.Pause != nil {
		return c.Pause(ctx)
	}
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask makes one request on a connection of its own.
func (c *Client) ask(ctx context.Context, r request) (response, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.Path)
	if err != nil {
		return response{}, fmt.Errorf("connect to the sidecar: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the answer was read
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := writeLine(conn, r); err != nil {
		return response{}, fmt.Errorf("ask the sidecar: %w", err)
	}
	line, err := readLine(conn, maxResponse)
	if err != nil {
		return response{}, fmt.Errorf("read the sidecar's answer: %w", err)
	}
	out, err := parseResponse(line)
	if err != nil {
		return response{}, err
	}
	if out.Error != "" {
		return out, &RefusedError{out.Error}
	}
	return out, nil
}
