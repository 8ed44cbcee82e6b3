package v1alpha1

// The condition type of a Grant.
const (
	// GrantReady says whether the grant can be used now. Only a condition that is
	// True for the current generation means so; the kernel decides again at every use.
	GrantReady ConditionType = "Ready"
)

// Reasons of [GrantReady] when it is True.
const (
	// GrantReasonActive means that the grant is complete, inside its window, not
	// revoked and not spent, and that its chain holds.
	GrantReasonActive ConditionReason = "Active"
)

// Reasons of [GrantReady] when it is False.
const (
	// GrantReasonPrincipalNotFound means that issuer, subject or the owner of a
	// resource names no Principal that is Ready.
	GrantReasonPrincipalNotFound ConditionReason = "PrincipalNotFound"

	// GrantReasonParentNotFound means that parentGrant, or one of its ancestors,
	// names no Grant.
	GrantReasonParentNotFound ConditionReason = "ParentNotFound"

	// GrantReasonDelegationInvalid means that a link of the chain does not hold.
	// The message begins with the code that says which rule was broken, for
	// example capability_widened.
	GrantReasonDelegationInvalid ConditionReason = "DelegationInvalid"

	// GrantReasonExpired means that constraints.expiresAt has passed.
	GrantReasonExpired ConditionReason = "Expired"

	// GrantReasonNotYetActive means that constraints.notBefore lies ahead.
	GrantReasonNotYetActive ConditionReason = "NotYetActive"

	// GrantReasonRevoked means that revoked is true.
	GrantReasonRevoked ConditionReason = "Revoked"

	// GrantReasonExhausted means that constraints.maxUses operations were allowed.
	GrantReasonExhausted ConditionReason = "Exhausted"
)

// Reasons of [GrantReady] when it is Unknown.
const (
	// GrantReasonPending means that the Grant was not examined yet.
	GrantReasonPending ConditionReason = "Pending"
)
