package kernel

import "github.com/sharedos-dev/operator/kernel/contract"

// capabilitiesWithin reports whether every child capability lies inside one parent
// capability. Where a capability names no owner it means defaultOwner; a nil
// defaultOwner asks for containment in every context, where an unowned capability
// and an owned one never contain each other.
func capabilitiesWithin(children, parents []contract.Capability, defaultOwner *contract.Address) bool {
	for i := range children {
		if !capabilityWithinAny(&children[i], parents, defaultOwner) {
			return false
		}
	}
	return true
}

func capabilityWithinAny(child *contract.Capability, parents []contract.Capability, defaultOwner *contract.Address) bool {
	for i := range parents {
		if capabilityWithin(child, &parents[i], defaultOwner) {
			return true
		}
	}
	return false
}

func capabilityWithin(child, parent *contract.Capability, defaultOwner *contract.Address) bool {
	return child.Resource.Namespace == parent.Resource.Namespace &&
		sameOwner(child.Resource.Owner, parent.Resource.Owner, defaultOwner) &&
		actionsWithin(child.Actions, parent.Actions) &&
		subtreeWithin(child, parent)
}

func sameOwner(a, b, defaultOwner *contract.Address) bool {
	if a == nil {
		a = defaultOwner
	}
	if b == nil {
		b = defaultOwner
	}
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func actionsWithin(child, parent []string) bool {
	if contains(parent, contract.ActionAny) {
		return true
	}
	for _, action := range child {
		if !contains(parent, action) {
			return false
		}
	}
	return true
}

// subtreeWithin reports whether the child's places are all places of the parent.
func subtreeWithin(child, parent *contract.Capability) bool {
	if parent.Scope == contract.ScopeExact {
		return child.Scope == contract.ScopeExact && samePath(child.Resource.Path, parent.Resource.Path)
	}
	return hasPrefix(child.Resource.Path, parent.Resource.Path)
}

func samePath(a, b contract.Path) bool { return len(a) == len(b) && hasPrefix(a, b) }

// hasPrefix compares segment by segment, never as strings.
func hasPrefix(path, prefix contract.Path) bool {
	if len(path) < len(prefix) {
		return false
	}
	for i := range prefix {
		if path[i] != prefix[i] {
			return false
		}
	}
	return true
}

// constraintsWithin reports whether the child's purposes, window and issue are not
// wider than the parent's. A constraint the child omits is a wider one.
func constraintsWithin(child, parent *contract.Grant) bool {
	return purposesWithin(child.Constraints.Purposes, parent.Constraints.Purposes) &&
		windowWithin(&child.Constraints, &parent.Constraints) &&
		!child.IssuedAt.Before(parent.IssuedAt.Time)
}

func purposesWithin(child, parent []string) bool {
	if parent == nil {
		return true
	}
	if child == nil {
		return false
	}
	for _, purpose := range child {
		if !contains(parent, purpose) {
			return false
		}
	}
	return true
}

func windowWithin(child, parent *contract.Constraints) bool {
	if parent.NotBefore != nil && (child.NotBefore == nil || child.NotBefore.Before(parent.NotBefore.Time)) {
		return false
	}
	return parent.ExpiresAt == nil || (child.ExpiresAt != nil && !child.ExpiresAt.After(parent.ExpiresAt.Time))
}
