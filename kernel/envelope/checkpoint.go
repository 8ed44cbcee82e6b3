package envelope

import (
	"context"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Checkpoint returns what another process needs to continue the turn.
func (x *Execution) Checkpoint() Checkpoint {
	admission := x.Admission()
	x.mu.Lock()
	defer x.mu.Unlock()
	c := Checkpoint{
		ExecutionID: x.req.ExecutionID, Admission: admission, Usage: x.usage, Unsafe: x.unsafe,
		Denied: slices.Clone(x.denied), Events: slices.Clone(x.events), NextSequence: x.sequence,
	}
	for call := range x.running {
		c.Unsafe = c.Unsafe || !call.repeatable
	}
	if x.startedAt != nil {
		at := *x.startedAt
		c.StartedAt = &at
	}
	if x.escalation != nil {
		e := *x.escalation
		c.Escalation = &e
	}
	for step := range x.steps {
		c.Steps = append(c.Steps, step)
	}
	slices.Sort(c.Steps)
	return c
}

// Resume reopens a turn that another process admitted. It is judged at its own
// instant of admission; grants that are gone or changed are dropped and none is
// gained; the catalogue must hash to the same value, else the turn fails. Counts,
// steps, the escalation and the deadline go on from the checkpoint.
func (e *Envelope) Resume(ctx context.Context, req contract.ExecutionRequest, from Checkpoint) *Execution {
	x := e.newExecution(req)
	x.ac.Now = from.Admission.At
	if end := x.reopen(ctx, &from); end != nil {
		x.end(ctx, *end)
		return x
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.restore(&from)
	if x.startedAt != nil {
		elapsed := x.env.k.Now().Sub(x.startedAt.Time)
		x.arm(context.WithoutCancel(ctx), max(x.limits.timeout-elapsed, time.Duration(0)))
	}
	return x
}

func (x *Execution) reopen(ctx context.Context, from *Checkpoint) *ending {
	x.sequence, x.events = from.NextSequence, slices.Clone(from.Events)
	// Also of a turn that cannot go on: what it did stays on record, and what it may
	// have done is not repeatable.
	x.usage, x.denied = from.Usage, slices.Clone(from.Denied[:min(len(from.Denied), MaxDeniedCalls)])
	x.unsafe = from.Unsafe || from.StartedAt != nil
	if from.ExecutionID != x.req.ExecutionID {
		return deniedWith(contract.CodeInvalidRequest)
	}
	if code := x.check(); code != "" {
		return deniedWith(code)
	}
	turn, err := x.env.k.ResumeTurn(ctx, x.ac, from.Admission.Grants)
	if err != nil {
		return failedBy(codeOf(err))
	}
	x.turn = turn
	if end := x.resolve(ctx); end != nil {
		return end
	}
	if x.catalog.Hash() != from.Admission.CatalogHash {
		return failedBy(contract.CodeCatalogChanged)
	}
	return nil
}

// CountAtLeast raises the number of calls that count against the budget: another
// process took some of them after its last checkpoint. It never lowers it. What
// those calls did is not known, so an effect is assumed where one was possible.
func (x *Execution) CountAtLeast(calls int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if calls <= x.usage.ToolCalls {
		return
	}
	x.usage.ToolCalls = calls
	x.unsafe = x.unsafe || !x.harmless()
}

// harmless reports whether no tool of the catalogue can have an effect that must
// not be repeated.
func (x *Execution) harmless() bool {
	for _, name := range x.catalog.Names() {
		if !x.catalog.Repeatable(name) {
			return false
		}
	}
	return true
}

// restore takes over what goes on. A turn that was started may have made calls
// since its checkpoint, so an effect is assumed where one was possible. The caller
// holds the lock.
func (x *Execution) restore(from *Checkpoint) {
	x.unsafe = from.Unsafe || from.StartedAt != nil && !x.harmless()
	if from.StartedAt != nil {
		at := *from.StartedAt
		x.startedAt = &at
	}
	for _, step := range from.Steps {
		x.steps[step] = struct{}{}
	}
	if from.Escalation != nil {
		e := *from.Escalation
		x.escalation = &e
	}
}
