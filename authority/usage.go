package authority

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/objects"
)

// Uses is a [kernel.UsageStore] in the status of Grants. A use is one update on
// the version that was read, so that exactly maxUses succeed across any number of
// replicas. Those of one process stand in line for each Grant, because of many that
// update one version at once only one succeeds.
type Uses struct {
	// Reader must not be a cache: a stale version would only conflict.
	Reader objects.Reader
	Writer GrantStatus

	lines lines
}

var _ kernel.UsageStore = (*Uses)(nil)

// GrantStatus writes the status of Grants.
type GrantStatus interface {
	// Patch writes what changed between two states of one Grant's status, on the version
	// of before: if that is no longer the Grant's, the error is a Conflict of
	// k8s.io/apimachinery/pkg/api/errors, and nothing is written.
	Patch(ctx context.Context, before, after *v1alpha1.Grant) error
}

// contention is how long a use competes with other writers of the same Grant, which
// are other processes and the Grant's controller: about three seconds. What has not
// won by then fails closed.
var contention = wait.Backoff{Steps: 40, Duration: 5 * time.Millisecond, Factor: 1.1, Jitter: 0.5}

// Consume implements [kernel.UsageStore].
func (u *Uses) Consume(ctx context.Context, use kernel.Use) (bool, error) {
	leave, err := u.lines.join(ctx, types.NamespacedName{Namespace: use.NamespaceID, Name: use.GrantID})
	if err != nil {
		return false, fmt.Errorf("wait for a use of grant %q: %w", use.GrantID, err)
	}
	defer leave()
	spent := false
	err = onConflict(contention, func() error {
		grant := &v1alpha1.Grant{}
		if err := u.Reader.Get(ctx, types.NamespacedName{Namespace: use.NamespaceID, Name: use.GrantID}, grant); err != nil {
			return err
		}
		if grant.Status.Uses >= use.MaxUses {
			spent = false
			return nil
		}
		before := grant.DeepCopy()
		grant.Status.Uses++
		grant.Status.RemainingUses = new(use.MaxUses - grant.Status.Uses)
		if err := u.Writer.Patch(ctx, before, grant); err != nil {
			return err
		}
		spent = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("spend a use of grant %q: %w", use.GrantID, err)
	}
	return spent, nil
}

// onConflict does it again as long as it conflicts, and returns its last error.
func onConflict(pause wait.Backoff, do func() error) error {
	var last error
	err := wait.ExponentialBackoff(pause, func() (bool, error) {
		last = do()
		if apierrors.IsConflict(last) {
			return false, nil
		}
		return last == nil, last
	})
	if wait.Interrupted(err) {
		return last
	}
	return err
}

// Remaining implements [kernel.UsageStore].
func (u *Uses) Remaining(ctx context.Context, use kernel.Use) (int64, error) {
	grant := &v1alpha1.Grant{}
	if err := u.Reader.Get(ctx, types.NamespacedName{Namespace: use.NamespaceID, Name: use.GrantID}, grant); err != nil {
		return 0, fmt.Errorf("read the uses of grant %q: %w", use.GrantID, err)
	}
	return max(use.MaxUses-grant.Status.Uses, 0), nil
}
