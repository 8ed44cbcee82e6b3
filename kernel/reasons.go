package kernel

import "github.com/sharedos-dev/operator/kernel/contract"

// reason is why one grant did not allow, in the order the conditions are judged.
type reason uint8

const (
	_ reason = iota
	reasonIssuer
	reasonSubject
	reasonNamespace
	reasonWindow
	reasonPurpose
	reasonVerifier
	reasonCapability
	reasonUnverified
	reasonInvalidChain
	reasonCeilingUnavailable
	reasonCeiling
	reasonUsageUnavailable
	reasonExhausted
)

// String is the host-facing name in rejectedGrants.
func (r reason) String() string {
	switch r {
	case reasonIssuer:
		return "issuer"
	case reasonSubject:
		return "subject"
	case reasonNamespace:
		return "namespace"
	case reasonWindow:
		return "window"
	case reasonPurpose:
		return "purpose"
	case reasonVerifier:
		return "verifier"
	case reasonCapability:
		return "capability"
	case reasonUnverified, reasonInvalidChain:
		return "delegation"
	case reasonCeilingUnavailable:
		return contract.CodeHostPolicyUnavailable
	case reasonCeiling:
		return contract.CodeHostPolicyDenied
	case reasonUsageUnavailable:
		return contract.CodeUsageStoreUnavailable
	case reasonExhausted:
		return "exhausted"
	default:
		return "unknown"
	}
}

// code is what the caller learns when this reason is the most severe one.
func (r reason) code() string {
	switch r {
	case reasonUsageUnavailable:
		return contract.CodeUsageStoreUnavailable
	case reasonCeilingUnavailable:
		return contract.CodeHostPolicyUnavailable
	case reasonUnverified:
		return contract.CodeDelegationChainUnverified
	case reasonInvalidChain:
		return contract.CodeDelegationChainInvalid
	case reasonCeiling:
		return contract.CodeHostPolicyDenied
	case reasonExhausted:
		return contract.CodeGrantExhausted
	default:
		return contract.CodeNoMatchingGrant
	}
}

// severity orders the reasons of several grants; the highest is reported. The two
// that end a decision at once never compete.
func (r reason) severity() int {
	switch r {
	case reasonUnverified:
		return 4
	case reasonInvalidChain:
		return 3
	case reasonCeiling:
		return 2
	case reasonExhausted:
		return 1
	default:
		return 0
	}
}

// failsClosed reports whether a code is a denial by infrastructure, not by policy.
func failsClosed(code string) bool {
	switch code {
	case contract.CodeAuthorityUnavailable, contract.CodeUsageStoreUnavailable,
		contract.CodeDelegationChainUnverified, contract.CodeHostPolicyUnavailable:
		return true
	default:
		return false
	}
}
