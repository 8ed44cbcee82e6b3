package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// BridgeKernel runs single calls outside any turn; a kernel is one. Authority is
// loaded anew for every call, and there is neither a budget nor an event.
type BridgeKernel interface {
	InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) contract.ToolResult
}

// EffectiveCatalogue is what a kernel offers in a context.
type EffectiveCatalogue interface {
	Published() []contract.PublishedTool
	Hash() string
}

// KernelBridgeOptions describe the context a bridge outside a turn serves. All but
// Now are required.
type KernelBridgeOptions struct {
	Kernel BridgeKernel
	// Tools resolves the catalogue: a kernel's method of that name.
	Tools func(ctx context.Context, ac contract.AccessContext) (EffectiveCatalogue, error)
	// Context is the trusted context. It is never built from anything the harness
	// sent; its Now is set for each call.
	Context contract.AccessContext
	// ExecutionID is what tools/list names.
	ExecutionID string
	// Now is the clock; the default is [time.Now].
	Now func() time.Time
}

// KernelBridge is the [Invoker] of a context outside any turn. It is safe for
// concurrent use.
type KernelBridge struct {
	door
	aliases aliases
	opts    KernelBridgeOptions
}

// OpenKernelBridge opens a bridge over a kernel. The caller closes it.
func OpenKernelBridge(opts KernelBridgeOptions) *KernelBridge {
	b := &KernelBridge{opts: opts}
	b.opts.Now = clockOr(opts.Now)
	b.opts.Context.EnabledToolNamespaces = append([]string(nil), opts.Context.EnabledToolNamespaces...)
	b.aliases.now = b.opts.Now
	b.door.open()
	return b
}

// Catalog implements [Invoker].
func (b *KernelBridge) Catalog(ctx context.Context) (contract.Catalogue, error) {
	if b.shut() {
		return contract.Catalogue{}, ErrBridgeClosed
	}
	c, err := b.opts.Tools(ctx, b.context())
	if err != nil {
		return contract.Catalogue{}, fmt.Errorf("list tools: %w", err)
	}
	return contract.Catalogue{
		Version: contract.Version, ExecutionID: b.opts.ExecutionID, CatalogHash: c.Hash(), Tools: c.Published(),
	}, nil
}

// Invoke implements [Invoker].
func (b *KernelBridge) Invoke(ctx context.Context, call Invocation) (contract.ToolResult, error) {
	return b.pass(ctx, func(ctx context.Context) contract.ToolResult {
		b.aliases.record(&call)
		ac := b.context()
		return b.opts.Kernel.InvokeTool(ctx, ac, contract.ToolCall{
			ID: call.CallID, Tool: call.Tool, Arguments: call.Arguments, TraceID: ac.TraceID, RequestedAt: ac.Now,
		})
	})
}

// Aliases returns what the harness called tools by, in order.
func (b *KernelBridge) Aliases() []AliasRecord { return b.aliases.list() }

// Close shuts the bridge: running calls are cancelled and their answers discarded.
func (b *KernelBridge) Close() { b.close() }

// context is the trusted context at this instant.
func (b *KernelBridge) context() contract.AccessContext {
	ac := b.opts.Context
	ac.EnabledToolNamespaces = append([]string(nil), ac.EnabledToolNamespaces...)
	ac.Now = contract.At(b.opts.Now())
	return ac
}
