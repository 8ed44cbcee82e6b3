package kernel

import "github.com/sharedos-dev/operator/kernel/contract"

// unavailable takes over why a tool may not be called. A tool that no grant opens
// needs one that reaches some place below its ceiling; all of them would suffice.
func (inv *invocation) unavailable(why *missing) {
	inv.cause, inv.rejected = why.cause, why.rejected
	if why.ceiling != nil {
		inv.required = describe(&inv.t.ac, *why.ceiling, contract.ScopeDescendants, inv.t.k.opts.Clock())
	}
}

// lacked describes what a denied call needed, or is nil where that was never
// established: the call came no further than a gate before it.
func (inv *invocation) lacked() *contract.CapabilityRequest {
	switch {
	case inv.status != contract.StatusDenied:
		return nil
	case inv.required == nil && inv.needed && inv.t.belongs(&inv.need):
		return describe(&inv.t.ac, inv.need, contract.ScopeExact, inv.t.k.opts.Clock())
	default:
		return inv.required
	}
}
