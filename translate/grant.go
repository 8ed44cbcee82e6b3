package translate

import (
	"encoding/json"
	"fmt"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// grantIdentity is a grant's metadata. Being part of the grant, it makes an edited
// or recreated Grant another grant to the kernel, although its id is its name.
type grantIdentity struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
}

// Grant translates one Grant. The id is the object's name; it was issued when it
// was created. A revoked Grant whose instant of revocation is not recorded yet
// counts as revoked from the beginning.
func Grant(g *v1alpha1.Grant, d *Directory) (contract.Grant, error) {
	out := contract.Grant{
		ID: g.Name, NamespaceID: g.Namespace, ParentGrantID: string(g.Spec.ParentGrant),
		IssuedAt: contract.At(g.CreationTimestamp.UTC()),
	}
	var err error
	if out.Subject, err = d.Address(string(g.Spec.Subject)); err != nil {
		return contract.Grant{}, fmt.Errorf("spec.subject of grant %q: %w", g.Name, err)
	}
	if out.Issuer, err = d.Address(string(g.Spec.Issuer)); err != nil {
		return contract.Grant{}, fmt.Errorf("spec.issuer of grant %q: %w", g.Name, err)
	}
	for i := range g.Spec.Capabilities {
		c, err := capability(&g.Spec.Capabilities[i], d)
		if err != nil {
			return contract.Grant{}, fmt.Errorf("spec.capabilities[%d] of grant %q: %w", i, g.Name, err)
		}
		out.Capabilities = append(out.Capabilities, c)
	}
	if out.Constraints, err = constraints(g.Spec.Constraints); err != nil {
		return contract.Grant{}, fmt.Errorf("spec.constraints of grant %q: %w", g.Name, err)
	}
	if g.Spec.Revoked {
		at := out.IssuedAt
		if g.Status.RevokedAt != nil {
			at = contract.At(g.Status.RevokedAt.UTC())
		}
		out.RevokedAt = &at
	}
	if out.Metadata, err = json.Marshal(grantIdentity{UID: string(g.UID), Generation: g.Generation}); err != nil {
		return contract.Grant{}, fmt.Errorf("encode identity of grant %q: %w", g.Name, err)
	}
	return out, nil
}

// GrantReference names the object that [Grant] translated, as it was then.
func GrantReference(g *contract.Grant) (v1alpha1.GrantReference, error) {
	var identity grantIdentity
	if err := json.Unmarshal(g.Metadata, &identity); err != nil {
		return v1alpha1.GrantReference{}, fmt.Errorf("read identity of grant %q: %w", g.ID, err)
	}
	return v1alpha1.GrantReference{
		Name: v1alpha1.ObjectName(g.ID), UID: v1alpha1.UID(identity.UID), Generation: identity.Generation,
	}, nil
}

func capability(c *v1alpha1.Capability, d *Directory) (contract.Capability, error) {
	out := contract.Capability{
		Resource: contract.ResourceRef{Namespace: string(c.Resource.Namespace), Path: path(c.Resource.Path)},
		Actions:  stringsOf(c.Actions), Scope: contract.Scope(c.Scope),
	}
	if c.Resource.Owner != "" {
		owner, err := d.Address(string(c.Resource.Owner))
		if err != nil {
			return contract.Capability{}, fmt.Errorf("resource.owner: %w", err)
		}
		out.Resource.Owner = &owner
	}
	return out, nil
}

func constraints(c *v1alpha1.GrantConstraints) (contract.Constraints, error) {
	if c == nil {
		return contract.Constraints{}, nil
	}
	out := contract.Constraints{Purposes: stringsOf(c.Purposes), MaxUses: c.MaxUses, DelegationDepth: c.DelegationDepth}
	var err error
	if out.NotBefore, err = timestamp(c.NotBefore); err != nil {
		return contract.Constraints{}, fmt.Errorf("notBefore: %w", err)
	}
	if out.ExpiresAt, err = timestamp(c.ExpiresAt); err != nil {
		return contract.Constraints{}, fmt.Errorf("expiresAt: %w", err)
	}
	return out, nil
}

func timestamp(t v1alpha1.Timestamp) (*contract.Timestamp, error) {
	if t == "" {
		return nil, nil //nolint:nilnil // an absent bound is no bound
	}
	at, err := t.Time()
	if err != nil {
		return nil, err
	}
	out := contract.At(at)
	return &out, nil
}

func path(segments []v1alpha1.PathSegment) contract.Path {
	out := make(contract.Path, len(segments))
	for i, s := range segments {
		out[i] = string(s)
	}
	return out
}

// stringsOf converts a list of a string type; nil stays nil.
func stringsOf[S ~string](in []S) []string {
	if in == nil {
		return nil
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return out
}
