package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// ErrBridgeClosed says that a bridge is a shut door: it answers nothing any more.
var ErrBridgeClosed = errors.New("the bridge is closed")

// TurnHost is the one method of a turn that a bridge needs; the host that
// kernel/envelope hands to a runtime has it. The host mints the call's id, gives it
// the turn's trace, and latches an escalation.
type TurnHost interface {
	// Invoke runs one tool call. A nil step declares none.
	Invoke(ctx context.Context, tool string, arguments contract.Object, step *int64) contract.ToolResult
}

// TurnBridgeOptions describe the turn a bridge is opened in.
type TurnBridgeOptions struct {
	// Catalogue is the turn's effective catalogue, which cannot change.
	Catalogue contract.Catalogue
	// Host runs the calls.
	Host TurnHost
	// Step is the position in the harness's own loop, if the caller knows it. Without
	// it a turn is bounded by its number of calls alone.
	Step *int64
	// Now is the clock of alias records; the default is [time.Now].
	Now func() time.Time
}

// AliasRecord says that a harness used another name than the canonical one.
type AliasRecord struct {
	Alias string             `json:"alias"`
	Tool  string             `json:"tool"`
	At    contract.Timestamp `json:"at"`
}

// MaxAliasRecords is the most records a bridge keeps, the first ones.
const MaxAliasRecords = 1024

// TurnBridge is the [Invoker] of one running turn. It is safe for concurrent use.
type TurnBridge struct {
	door
	aliases aliases
	opts    TurnBridgeOptions
}

// OpenTurnBridge opens a bridge inside a turn. It must be closed with the turn.
func OpenTurnBridge(opts TurnBridgeOptions) *TurnBridge {
	b := &TurnBridge{opts: opts}
	b.door.open()
	b.aliases.now = clockOr(opts.Now)
	if opts.Step != nil {
		step := *opts.Step
		b.opts.Step = &step
	}
	return b
}

// Catalog implements [Invoker].
func (b *TurnBridge) Catalog(context.Context) (contract.Catalogue, error) {
	if b.shut() {
		return contract.Catalogue{}, ErrBridgeClosed
	}
	return b.opts.Catalogue, nil
}

// Invoke implements [Invoker]. A result that comes after the bridge was closed is
// discarded.
func (b *TurnBridge) Invoke(ctx context.Context, call Invocation) (contract.ToolResult, error) {
	return b.pass(ctx, func(ctx context.Context) contract.ToolResult {
		b.aliases.record(&call)
		return b.opts.Host.Invoke(ctx, call.Tool, call.Arguments, b.opts.Step)
	})
}

// Aliases returns what the harness called tools by, in order.
func (b *TurnBridge) Aliases() []AliasRecord { return b.aliases.list() }

// Close shuts the bridge: running calls are cancelled and their answers discarded.
// It does not wait for them.
func (b *TurnBridge) Close() { b.close() }

// door is open until it is closed, once.
type door struct {
	ctx    context.Context //nolint:containedctx // the bridge's own life, which calls are bound to
	cancel context.CancelFunc
}

func (d *door) open() { d.ctx, d.cancel = context.WithCancel(context.Background()) }

func (d *door) close() { d.cancel() }

func (d *door) shut() bool { return d.ctx.Err() != nil }

// pass runs f with a context that ends with the door.
func (d *door) pass(ctx context.Context, f func(context.Context) contract.ToolResult) (contract.ToolResult, error) {
	if d.shut() {
		return contract.ToolResult{}, ErrBridgeClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(d.ctx, func() { cancel(ErrBridgeClosed) }) //nolint:contextcheck // the door's end ends the call
	defer stop()
	result := f(ctx)
	if d.shut() {
		return contract.ToolResult{}, ErrBridgeClosed
	}
	return result, nil
}

// aliases keeps the names a harness used.
type aliases struct {
	now     func() time.Time
	mu      sync.Mutex
	records []AliasRecord
}

func (a *aliases) record(call *Invocation) {
	if call.Alias == "" {
		return
	}
	at := contract.At(a.now())
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.records) < MaxAliasRecords {
		a.records = append(a.records, AliasRecord{Alias: call.Alias, Tool: call.Tool, At: at})
	}
}

func (a *aliases) list() []AliasRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]AliasRecord(nil), a.records...)
}

func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
