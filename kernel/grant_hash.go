package kernel

import (
	"fmt"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// ReferenceTo is the reference by which a turn names the grant it holds. A host
// that stores references by other means restores them with it, from the grants as
// they are now, for [Kernel.ResumeTurn].
func ReferenceTo(g contract.Grant) (GrantRef, error) {
	raw, err := appendGrant(nil, &g)
	if err != nil {
		return GrantRef{}, fmt.Errorf("encode grant %q: %w", g.ID, err)
	}
	return GrantRef{ID: g.ID, Hash: canonical.HashBytes(raw)}, nil
}
