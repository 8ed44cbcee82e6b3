package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Causes of unavailable authority; audit only.
const (
	causeSourceFailed  = "grant_source_failed"
	causeInvalidGrant  = "invalid_grant_material"
	causeScopeMismatch = "grant_scope_mismatch"
	causeTooManyGrants = "grant_limit_exceeded"
)

// authority is the resolved authority of one context. The type is unexported and
// no exported value leads to it, so nothing outside this package can hold it. It does
// not change once it is loaded: other turns may share it.
type authority struct {
	grants []grant // sorted by id
	index  index
	hash   string
}

// grant is one loaded grant with what a decision needs of it.
type grant struct {
	contract.Grant
	canonical []byte
	// standing is why the grant cannot apply at all in this turn; zero if it can.
	standing reason
	expires  time.Time // zero if it never does
	maxUses  int64     // zero if unbounded
}

// loadFault says why authority is unavailable.
type loadFault struct {
	cause   string
	grantID string
}

// load calls the source once and refuses the whole answer at the first flaw. What is
// for a single operation is not worth sharing.
func (k *Kernel) load(ctx context.Context, ac *contract.AccessContext, held []GrantRef, single bool) (*authority, *loadFault) {
	loaded, err := guarded(func() ([]contract.Grant, error) { return k.opts.Grants.Load(ctx, *ac) })
	if err != nil {
		return nil, &loadFault{cause: causeSourceFailed}
	}
	if len(loaded) > MaxGrants {
		return nil, &loadFault{cause: causeTooManyGrants}
	}
	a := &authority{grants: make([]grant, 0, len(loaded))}
	for i := range loaded {
		if fault := admissible(&loaded[i], ac); fault != nil {
			return nil, fault
		}
		a.grants = append(a.grants, grant{Grant: cloneGrant(&loaded[i])})
	}
	if fault := a.seal(held); fault != nil {
		return nil, fault
	}
	for i := range a.grants {
		k.prepare(&a.grants[i], ac)
	}
	if single {
		a.index = newIndex(a.grants, ac)
		return a, nil
	}
	return k.authorities.one(a.key(ac), func() *authority {
		a.index = newIndex(a.grants, ac)
		return a
	}), nil
}

// admissible checks that a loaded grant is well formed and belongs to the context.
func admissible(g *contract.Grant, ac *contract.AccessContext) *loadFault {
	if g.Validate() != nil {
		return &loadFault{cause: causeInvalidGrant, grantID: g.ID}
	}
	if g.NamespaceID != ac.NamespaceID || g.Subject != ac.Actor || g.Issuer != ac.Authority {
		return &loadFault{cause: causeScopeMismatch, grantID: g.ID}
	}
	return nil
}

// seal sorts the grants, drops those that a resumed turn did not hold, and hashes
// the set that is left.
func (a *authority) seal(held []GrantRef) *loadFault {
	slices.SortFunc(a.grants, func(x, y grant) int { return contract.CompareCodeUnits(x.ID, y.ID) })
	kept := a.grants[:0]
	before := make(map[GrantRef]struct{}, len(held))
	for _, ref := range held {
		before[ref] = struct{}{}
	}
	set := []byte{'['}
	for i := range a.grants {
		g := &a.grants[i]
		if i > 0 && a.grants[i-1].ID == g.ID {
			return &loadFault{cause: causeInvalidGrant, grantID: g.ID}
		}
		var err error
		if g.canonical, err = appendGrant(nil, &g.Grant); err != nil {
			return &loadFault{cause: causeInvalidGrant, grantID: g.ID}
		}
		if held != nil {
			if _, was := before[GrantRef{ID: g.ID, Hash: canonical.HashBytes(g.canonical)}]; !was {
				continue
			}
		}
		if len(set) > 1 {
			set = append(set, ',')
		}
		set = append(set, g.canonical...)
		kept = append(kept, *g)
	}
	a.grants = kept
	a.hash = canonical.HashBytes(append(set, ']'))
	return nil
}

// prepare judges everything about a grant that is fixed for the turn. The first
// three cannot happen to what load admitted; they are judged all the same, so that
// no later way of filling an authority can skip them.
func (k *Kernel) prepare(g *grant, ac *contract.AccessContext) {
	if g.Constraints.ExpiresAt != nil {
		g.expires = g.Constraints.ExpiresAt.Time
	}
	if g.Constraints.MaxUses != nil {
		g.maxUses = *g.Constraints.MaxUses
	}
	switch {
	case g.Issuer != ac.Authority:
		g.standing = reasonIssuer
	case g.Subject != ac.Actor:
		g.standing = reasonSubject
	case g.NamespaceID != ac.NamespaceID:
		g.standing = reasonNamespace
	case !activeAtAdmission(&g.Grant, ac.Now.Time):
		g.standing = reasonWindow
	case !allowsPurpose(&g.Grant, ac.Purpose):
		g.standing = reasonPurpose
	case !k.verified(&g.Grant):
		g.standing = reasonVerifier
	}
}

func (k *Kernel) verified(g *contract.Grant) bool {
	if k.opts.Verifier == nil {
		return true
	}
	ok, err := guarded(func() (bool, error) { return k.opts.Verifier.Verify(*g), nil })
	return ok && err == nil
}

// activeAtAdmission judges what an instant after admission cannot change: a later
// clock may only take authority away.
func activeAtAdmission(g *contract.Grant, admittedAt time.Time) bool {
	c := &g.Constraints
	switch {
	case g.IssuedAt.After(admittedAt):
		return false
	case c.NotBefore != nil && (c.NotBefore.IsZero() || c.NotBefore.After(admittedAt)):
		return false
	case g.RevokedAt != nil && !g.RevokedAt.After(admittedAt):
		return false
	default:
		return true
	}
}

// expired judges expiry at the later of admission and the operation.
func expired(g *contract.Grant, latest time.Time) bool {
	return g.Constraints.ExpiresAt != nil && !g.Constraints.ExpiresAt.After(latest)
}

func allowsPurpose(g *contract.Grant, purpose string) bool {
	return g.Constraints.Purposes == nil || contains(g.Constraints.Purposes, purpose)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// guarded calls a port and turns its panic into an error.
func guarded[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			var zero T
			result, err = zero, fmt.Errorf("port panicked: %T", r)
		}
	}()
	return call()
}
