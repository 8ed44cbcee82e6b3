package kernel

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// cloneGrant copies everything a source could still change behind the kernel's back.
func cloneGrant(g *contract.Grant) contract.Grant {
	out := *g
	out.Capabilities = slices.Clone(g.Capabilities)
	for i := range out.Capabilities {
		c := &out.Capabilities[i]
		c.Actions = slices.Clone(c.Actions)
		c.Resource.Path = slices.Clone(c.Resource.Path)
		c.Resource.Owner = clonePointer(c.Resource.Owner)
	}
	out.Constraints = contract.Constraints{
		Purposes:        slices.Clone(g.Constraints.Purposes),
		NotBefore:       clonePointer(g.Constraints.NotBefore),
		ExpiresAt:       clonePointer(g.Constraints.ExpiresAt),
		MaxUses:         clonePointer(g.Constraints.MaxUses),
		DelegationDepth: clonePointer(g.Constraints.DelegationDepth),
	}
	out.RevokedAt = clonePointer(g.RevokedAt)
	out.Metadata = bytes.Clone(g.Metadata)
	return out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// appendGrant appends a grant's canonical JSON without going through a generic
// encoder: authority is hashed at the start of every turn. The members are in
// canonical order.
func appendGrant(dst []byte, g *contract.Grant) ([]byte, error) {
	dst = append(dst, `{"capabilities":[`...)
	for i := range g.Capabilities {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCapability(dst, &g.Capabilities[i])
	}
	dst = append(dst, `],"constraints":`...)
	dst = appendConstraints(dst, &g.Constraints)
	dst = appendMember(dst, `,"id":`, g.ID)
	dst = appendMember(dst, `,"issuedAt":`, g.IssuedAt.String())
	dst = g.Issuer.AppendCanonical(append(dst, `,"issuer":`...))
	if len(g.Metadata) > 0 {
		node, err := strictjson.Parse(g.Metadata)
		if err != nil {
			return nil, err
		}
		if dst, err = canonical.Append(append(dst, `,"metadata":`...), node); err != nil {
			return nil, err
		}
	}
	dst = appendMember(dst, `,"namespaceId":`, g.NamespaceID)
	if g.ParentGrantID != "" {
		dst = appendMember(dst, `,"parentGrantId":`, g.ParentGrantID)
	}
	if g.RevokedAt != nil {
		dst = appendMember(dst, `,"revokedAt":`, g.RevokedAt.String())
	}
	dst = g.Subject.AppendCanonical(append(dst, `,"subject":`...))
	return append(dst, '}'), nil
}

func appendCapability(dst []byte, c *contract.Capability) []byte {
	dst = appendStrings(append(dst, `{"actions":`...), c.Actions)
	dst = append(dst, `,"resource":`...)
	dst = appendResource(dst, &c.Resource)
	dst = appendMember(dst, `,"scope":`, string(c.Scope))
	return append(dst, '}')
}

func appendResource(dst []byte, r *contract.ResourceRef) []byte {
	dst = appendMember(dst, `{"namespace":`, r.Namespace)
	if r.Owner != nil {
		dst = r.Owner.AppendCanonical(append(dst, `,"owner":`...))
	}
	dst = appendStrings(append(dst, `,"path":`...), r.Path)
	return append(dst, '}')
}

func appendConstraints(dst []byte, c *contract.Constraints) []byte {
	start := len(dst)
	if c.DelegationDepth != nil {
		dst = strconv.AppendInt(append(dst, `,"delegationDepth":`...), *c.DelegationDepth, 10)
	}
	if c.ExpiresAt != nil {
		dst = appendMember(dst, `,"expiresAt":`, c.ExpiresAt.String())
	}
	if c.MaxUses != nil {
		dst = strconv.AppendInt(append(dst, `,"maxUses":`...), *c.MaxUses, 10)
	}
	if c.NotBefore != nil {
		dst = appendMember(dst, `,"notBefore":`, c.NotBefore.String())
	}
	if len(c.Purposes) > 0 {
		dst = appendStrings(append(dst, `,"purposes":`...), c.Purposes)
	}
	if len(dst) == start {
		return append(dst, `{}`...)
	}
	dst[start] = '{' // in place of the first comma
	return append(dst, '}')
}

func appendMember(dst []byte, prefix, s string) []byte {
	return canonical.AppendString(append(dst, prefix...), s)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = canonical.AppendString(dst, s)
	}
	return append(dst, ']')
}
