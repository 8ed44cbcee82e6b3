package kernel

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Record completes an event with the context's identity, an id and the instant,
// and hands it to the audit sink. It is for the envelope and other trusted parts
// of the host; a sink's panic is an error. The kernel's own records do not end with
// the caller's context: a caller that goes away must not look like a broken sink.
func (k *Kernel) Record(ctx context.Context, ac contract.AccessContext, e audit.Event) error {
	k.complete(&e, &ac)
	_, err := guarded(func() (struct{}, error) { return struct{}{}, k.opts.Audit.Record(ctx, e) })
	return err
}

// recordLater is Record for a fact that follows an effect inside a turn: a sink
// that can keeps it in order without waiting, and the turn's ending vouches for it.
func (k *Kernel) recordLater(ctx context.Context, ac contract.AccessContext, e audit.Event) error {
	deferrer, ok := k.opts.Audit.(audit.Deferrer)
	if !ok {
		return k.Record(ctx, ac, e)
	}
	k.complete(&e, &ac)
	_, err := guarded(func() (struct{}, error) { return struct{}{}, deferrer.Defer(ctx, e) })
	return err
}

func (k *Kernel) complete(e *audit.Event, ac *contract.AccessContext) {
	e.Version = contract.Version
	e.ID = k.opts.NewID()
	if e.At.IsZero() {
		e.At = contract.At(k.opts.Clock())
	}
	e.TraceID, e.NamespaceID = ac.TraceID, ac.NamespaceID
	e.Actor, e.Authority, e.Owner, e.Purpose = ac.Actor, ac.Authority, ac.Owner, ac.Purpose
	e.Tool, e.OperationID, e.MessageID, e.Action = clip(e.Tool), clip(e.OperationID), clip(e.MessageID), clip(e.Action)
	if e.Source == "" {
		e.Source = audit.SourceKernel
	}
}

// clip bounds text that a caller chose and that may have been refused for being
// no identifier at all.
func clip(s string) string {
	if len(s) <= contract.MaxIdentifier {
		return s
	}
	if runes := []rune(s); len(runes) > contract.MaxIdentifier {
		return string(runes[:contract.MaxIdentifier])
	}
	return s
}

// Record is [Kernel.Record] with the turn's context.
func (t *Turn) Record(ctx context.Context, e audit.Event) error {
	return t.k.Record(ctx, t.ac, e)
}

// follow records a fact that comes after its effect or after a refusal. The
// context's cancellation does not stop it: the fact has happened.
func (t *Turn) follow(ctx context.Context, e audit.Event) error {
	ctx = context.WithoutCancel(ctx)
	if t.single {
		return t.k.Record(ctx, t.ac, e)
	}
	return t.k.recordLater(ctx, t.ac, e)
}
