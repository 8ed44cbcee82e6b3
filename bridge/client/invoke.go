package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Repeat says whether a call that may have reached the kernel may be sent again.
type Repeat int

const (
	// AtMostOnce never sends a call again unless it provably was not sent, or
	// the kernel answered that it did not take it.
	AtMostOnce Repeat = iota
	// Repeatable is for tools whose second execution changes nothing: those the
	// catalogue calls read-only or idempotent.
	Repeatable
)

// RepeatOf reads a published tool's hints. A tool that states neither, and one
// that is not published, is [AtMostOnce].
func RepeatOf(tool *contract.PublishedTool) Repeat {
	if tool == nil || tool.Annotations == nil {
		return AtMostOnce
	}
	if isTrue(tool.Annotations.ReadOnlyHint) || isTrue(tool.Annotations.IdempotentHint) {
		return Repeatable
	}
	return AtMostOnce
}

func isTrue(b *bool) bool { return b != nil && *b }

// Invoke makes one call. Where the kernel cannot be reached it keeps trying
// within the fail-over window, with the same call id, as far as repeat allows;
// after that the answer is failed with code kernel_unavailable, retryable only
// when repeat is [Repeatable].
//
// An error means that there is no answer at all: ctx ended (the cause is
// wrapped), or the kernel refused the request itself (a [*bridge.Error]).
func (c *Client) Invoke(ctx context.Context, call bridge.InvokeRequest, repeat Repeat) (*contract.ToolResult, error) {
	if len(call.Arguments) == 0 {
		call.Arguments = contract.Object("{}")
	}
	body, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode call: %w", err)
	}
	before := c.calls.Add(1) - 1
	r := request{method: http.MethodPost, path: bridge.PathInvoke, body: body, before: &before}
	deadline := c.clock.Now().Add(c.failover)
	for n := 0; ; n++ {
		result, err := c.invokeOnce(ctx, r, call.CallID)
		if err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, r, err)
		}
		if !retryable(err) {
			return nil, fmt.Errorf("invoke %s: %w", call.CallID, err)
		}
		wait := c.backoff.wait(n)
		if !mayRepeat(err, repeat) || c.clock.Now().Add(wait).After(deadline) {
			c.log.WarnContext(ctx, "Call was given up", "callId", call.CallID, "attempts", n+1, "error", err)
			return c.unavailable(call, err, repeat), nil
		}
		if sleep(ctx, c.clock, wait) != nil {
			return nil, ended(ctx, r, err)
		}
	}
}

// invokeOnce makes one attempt. An answer that does not belong to the call is no
// answer: what the kernel did with the call is then unknown.
func (c *Client) invokeOnce(ctx context.Context, r request, callID string) (*contract.ToolResult, error) {
	answer, err := c.authorized(ctx, r)
	if err != nil {
		return nil, err
	}
	result, err := contract.Unmarshal[contract.ToolResult](answer)
	if err != nil {
		return nil, &connectionError{sent: true, err: fmt.Errorf("decode answer: %w", err)}
	}
	if result.CallID != callID {
		return nil, &connectionError{sent: true, err: errors.New("the answer belongs to another call")}
	}
	return &result, nil
}

// mayRepeat applies the rule of at most once. A coded answer that invites a
// repeat is given before anything is executed, and so is as good as not sent.
func mayRepeat(err error, repeat Repeat) bool {
	var lost *connectionError
	if errors.As(err, &lost) && lost.sent {
		return repeat == Repeatable
	}
	return true
}

// unavailable is the answer to a call whose fate is unknown or that never got
// through.
func (c *Client) unavailable(call bridge.InvokeRequest, err error, repeat Repeat) *contract.ToolResult {
	message := "The kernel could not be reached; the call was not executed."
	var lost *connectionError
	if errors.As(err, &lost) && lost.sent {
		message = "The connection to the kernel broke before an answer came; the call may have been executed."
	}
	again := repeat == Repeatable
	return &contract.ToolResult{
		CallID:      call.CallID,
		Tool:        call.Tool,
		Status:      contract.StatusFailed,
		CompletedAt: contract.At(c.clock.Now()),
		Error: &contract.ProtocolError{
			Code: bridge.CodeKernelUnavailable, Message: message, Retryable: &again},
	}
}
