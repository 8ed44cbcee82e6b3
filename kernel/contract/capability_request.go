package contract

import (
	"fmt"

	"github.com/sharedos-dev/operator/kernel/canonical"
)

// DescribeAuthority completes r with the id derived from everything but
// RequestedAt, so that the same ask has the same id. The id is a hash.
func DescribeAuthority(r CapabilityRequest) (CapabilityRequest, error) {
	ask := struct {
		NamespaceID  string       `json:"namespaceId"`
		Requester    Address      `json:"requester"`
		Owner        Address      `json:"owner"`
		Capabilities []Capability `json:"capabilities"`
		Purpose      string       `json:"purpose"`
		Constraints  *Constraints `json:"constraints,omitempty"`
		Metadata     Object       `json:"metadata,omitempty"`
	}{r.NamespaceID, r.Requester, r.Owner, r.Capabilities, r.Purpose, r.Constraints, r.Metadata}
	id, err := canonical.Hash(ask)
	if err != nil {
		return CapabilityRequest{}, fmt.Errorf("derive id of the capability request: %w", err)
	}
	r.ID = id
	return r, nil
}
