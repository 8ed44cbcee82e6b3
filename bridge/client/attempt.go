package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// Limits of answers, bytes.
const (
	maxErrorBody = 64 << 10
	maxAnswer    = 16 << 20
)

// request is what one attempt sends.
type request struct {
	method, path string
	body         []byte
	timeout      time.Duration // of one attempt; none when zero
	before       *int64        // how many calls went before; nil where that does not matter
}

// response is an answer with a 2xx status whose body has not been read.
type response struct {
	body io.ReadCloser
	wire *wire
}

// send makes one attempt and returns once the headers of a 2xx answer are
// there. Every other answer, and none, is an error.
func (c *Client) send(ctx context.Context, r request) (*response, error) {
	token, err := c.token.read()
	if err != nil {
		return nil, &connectionError{err: err}
	}
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{
		// Called while the headers are encoded, before their first byte is
		// written; also on the transport's own repeats, so it never turns back.
		WroteHeaderField: func(string, []string) { sent.Store(true) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace),
		r.method, c.baseURL+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request to %s: %w", r.path, err)
	}
	execution := c.executionToken()
	setHeaders(req, token, execution, len(r.body) > 0)
	if r.before != nil {
		req.Header.Set(bridge.HeaderCallsBefore, strconv.FormatInt(*r.before, 10))
	}

	w := c.link.get()
	resp, err := w.RoundTrip(req) //nolint:bodyclose // finish does, or the caller of send
	if err != nil {
		if ctx.Err() == nil || isTimeout(ctx) {
			c.link.drop(w)
		}
		return nil, &connectionError{sent: sent.Load(), err: cause(ctx, err)}
	}
	if resp.StatusCode/100 == 2 {
		return &response{resp.Body, w}, nil
	}
	defer c.finish(&response{resp.Body, w})
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		c.link.drop(w)
		return nil, &connectionError{sent: true, err: cause(ctx, err)}
	}
	err = answerError(resp.StatusCode, body, token, execution)
	switch {
	case hasCode(err, bridge.CodeKernelUnavailable):
		c.link.drop(w) // the next attempt may find the replica that leads
	case hasCode(err, bridge.CodeUnauthenticated):
		c.token.forget()
	}
	return nil, err
}

// attempt is send with the whole body.
func (c *Client) attempt(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := withTimeout(ctx, c.clock, r.timeout)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer c.finish(resp)
	body, err := io.ReadAll(io.LimitReader(resp.body, maxAnswer+1))
	if err != nil {
		if ctx.Err() == nil || isTimeout(ctx) {
			c.link.drop(resp.wire)
		}
		return nil, &connectionError{sent: true, err: cause(ctx, err)}
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("answer to %s is over %d bytes", r.path, maxAnswer)
	}
	return body, nil
}

// authorized is attempt, once more if the kernel does not accept the
// credentials: the token may have been rotated between reading and arriving.
func (c *Client) authorized(ctx context.Context, r request) ([]byte, error) {
	body, err := c.attempt(ctx, r)
	if hasCode(err, bridge.CodeUnauthenticated) {
		return c.attempt(ctx, r)
	}
	return body, err
}

func (c *Client) finish(r *response) {
	_ = r.body.Close()
	c.link.release(r.wire)
}

func setHeaders(req *http.Request, token, execution string, hasBody bool) {
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "sharedos-bridge")
	if execution != "" && req.URL.Path != bridge.PathAttach {
		req.Header.Set(bridge.HeaderExecutionToken, execution)
	}
	if hasBody {
		req.Header.Set("Content-Type", "application/json")
	}
}

// cause prefers the reason a context ended over net/http's echo of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func isTimeout(ctx context.Context) bool {
	var timeout *timeoutError
	return errors.As(context.Cause(ctx), &timeout)
}
