// Package envelope is the fixed security boundary around a replaceable runtime.
// It owns one turn's order, budgets, deadline, events and ending; the runtime owns
// the loop. A runtime receives no grant, no issuer and no handle on the kernel.
package envelope

import (
	"context"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Defaults of [contract.ExecutionOptions]. The most calls default to the steps.
const (
	DefaultMaxSteps = 16
	DefaultTimeout  = 120 * time.Second
)

// Options configure an [Envelope]. The zero value works.
type Options struct {
	// DrainGrace is how long before the deadline new calls are refused, while a
	// running handler may still finish.
	DrainGrace time.Duration
	// AfterFunc runs f once d has passed unless stop is called first; the default
	// is [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// OnEscalation persists the latch before the harness is answered; a checkpoint
	// taken in it holds the escalation. Its error undoes the escalation, unless the
	// turn has ended with it meanwhile. Its context ends when the turn does.
	OnEscalation func(ctx context.Context, executionID string, e contract.Escalation) error
	// OnEvent sees every event as it happens, in order. It must not block and must
	// not call back into the execution.
	OnEvent func(e contract.ExecutionEvent)
}

// Envelope runs turns over one kernel.
type Envelope struct {
	k    *kernel.Kernel
	opts Options
}

// New returns an envelope over k.
func New(k *kernel.Kernel, opts Options) *Envelope {
	if opts.AfterFunc == nil {
		opts.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop } //nolint:forbidigo // the default of a port
	}
	return &Envelope{k: k, opts: opts}
}

// limits are a turn's budgets.
type limits struct {
	steps   int64
	calls   int64
	timeout time.Duration
}

func limitsOf(o *contract.ExecutionOptions) limits {
	l := limits{steps: DefaultMaxSteps, timeout: DefaultTimeout}
	if o != nil && o.MaxSteps != nil {
		l.steps = *o.MaxSteps
	}
	l.calls = l.steps
	if o != nil && o.MaxToolCalls != nil {
		l.calls = *o.MaxToolCalls
	}
	if o != nil && o.TimeoutMs != nil {
		l.timeout = time.Duration(*o.TimeoutMs) * time.Millisecond
	}
	return l
}
