package translate

import (
	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Address returns the contract's form of an address.
func Address(a v1alpha1.Address) contract.Address {
	return contract.Address{Kind: contract.AddressKind(a.Kind), ID: a.ID()}
}

// APIAddress returns the API's form of an address.
func APIAddress(a contract.Address) v1alpha1.Address {
	return v1alpha1.NewAddress(v1alpha1.AddressKind(a.Kind), a.ID)
}
