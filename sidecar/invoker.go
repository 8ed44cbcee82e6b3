package sidecar

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/client"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// invoker is the turn as the MCP server sees it: a catalogue that cannot change, and
// calls that the kernel decides.
type invoker struct {
	catalogue contract.Catalogue
	repeat    map[string]client.Repeat
	kernel    *client.Client
	clock     client.Clock
	// seen is told that a client is at work; over that the kernel says the turn has
	// ended.
	seen func()
	over func()
}

func newInvoker(s *Sidecar, catalogue *contract.Catalogue, over func()) *invoker {
	v := &invoker{
		catalogue: *catalogue, repeat: make(map[string]client.Repeat, len(catalogue.Tools)),
		kernel: s.kernel, clock: s.opts.Clock, seen: s.markInitialized, over: over,
	}
	for i := range catalogue.Tools {
		v.repeat[catalogue.Tools[i].Name] = client.RepeatOf(&catalogue.Tools[i])
	}
	return v
}

// Catalog implements [mcp.Invoker].
func (v *invoker) Catalog(context.Context) (contract.Catalogue, error) {
	v.seen()
	return v.catalogue, nil
}

// Invoke implements [mcp.Invoker]. A tool that is not in the catalogue goes to the
// kernel all the same, to be refused and recorded.
func (v *invoker) Invoke(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
	v.seen()
	result, err := v.kernel.Invoke(ctx, bridge.InvokeRequest{
		CallID: call.CallID, Tool: call.Tool, Arguments: call.Arguments, Alias: call.Alias,
	}, v.repeat[call.Tool]) // the zero value is AtMostOnce
	if err == nil {
		return *result, nil
	}
	var refused *bridge.Error
	if ctx.Err() != nil || !errors.As(err, &refused) {
		return contract.ToolResult{}, err
	}
	if refused.Code == bridge.CodeTurnEnded {
		v.over()
		return contract.ToolResult{}, mcp.ErrBridgeClosed
	}
	return v.failed(call, refused), nil
}

// failed is a call that the kernel service would not take. It was not executed.
func (v *invoker) failed(call mcp.Invocation, refused *bridge.Error) contract.ToolResult {
	return contract.ToolResult{
		CallID: call.CallID, Tool: call.Tool, Status: contract.StatusFailed,
		CompletedAt: contract.At(v.clock.Now()),
		Error: &contract.ProtocolError{
			Code: refused.Code, Message: refused.Message, Retryable: &refused.Retryable},
	}
}
