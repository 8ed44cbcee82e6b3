package kernel

import (
	"context"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Mode is what a decision is for.
type Mode = mode

// The modes.
const (
	ModeConsume  = modeConsume
	ModeCheck    = modeCheck
	ModeDiscover = modeDiscover
)

// Verdict is a decision as the host sees it.
type Verdict struct {
	Code, Grant, Missing, Cause string
	Consumed                    bool
	Rejected                    []audit.RejectedGrant
}

// Decide decides without recording.
func (t *Turn) Decide(ctx context.Context, need contract.CapabilityRequirement, now time.Time, m Mode) Verdict {
	q := question{need: need, now: now, mode: m}
	v := t.decide(ctx, &q)
	out := Verdict{Code: v.code, Missing: v.missing, Cause: v.cause, Consumed: v.consumed}
	if v.grant >= 0 {
		out.Grant = t.auth.grants[v.grant].ID
	}
	if !v.allowed() {
		out.Rejected = t.rejected(&q, &v)
	}
	return out
}

// Allows decides without recording and without building anything for the host.
func (t *Turn) Allows(ctx context.Context, need contract.CapabilityRequirement, now time.Time, m Mode) bool {
	q := question{need: need, now: now, mode: m}
	v := t.decide(ctx, &q)
	return v.allowed()
}

// LoadTurn opens a turn without recording; its cause is that of unavailable authority.
func (k *Kernel) LoadTurn(ctx context.Context, ac contract.AccessContext) (_ *Turn, cause, grantID string) {
	auth, fault := k.load(ctx, &ac, nil, false)
	if fault != nil {
		return nil, fault.cause, fault.grantID
	}
	return &Turn{k: k, ac: ac, auth: auth}, "", ""
}

// Chain walks a grant's ancestors.
func (t *Turn) Chain(ctx context.Context, g *contract.Grant, now time.Time) string {
	return t.walkChain(ctx, g, now).name
}

// AppendGrant is the hand-written canonical form of a grant.
func AppendGrant(g *contract.Grant) ([]byte, error) { return appendGrant(nil, g) }

// StandingOf judges one grant in a context, past what loading already refuses.
func (k *Kernel) StandingOf(g contract.Grant, ac contract.AccessContext) string {
	held := grant{Grant: g}
	k.prepare(&held, &ac)
	return held.standing.String()
}

// Shares reports whether two turns hold one authority in memory.
func (t *Turn) Shares(u *Turn) bool { return t.auth == u.auth }

// Shared is how many authorities and reaches are known.
func (k *Kernel) Shared() int { return k.authorities.len() + k.places.len() }
