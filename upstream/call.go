package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Request is one call of a tool.
type Request struct {
	// Tool is its name at the server.
	Tool string
	// Digest is that of the input schema which the caller was shown.
	Digest string
	// Arguments go out as they are.
	Arguments contract.Object
	// Structured says that the caller was shown an output schema.
	Structured bool
	// Repeatable says that the call may be made twice: it reads, or is idempotent.
	Repeatable bool
}

// Call calls a tool. Its error is a [*kernel.Failure] whose message is the server's
// only where the code says so. A call is never made twice, unless the server surely
// did not execute it. An answer that comes after the deadline is dropped.
func (c *Client) Call(ctx context.Context, r Request) (kernel.Output, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return kernel.Output{}, failure(CodeChanged, false)
	}
	defer end()
	for attempt := 0; ; attempt++ {
		s, err := c.ready(ctx)
		if err != nil {
			return kernel.Output{}, notConnected(ctx, err)
		}
		if !c.same(r) {
			return kernel.Output{}, failure(CodeChanged, false)
		}
		x := &exchange{}
		_, err = s.CallTool(withExchange(ctx, x), &mcp.CallToolParams{Name: r.Tool, Arguments: r.Arguments})
		o := x.get()
		if err != nil && ctx.Err() == nil && forgotten(o, err) {
			c.drop(s)
			if attempt == 0 {
				continue
			}
		}
		if errors.Is(err, mcp.ErrConnectionClosed) {
			c.drop(s)
		}
		return c.conclude(ctx, r, o, err)
	}
}

// ready returns a session in which the tools were listed, and lists them if they may
// have changed since. Behind a session that is made anew may be another server.
func (c *Client) ready(ctx context.Context) (*session, error) {
	s, err := c.connected(ctx)
	if err != nil || c.listed(s) {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(connectTimeout, c.opts.Timeout))
	defer cancel()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	if s, err = c.current(); err != nil || (s != nil && c.listed(s)) {
		return s, err
	}
	return c.listAgain(ctx)
}

// listAgain is for who holds the gate. A fault is the call's alone: it does not keep
// others from discovering.
func (c *Client) listAgain(ctx context.Context) (*session, error) {
	before := c.notStale()
	tools, s, err := c.list(ctx)
	if err != nil {
		c.mu.Lock()
		c.found.stale = true
		c.mu.Unlock()
		return nil, err
	}
	if _, err = c.record(tools, s, nil); err != nil {
		return nil, err
	}
	if before != nil && !slices.EqualFunc(before.Tools, tools, func(a, b Tool) bool { return a.Name == b.Name && a.Digest == b.Digest }) {
		c.opts.Changed()
	}
	return s, nil
}

// listed reports whether the tools that are known were listed in the session, and
// nothing was heard of a change.
func (c *Client) listed(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found.in == s && c.found.snapshot != nil && !c.found.stale
}

// same reports whether the tool is still what the caller was shown.
func (c *Client) same(r Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.found.snapshot == nil {
		return false
	}
	tool, ok := c.found.snapshot.Find(r.Tool)
	return ok && tool.Digest == r.Digest
}

func notConnected(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrClosed):
		return failure(CodeChanged, false)
	case errors.Is(err, ErrCredentials):
		return failure(CodeCredentials, false)
	case errors.Is(ctx.Err(), context.Canceled):
		return failure(CodeCancelled, true)
	default:
		return failure(CodeUnavailable, true) // nothing was sent
	}
}

// conclude says what a call came to.
func (c *Client) conclude(ctx context.Context, r Request, o outcome, err error) (kernel.Output, error) {
	again := !o.sent || r.Repeatable
	switch {
	case err == nil && o.result != nil:
		return output(o.result, r.Structured)
	case o.tooLarge:
		return kernel.Output{}, failure(CodeTooLarge, false)
	case o.refused:
		return kernel.Output{}, failureSaying(CodeProtocol, o.message)
	case o.status >= 300:
		return kernel.Output{}, refusal(o.status)
	// What came until then is no answer, whatever it is: more might have followed, and
	// one that comes too late answers nothing any more.
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return kernel.Output{}, failure(CodeTimeout, again)
	case ctx.Err() != nil:
		return kernel.Output{}, failure(CodeCancelled, again)
	case o.malformed || (err == nil && o.result == nil):
		return kernel.Output{}, failure(contract.CodeInvalidToolResult, false)
	case errors.Is(err, errHeaders):
		return kernel.Output{}, failure(CodeCredentials, true)
	case errors.Is(err, errOrigin) || errors.Is(err, errRedirection):
		return kernel.Output{}, failure(CodeRefused, false)
	default:
		return kernel.Output{}, failure(CodeUnavailable, again)
	}
}

// refusal names an HTTP status.
func refusal(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return failure(CodeCredentials, false)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return failure(CodeUnavailable, true)
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return failure(CodeUnavailable, false)
	default:
		return failure(CodeRefused, false)
	}
}
