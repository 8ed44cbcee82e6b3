package kerneltest

import (
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// GrantBuilder builds a grant step by step.
type GrantBuilder struct{ g contract.Grant }

// MakeGrant starts a grant from Alice to the world's actor, issued an hour before
// the epoch, with no capability.
func MakeGrant(id string) *GrantBuilder {
	return &GrantBuilder{contract.Grant{
		ID: id, NamespaceID: NamespaceID, Subject: Actor(), Issuer: Alice(),
		IssuedAt: contract.At(Epoch.Add(-time.Hour)),
	}}
}

// Descendants adds a capability over a path and everything below it.
func (b *GrantBuilder) Descendants(namespace string, path []string, actions ...string) *GrantBuilder {
	return b.capability(namespace, path, contract.ScopeDescendants, actions)
}

// Exact adds a capability over one path.
func (b *GrantBuilder) Exact(namespace string, path []string, actions ...string) *GrantBuilder {
	return b.capability(namespace, path, contract.ScopeExact, actions)
}

func (b *GrantBuilder) capability(namespace string, path []string, scope contract.Scope, actions []string) *GrantBuilder {
	b.g.Capabilities = append(b.g.Capabilities, contract.Capability{
		Resource: contract.ResourceRef{Namespace: namespace, Path: append(contract.Path{}, path...)},
		Actions:  actions, Scope: scope,
	})
	return b
}

// Owned names the owner of the last capability.
func (b *GrantBuilder) Owned(owner contract.Address) *GrantBuilder {
	b.g.Capabilities[len(b.g.Capabilities)-1].Resource.Owner = &owner
	return b
}

// From sets the issuer, To the subject.
func (b *GrantBuilder) From(issuer contract.Address) *GrantBuilder { b.g.Issuer = issuer; return b }

// To sets the subject.
func (b *GrantBuilder) To(subject contract.Address) *GrantBuilder { b.g.Subject = subject; return b }

// World sets the namespace id.
func (b *GrantBuilder) World(id string) *GrantBuilder { b.g.NamespaceID = id; return b }

// Purposes restricts the purposes.
func (b *GrantBuilder) Purposes(purposes ...string) *GrantBuilder {
	b.g.Constraints.Purposes = purposes
	return b
}

// Issued sets the instant of issue relative to the epoch.
func (b *GrantBuilder) Issued(d time.Duration) *GrantBuilder { b.g.IssuedAt = *at(d); return b }

// NotBefore opens the window relative to the epoch.
func (b *GrantBuilder) NotBefore(d time.Duration) *GrantBuilder {
	b.g.Constraints.NotBefore = at(d)
	return b
}

// Expires closes the window relative to the epoch.
func (b *GrantBuilder) Expires(d time.Duration) *GrantBuilder {
	b.g.Constraints.ExpiresAt = at(d)
	return b
}

// Revoked revokes the grant relative to the epoch.
func (b *GrantBuilder) Revoked(d time.Duration) *GrantBuilder { b.g.RevokedAt = at(d); return b }

// MaxUses bounds the grant.
func (b *GrantBuilder) MaxUses(n int64) *GrantBuilder { b.g.Constraints.MaxUses = &n; return b }

// Depth lets the grant be delegated.
func (b *GrantBuilder) Depth(n int64) *GrantBuilder { b.g.Constraints.DelegationDepth = &n; return b }

// Parent names the immediate parent.
func (b *GrantBuilder) Parent(id string) *GrantBuilder { b.g.ParentGrantID = id; return b }

// Metadata sets the metadata.
func (b *GrantBuilder) Metadata(raw string) *GrantBuilder {
	b.g.Metadata = contract.Object(raw)
	return b
}

// Obj returns the grant.
func (b *GrantBuilder) Obj() contract.Grant { return b.g }

func at(d time.Duration) *contract.Timestamp {
	t := contract.At(Epoch.Add(d))
	return &t
}

// Admission is the grant every turn of the world needs to be admitted.
func Admission() contract.Grant {
	return MakeGrant("admission").Exact(contract.NamespaceExecution, contract.AddressPath(Actor()), contract.ActionInvoke).Obj()
}

// Escalation is the grant that offers sharedos.escalate.
func Escalation() contract.Grant {
	return MakeGrant("escalation").Exact(contract.NamespaceSharedOS, []string{"escalation"}, contract.ActionRequest).Obj()
}
