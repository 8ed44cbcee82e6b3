package kernel_test

import (
	"slices"
	"sort"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// naive is a second implementation of the decision, written from the text of the
// specification and sharing nothing with the first: no index, no early exits
// beyond those the text names, every condition spelled out. It is slow and plain
// on purpose.
type naive struct {
	ac     contract.AccessContext
	grants []contract.Grant

	hasStore   bool
	storeFails bool
	spent      map[string]int64

	hasResolver   bool
	resolverFails bool
	ancestors     map[string]contract.Grant

	ceilingDenies map[string]bool
	ceilingFails  map[string]bool
	unverified    map[string]bool
}

type answer struct {
	code, grant, missing string
	cause                string
	causes               map[string]string // the first fault by code
	consumed             bool
	rejected             []audit.RejectedGrant
}

func (n *naive) decide(need contract.CapabilityRequirement, now time.Time, mode kernel.Mode) answer {
	if need.Resource.Owner != nil && *need.Resource.Owner != n.ac.Owner {
		return answer{code: "invalid_request"}
	}
	if need.Validate() != nil {
		return answer{code: "invalid_request"}
	}
	grants := slices.Clone(n.grants)
	sort.Slice(grants, func(i, j int) bool { return grants[i].ID < grants[j].ID })

	out := answer{causes: map[string]string{}}
	seen := map[string]bool{}
	for _, g := range grants {
		reason, code := n.judge(g, need, now, mode, &out)
		if reason == "" {
			out.code, out.grant, out.rejected = "allowed", g.ID, nil
			if g.Constraints.MaxUses == nil {
				out.consumed = false
			}
			return out
		}
		out.rejected = append(out.rejected, audit.RejectedGrant{GrantID: g.ID, Reason: reason})
		seen[code] = true
		if code == "usage_store_unavailable" || code == "host_policy_unavailable" {
			out.code = code
			return out
		}
	}
	out.code = "no_matching_grant"
	for _, code := range []string{"grant_exhausted", "host_policy_denied", "delegation_chain_invalid", "delegation_chain_unverified"} {
		if seen[code] {
			out.code = code
		}
	}
	out.cause = out.causes[out.code]
	return out
}

// chainFault notes the fault of a delegation and returns what it stands for.
func (out *answer) chainFault(fault, code string) (string, string) {
	if _, known := out.causes[code]; !known {
		out.causes[code] = fault
	}
	return "delegation", code
}

// judge returns the first failing condition of one grant and the code it stands
// for, or two empty strings when the grant allows.
func (n *naive) judge(g contract.Grant, need contract.CapabilityRequirement, now time.Time, mode kernel.Mode, out *answer) (reason, code string) {
	const none = "no_matching_grant"
	if g.Issuer != n.ac.Authority {
		return "issuer", none
	}
	if g.Subject != n.ac.Actor {
		return "subject", none
	}
	if g.NamespaceID != n.ac.NamespaceID {
		return "namespace", none
	}
	if !n.inWindow(g, now) {
		return "window", none
	}
	if !n.hasPurpose(g) {
		return "purpose", none
	}
	if n.unverified[g.ID] {
		return "verifier", none
	}
	if !n.hasCapability(g, need, mode) {
		return "capability", none
	}
	if g.ParentGrantID != "" {
		switch fault := n.chain(g, now); fault {
		case "":
		case "resolver_unavailable":
			out.missing = "delegationResolver"
			return out.chainFault(fault, "delegation_chain_unverified")
		case "parent_not_found", "resolver_failed":
			return out.chainFault(fault, "delegation_chain_unverified")
		default:
			return out.chainFault(fault, "delegation_chain_invalid")
		}
	}
	if n.ceilingFails[g.ID] {
		return "host_policy_unavailable", "host_policy_unavailable"
	}
	if n.ceilingDenies[g.ID] {
		return "host_policy_denied", "host_policy_denied"
	}
	if g.Constraints.MaxUses == nil {
		return "", ""
	}
	if !n.hasStore {
		out.missing = "usageStore"
		return "usage_store_unavailable", "usage_store_unavailable"
	}
	if n.storeFails {
		return "usage_store_unavailable", "usage_store_unavailable"
	}
	if n.spent[g.ID] >= *g.Constraints.MaxUses {
		return "exhausted", "grant_exhausted"
	}
	if mode == kernel.ModeConsume {
		out.consumed = true
	}
	return "", ""
}

func (n *naive) inWindow(g contract.Grant, now time.Time) bool {
	admittedAt := n.ac.Now.Time
	if g.IssuedAt.Time.Compare(admittedAt) > 0 {
		return false
	}
	if g.Constraints.NotBefore != nil && g.Constraints.NotBefore.Time.Compare(admittedAt) > 0 {
		return false
	}
	if g.RevokedAt != nil && g.RevokedAt.Time.Compare(admittedAt) <= 0 {
		return false
	}
	if g.Constraints.ExpiresAt != nil {
		expires := g.Constraints.ExpiresAt.Time
		if expires.Compare(admittedAt) <= 0 || expires.Compare(now) <= 0 {
			return false
		}
	}
	return true
}

func (n *naive) hasPurpose(g contract.Grant) bool {
	return len(g.Constraints.Purposes) == 0 || slices.Contains(g.Constraints.Purposes, n.ac.Purpose)
}

func (n *naive) hasCapability(g contract.Grant, need contract.CapabilityRequirement, mode kernel.Mode) bool {
	for _, c := range g.Capabilities {
		owner := n.ac.Owner
		if c.Resource.Owner != nil {
			owner = *c.Resource.Owner
		}
		if c.Resource.Namespace != need.Resource.Namespace || owner != n.ac.Owner {
			continue
		}
		if !slices.Contains(c.Actions, need.Action) && !slices.Contains(c.Actions, "*") {
			continue
		}
		covers := covers(c.Scope, c.Resource.Path, need.Resource.Path)
		if mode == kernel.ModeDiscover {
			covers = covers || below(c.Resource.Path, need.Resource.Path)
		}
		if covers {
			return true
		}
	}
	return false
}

func covers(scope contract.Scope, granted, asked contract.Path) bool {
	if scope == contract.ScopeExact {
		return slices.Equal(granted, asked)
	}
	return below(asked, granted)
}

// below reports whether path is top or under it.
func below(path, top contract.Path) bool {
	return len(path) >= len(top) && slices.Equal(path[:len(top)], top)
}

// chain returns the first fault between a grant and its ancestors.
func (n *naive) chain(g contract.Grant, now time.Time) string {
	if !n.hasResolver {
		return "resolver_unavailable"
	}
	visited := []string{g.ID}
	child := g
	for child.ParentGrantID != "" {
		if slices.Contains(visited, child.ParentGrantID) {
			return "chain_cycle"
		}
		if len(visited) > 16 {
			return "chain_too_long"
		}
		if n.resolverFails {
			return "resolver_failed"
		}
		parent, ok := n.ancestors[child.ParentGrantID]
		if !ok {
			return "parent_not_found"
		}
		if parent.ID != child.ParentGrantID || parent.Validate() != nil {
			return "resolver_failed"
		}
		if fault := n.link(child, parent, now); fault != "" {
			return fault
		}
		visited = append(visited, parent.ID)
		child = parent
	}
	return ""
}

func (n *naive) link(child, parent contract.Grant, now time.Time) string {
	if parent.NamespaceID != child.NamespaceID {
		return "namespace_mismatch"
	}
	if child.Issuer != parent.Subject {
		return "issuer_not_parent_subject"
	}
	if !n.inWindow(parent, now) || !n.hasPurpose(parent) {
		return "parent_inactive"
	}
	var parentDepth, childDepth int64
	if parent.Constraints.DelegationDepth != nil {
		parentDepth = *parent.Constraints.DelegationDepth
	}
	if child.Constraints.DelegationDepth != nil {
		childDepth = *child.Constraints.DelegationDepth
	}
	if parentDepth < 1 {
		return "delegation_not_permitted"
	}
	if childDepth > parentDepth-1 {
		return "delegation_depth_exceeded"
	}
	if parent.Constraints.MaxUses != nil {
		return "bounded_parent_not_delegable"
	}
	for _, c := range child.Capabilities {
		if !slices.ContainsFunc(parent.Capabilities, func(p contract.Capability) bool { return n.inside(c, p) }) {
			return "capability_widened"
		}
	}
	c, p := child.Constraints, parent.Constraints
	if p.Purposes != nil && (c.Purposes == nil || slices.ContainsFunc(c.Purposes, func(s string) bool { return !slices.Contains(p.Purposes, s) })) {
		return "constraints_widened"
	}
	if p.NotBefore != nil && (c.NotBefore == nil || c.NotBefore.Time.Compare(p.NotBefore.Time) < 0) {
		return "constraints_widened"
	}
	if p.ExpiresAt != nil && (c.ExpiresAt == nil || c.ExpiresAt.Time.Compare(p.ExpiresAt.Time) > 0) {
		return "constraints_widened"
	}
	if child.IssuedAt.Time.Compare(parent.IssuedAt.Time) < 0 {
		return "constraints_widened"
	}
	return ""
}

func (n *naive) inside(child, parent contract.Capability) bool {
	childOwner, parentOwner := n.ac.Owner, n.ac.Owner
	if child.Resource.Owner != nil {
		childOwner = *child.Resource.Owner
	}
	if parent.Resource.Owner != nil {
		parentOwner = *parent.Resource.Owner
	}
	if child.Resource.Namespace != parent.Resource.Namespace || childOwner != parentOwner {
		return false
	}
	for _, action := range child.Actions {
		if !slices.Contains(parent.Actions, action) && !slices.Contains(parent.Actions, "*") {
			return false
		}
	}
	if parent.Scope == contract.ScopeExact {
		return child.Scope == contract.ScopeExact && slices.Equal(child.Resource.Path, parent.Resource.Path)
	}
	return below(child.Resource.Path, parent.Resource.Path)
}
