package kernel

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// MaxChainLinks is the most ancestors a derived grant may have.
const MaxChainLinks = 16

// Faults of a delegation chain; audit only. The last three mean that the chain
// could not be established.
const (
	faultNamespace           = "namespace_mismatch"
	faultIssuer              = "issuer_not_parent_subject"
	faultInactive            = "parent_inactive"
	faultNotPermitted        = "delegation_not_permitted"
	faultDepth               = "delegation_depth_exceeded"
	faultBounded             = "bounded_parent_not_delegable"
	faultCapability          = "capability_widened"
	faultConstraints         = "constraints_widened"
	faultTooLong             = "chain_too_long"
	faultCycle               = "chain_cycle"
	faultResolverUnavailable = "resolver_unavailable"
	faultParentNotFound      = "parent_not_found"
	faultResolverFailed      = "resolver_failed"
)

// chainFault is the first fault of a chain; zero if there is none.
type chainFault struct {
	why  reason
	name string
}

// walkChain loads and judges the ancestors of a derived grant, link by link. They
// come from the resolver at every use, never from the grant.
func (t *Turn) walkChain(ctx context.Context, leaf *contract.Grant, now time.Time) chainFault {
	resolver := t.k.opts.Delegation
	if resolver == nil {
		return chainFault{reasonUnverified, faultResolverUnavailable}
	}
	var seen [MaxChainLinks + 1]string
	seen[0] = leaf.ID
	// Two slots suffice: a link is judged between a child and its parent.
	var slots [2]contract.Grant
	child := leaf
	for links := 0; child.ParentGrantID != ""; links++ {
		if slices.Contains(seen[:links+1], child.ParentGrantID) {
			return chainFault{reasonInvalidChain, faultCycle}
		}
		if links == MaxChainLinks {
			return chainFault{reasonInvalidChain, faultTooLong}
		}
		parent := &slots[links%2]
		if fault := t.resolve(ctx, resolver, child, parent); fault != "" {
			return chainFault{reasonUnverified, fault}
		}
		if fault := t.judgeLink(child, parent, now); fault != "" {
			return chainFault{reasonInvalidChain, fault}
		}
		seen[links+1] = parent.ID
		child = parent
	}
	return chainFault{}
}

// resolve loads the child's parent into the given slot.
func (t *Turn) resolve(ctx context.Context, r DelegationResolver, child, parent *contract.Grant) string {
	loaded, err := guarded(func() (contract.Grant, error) {
		return r.Resolve(ctx, child.NamespaceID, child.ParentGrantID)
	})
	switch {
	case errors.Is(err, ErrGrantNotFound):
		return faultParentNotFound
	case err != nil, loaded.ID != child.ParentGrantID, loaded.Validate() != nil:
		return faultResolverFailed
	}
	*parent = loaded
	return ""
}

// judgeLink applies every rule between a child and its immediate parent.
func (t *Turn) judgeLink(child, parent *contract.Grant, now time.Time) string {
	depth, delegable := delegationDepth(parent)
	switch {
	case parent.NamespaceID != child.NamespaceID:
		return faultNamespace
	case child.Issuer != parent.Subject:
		return faultIssuer
	case !activeAtAdmission(parent, t.ac.Now.Time),
		expired(parent, latest(t.ac.Now.Time, now)),
		!allowsPurpose(parent, t.ac.Purpose):
		return faultInactive
	case !delegable:
		return faultNotPermitted
	case childDepth(child) > depth-1:
		return faultDepth
	case parent.Constraints.MaxUses != nil:
		return faultBounded
	case !capabilitiesWithin(child.Capabilities, parent.Capabilities, &t.ac.Owner):
		return faultCapability
	case !constraintsWithin(child, parent):
		return faultConstraints
	default:
		return ""
	}
}

// delegationDepth returns the parent's depth and whether it may delegate at all.
func delegationDepth(parent *contract.Grant) (int64, bool) {
	d := parent.Constraints.DelegationDepth
	if d == nil || *d < 1 {
		return 0, false
	}
	return *d, true
}

func childDepth(child *contract.Grant) int64 {
	if d := child.Constraints.DelegationDepth; d != nil {
		return *d
	}
	return 0
}
