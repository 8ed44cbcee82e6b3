package upstream

import (
	"context"
	"errors"
	"net/http"

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
	if !c.same(r) {
		return kernel.Output{}, failure(CodeChanged, false)
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return kernel.Output{}, failure(CodeChanged, false)
	}
	defer end()
	for attempt := 0; ; attempt++ {
		s, err := c.connected(ctx)
		if err != nil {
			return kernel.Output{}, notConnected(ctx, err)
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

// same reports whether the tool is still what the caller was shown, as far as the
// server told.
func (c *Client) same(r Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.found.snapshot == nil {
		return true
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
	case o.malformed || (err == nil && o.result == nil):
		return kernel.Output{}, failure(contract.CodeInvalidToolResult, false)
	case o.status >= 300:
		return kernel.Output{}, refusal(o.status)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return kernel.Output{}, failure(CodeTimeout, again)
	case ctx.Err() != nil:
		return kernel.Output{}, failure(CodeCancelled, again)
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
