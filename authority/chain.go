package authority

import (
	"errors"
	"fmt"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// ErrParentInactive means that an ancestor is revoked or outside its window.
var ErrParentInactive = errors.New("parent_inactive")

// CheckChain says why a derived Grant does not hold under its ancestors, the
// immediate parent first: with the very rules by which the kernel derives a grant.
// Nil means that it holds now. A Grant without a parent always holds.
func CheckChain(child contract.Grant, ancestors []*v1alpha1.Grant, d *translate.Directory, now time.Time) error {
	for _, ancestor := range ancestors {
		parent, err := translate.Grant(ancestor, d)
		if err != nil {
			return fmt.Errorf("grant %q: %w", ancestor.Name, err)
		}
		if err := CheckLink(parent, child); err != nil {
			return fmt.Errorf("under %q: %w", parent.ID, err)
		}
		if !active(&parent, now) {
			return fmt.Errorf("grant %q: %w", parent.ID, ErrParentInactive)
		}
		child = parent
	}
	return nil
}

// CheckLink says why the child could not have been derived from the parent.
func CheckLink(parent, child contract.Grant) error {
	if child.Issuer != parent.Subject {
		return errors.New("issuer_not_parent_subject")
	}
	c := child.Constraints
	_, err := kernel.DeriveGrant(parent, kernel.DeriveRequest{
		ID: child.ID, Subject: child.Subject, Capabilities: child.Capabilities, IssuedAt: child.IssuedAt,
		Purposes: c.Purposes, NotBefore: c.NotBefore, ExpiresAt: c.ExpiresAt,
		DelegationDepth: c.DelegationDepth, MaxUses: c.MaxUses, Metadata: child.Metadata,
	})
	if err != nil {
		return err
	}
	return widened(parent.Constraints, c)
}

// widened refuses what the child leaves out and the parent has: inherited when a
// grant is derived, it must be written out on one that exists.
func widened(parent, child contract.Constraints) error {
	switch {
	case len(parent.Purposes) > 0 && len(child.Purposes) == 0:
		return errors.New("constraints_widened: purposes must be written out")
	case parent.NotBefore != nil && child.NotBefore == nil:
		return errors.New("constraints_widened: notBefore must be written out")
	case parent.ExpiresAt != nil && child.ExpiresAt == nil:
		return errors.New("constraints_widened: expiresAt must be written out")
	}
	return nil
}

func active(g *contract.Grant, now time.Time) bool {
	c := &g.Constraints
	return g.RevokedAt == nil && (c.NotBefore == nil || !now.Before(c.NotBefore.Time)) &&
		(c.ExpiresAt == nil || now.Before(c.ExpiresAt.Time))
}
