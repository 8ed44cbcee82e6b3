package plugin

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// errHidden means that a name holds characters which do not show what they are.
var errHidden = errors.New("it holds characters that do not show; write the Grant by hand if that is meant")

// grantObject is a kernel's grant as the object that says it. Names of Principals come
// from the directory.
func grantObject(g *contract.Grant, d *translate.Directory) (*v1alpha1.Grant, error) {
	out := &v1alpha1.Grant{ObjectMeta: metav1.ObjectMeta{Name: g.ID, Namespace: g.NamespaceID}}
	out.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Grant"))
	var err error
	if out.Spec.Issuer, err = principalOf(g.Issuer, d); err != nil {
		return nil, err
	}
	if out.Spec.Subject, err = principalOf(g.Subject, d); err != nil {
		return nil, err
	}
	out.Spec.ParentGrant = v1alpha1.ObjectName(g.ParentGrantID)
	for i := range g.Capabilities {
		c, err := capabilityObject(&g.Capabilities[i], d)
		if err != nil {
			return nil, err
		}
		out.Spec.Capabilities = append(out.Spec.Capabilities, c)
	}
	out.Spec.Constraints = constraintsObject(&g.Constraints)
	if c := out.Spec.Constraints; c != nil {
		for _, purpose := range c.Purposes {
			if !plain.Shown(string(purpose)) {
				return nil, fmt.Errorf("purpose %s: %w", plain.Text(string(purpose)), errHidden)
			}
		}
	}
	return out, nil
}

// principalOf is the name of the one Principal that has the address.
func principalOf(a contract.Address, d *translate.Directory) (v1alpha1.ObjectName, error) {
	names := d.Sharing(a)
	if len(names) != 1 {
		return "", fmt.Errorf("%s: %d Principals have this address, and it must be one", plain.Text(contract.CanonicalActor(a)), len(names))
	}
	return v1alpha1.ObjectName(names[0]), nil
}

func capabilityObject(c *contract.Capability, d *translate.Directory) (v1alpha1.Capability, error) {
	out := v1alpha1.Capability{
		Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(c.Resource.Namespace), Path: []v1alpha1.PathSegment{}},
		Scope:    v1alpha1.Scope(c.Scope),
	}
	shown := make([]string, 0, 1+len(c.Resource.Path)+len(c.Actions))
	shown = append(shown, c.Resource.Namespace)
	for _, segment := range c.Resource.Path {
		shown = append(shown, segment)
		out.Resource.Path = append(out.Resource.Path, v1alpha1.PathSegment(segment))
	}
	for _, action := range c.Actions {
		shown = append(shown, action)
		out.Actions = append(out.Actions, v1alpha1.Action(action))
	}
	for _, text := range shown {
		if !plain.Shown(text) {
			return out, fmt.Errorf("%s: %w", plain.Text(text), errHidden)
		}
	}
	if c.Resource.Owner != nil {
		owner, err := principalOf(*c.Resource.Owner, d)
		if err != nil {
			return out, err
		}
		out.Resource.Owner = owner
	}
	return out, nil
}

func constraintsObject(c *contract.Constraints) *v1alpha1.GrantConstraints {
	out := &v1alpha1.GrantConstraints{MaxUses: c.MaxUses, DelegationDepth: c.DelegationDepth}
	for _, purpose := range c.Purposes {
		out.Purposes = append(out.Purposes, v1alpha1.Purpose(purpose))
	}
	if c.NotBefore != nil {
		out.NotBefore = v1alpha1.Timestamp(c.NotBefore.String())
	}
	if c.ExpiresAt != nil {
		out.ExpiresAt = v1alpha1.Timestamp(c.ExpiresAt.String())
	}
	if out.Purposes == nil && out.NotBefore == "" && out.ExpiresAt == "" && out.MaxUses == nil && out.DelegationDepth == nil {
		return nil
	}
	return out
}
