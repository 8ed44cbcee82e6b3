package kernel

import (
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// DeriveRequest asks for a grant derived from another. What it leaves out is
// inherited from the parent and written out on the child.
type DeriveRequest struct {
	ID           string
	Subject      contract.Address
	Capabilities []contract.Capability
	IssuedAt     contract.Timestamp

	Purposes  []string
	NotBefore *contract.Timestamp
	ExpiresAt *contract.Timestamp
	// DelegationDepth defaults to the parent's minus one.
	DelegationDepth *int64
	MaxUses         *int64
	Metadata        contract.Object
}

// Errors of [DeriveGrant], in the order they are looked for. It refuses and never clamps.
var (
	ErrEmptyCapabilities    = errors.New("empty_capabilities")
	ErrIDCollidesWithParent = errors.New("id_collides_with_parent")
	ErrBoundedParent        = errors.New("bounded_parent_not_delegable")
	ErrParentNotDelegable   = errors.New("parent_not_delegable")
	ErrDepthExhausted       = errors.New("depth_exhausted")
	ErrCapabilityNotWithin  = errors.New("capability_not_within_parent")
	ErrPurposeNotWithin     = errors.New("purpose_not_within_parent")
	ErrWindowNotWithin      = errors.New("window_not_within_parent")
	ErrIssuedBeforeParent   = errors.New("issued_before_parent")
)

// DeriveGrant issues a child of parent to r.Subject by the parent's own subject.
// It is pure: whether the parent is active is judged where the child is used.
// Containment must hold in every context, so an unowned parent yields no owned
// child, nor the reverse.
func DeriveGrant(parent contract.Grant, r DeriveRequest) (contract.Grant, error) {
	child := inherit(&parent, &r)
	if err := derivable(&parent, &child, &r); err != nil {
		return contract.Grant{}, err
	}
	if err := child.Validate(); err != nil {
		return contract.Grant{}, fmt.Errorf("validate derived grant: %w", err)
	}
	return cloneGrant(&child), nil
}

// inherit fills the child with what the request says and the parent's for the rest.
func inherit(parent *contract.Grant, r *DeriveRequest) contract.Grant {
	child := contract.Grant{
		ID: r.ID, NamespaceID: parent.NamespaceID, Subject: r.Subject, Issuer: parent.Subject,
		Capabilities: r.Capabilities, IssuedAt: r.IssuedAt, ParentGrantID: parent.ID, Metadata: r.Metadata,
		Constraints: contract.Constraints{
			Purposes: r.Purposes, NotBefore: r.NotBefore, ExpiresAt: r.ExpiresAt,
			MaxUses: r.MaxUses, DelegationDepth: r.DelegationDepth,
		},
	}
	c, p := &child.Constraints, &parent.Constraints
	if c.Purposes == nil {
		c.Purposes = p.Purposes
	}
	if c.NotBefore == nil {
		c.NotBefore = p.NotBefore
	}
	if c.ExpiresAt == nil {
		c.ExpiresAt = p.ExpiresAt
	}
	if c.DelegationDepth == nil && p.DelegationDepth != nil {
		depth := *p.DelegationDepth - 1
		c.DelegationDepth = &depth
	}
	return child
}

func derivable(parent, child *contract.Grant, r *DeriveRequest) error {
	depth := parent.Constraints.DelegationDepth
	switch {
	case len(r.Capabilities) == 0:
		return ErrEmptyCapabilities
	case child.ID == parent.ID:
		return ErrIDCollidesWithParent
	case parent.Constraints.MaxUses != nil:
		return ErrBoundedParent
	case depth == nil:
		return ErrParentNotDelegable
	case *depth < 1 || *child.Constraints.DelegationDepth > *depth-1:
		return ErrDepthExhausted
	case !capabilitiesWithin(child.Capabilities, parent.Capabilities, nil):
		return ErrCapabilityNotWithin
	case !purposesWithin(child.Constraints.Purposes, parent.Constraints.Purposes):
		return ErrPurposeNotWithin
	case !windowWithin(&child.Constraints, &parent.Constraints):
		return ErrWindowNotWithin
	case child.IssuedAt.Before(parent.IssuedAt.Time):
		return ErrIssuedBeforeParent
	default:
		return nil
	}
}
