package snapshot

import (
	"context"
	"fmt"
	"sync"

	"github.com/sharedos-dev/operator/kernel"
)

// Uses counts the uses of bounded Grants in memory, beginning with what their status
// says. It is safe for concurrent use.
type Uses struct {
	snapshot *Snapshot
	mu       sync.Mutex
	spent    map[useKey]int64
}

type useKey struct{ namespace, grant string }

var _ kernel.UsageStore = (*Uses)(nil)

// NewUses counts from the snapshot's own numbers.
func NewUses(s *Snapshot) *Uses { return &Uses{snapshot: s, spent: map[useKey]int64{}} }

// Set says how many uses of a Grant are spent.
func (u *Uses) Set(namespace, grant string, spent int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.spent[useKey{namespace, grant}] = spent
}

// Reset goes back to the snapshot's own numbers.
func (u *Uses) Reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.spent)
}

// Consume implements [kernel.UsageStore].
func (u *Uses) Consume(_ context.Context, use kernel.Use) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	spent, err := u.of(use)
	if err != nil || spent >= use.MaxUses {
		return false, err
	}
	u.spent[useKey{use.NamespaceID, use.GrantID}] = spent + 1
	return true, nil
}

// Remaining implements [kernel.UsageStore].
func (u *Uses) Remaining(_ context.Context, use kernel.Use) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	spent, err := u.of(use)
	return max(use.MaxUses-spent, 0), err
}

// of is how many uses are spent. The caller holds the lock.
func (u *Uses) of(use kernel.Use) (int64, error) {
	if spent, ok := u.spent[useKey{use.NamespaceID, use.GrantID}]; ok {
		return spent, nil
	}
	grants := u.snapshot.Grants(use.NamespaceID)
	for i := range grants {
		if grants[i].Name == use.GrantID {
			return grants[i].Status.Uses, nil
		}
	}
	return 0, fmt.Errorf("there is no grant %q", use.GrantID)
}
