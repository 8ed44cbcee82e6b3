package kernel

import (
	"context"
	"sync"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Turn is one context with its authority, resolved once. It is safe for concurrent use.
type Turn struct {
	k    *Kernel
	ac   contract.AccessContext
	auth *authority
	// single marks a turn of one operation, whose records are all waited for.
	single bool

	mu       sync.Mutex
	registry *registry // what is registered for this context, once resolved
	catalog  *Catalogue
}

// OpenTurn loads the context's authority once and holds it until the turn is
// forgotten. The context's Now is the instant of admission. Authority that cannot
// be established is a [*Refusal] with code authority_unavailable; a malformed
// context one with invalid_context; an audit sink that cannot take the record one
// with audit_unavailable.
func (k *Kernel) OpenTurn(ctx context.Context, ac contract.AccessContext) (*Turn, error) {
	return k.open(ctx, ac, nil, false)
}

// GrantRef identifies one grant as it was when a turn was admitted.
type GrantRef struct {
	ID string `json:"id"`
	// Hash is the hash of the whole grant, so that a changed grant is another one.
	Hash string `json:"hash"`
}

// ResumeTurn is OpenTurn for a turn that was admitted before: of the grants loaded
// now only those in held and unchanged are kept. A grant is never gained or replaced.
func (k *Kernel) ResumeTurn(ctx context.Context, ac contract.AccessContext, held []GrantRef) (*Turn, error) {
	if held == nil {
		held = []GrantRef{}
	}
	return k.open(ctx, ac, held, false)
}

func (k *Kernel) open(ctx context.Context, ac contract.AccessContext, held []GrantRef, single bool) (*Turn, error) {
	if ac.Validate() != nil {
		return nil, refusal(contract.CodeInvalidContext)
	}
	ac.EnabledToolNamespaces = append([]string(nil), ac.EnabledToolNamespaces...)
	ctx, end := k.span(ctx, Span{Name: "load", TraceID: ac.TraceID})
	auth, fault := k.load(ctx, &ac, held, single)
	if fault != nil {
		end(contract.StatusFailed, contract.CodeAuthorityUnavailable)
		return nil, k.unavailable(ctx, ac, fault)
	}
	end(contract.StatusSucceeded, "")
	count := len(auth.grants)
	err := k.Record(context.WithoutCancel(ctx), ac, audit.Event{
		Type: audit.AuthorityResolved, Outcome: audit.Succeeded,
		AuthorityHash: auth.hash, GrantsResolved: &count,
	})
	if err != nil {
		return nil, refusal(contract.CodeAuditUnavailable)
	}
	return &Turn{k: k, ac: ac, auth: auth, single: single}, nil
}

// unavailable records why authority could not be established and returns what the
// caller may know of it.
func (k *Kernel) unavailable(ctx context.Context, ac contract.AccessContext, fault *loadFault) error {
	err := k.Record(context.WithoutCancel(ctx), ac, audit.Event{
		Type: audit.AuthorityResolved, Outcome: audit.Failed, FailClosed: true,
		Reason: contract.CodeAuthorityUnavailable, Cause: fault.cause, GrantID: fault.grantID,
	})
	if err != nil {
		return refusal(contract.CodeAuditUnavailable)
	}
	return refusal(contract.CodeAuthorityUnavailable)
}

// Context returns the turn's context.
func (t *Turn) Context() contract.AccessContext {
	ac := t.ac
	ac.EnabledToolNamespaces = append([]string(nil), t.ac.EnabledToolNamespaces...)
	return ac
}

// AuthorityHash is the hash of the grant set the turn holds.
func (t *Turn) AuthorityHash() string { return t.auth.hash }

// Grants returns a reference to every grant the turn holds, sorted by id.
func (t *Turn) Grants() []GrantRef {
	refs := make([]GrantRef, 0, len(t.auth.grants))
	for i := range t.auth.grants {
		g := &t.auth.grants[i]
		refs = append(refs, GrantRef{ID: g.ID, Hash: canonical.HashBytes(g.canonical)})
	}
	return refs
}

func (k *Kernel) span(ctx context.Context, s Span) (context.Context, func(contract.Status, string)) {
	if k.opts.Observer == nil {
		return ctx, func(contract.Status, string) {}
	}
	return k.opts.Observer.Start(ctx, s)
}
