package kit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// BoundedGrant is [World.Grant] with a number of uses.
func (w *World) BoundedGrant(ctx context.Context, name, plane string, path []string, uses int64, actions ...string) error {
	grant := w.grant(name, plane, path, actions...)
	grant.Spec.Constraints = &v1alpha1.GrantConstraints{MaxUses: &uses}
	if err := w.Cluster.Client.Create(ctx, grant); err != nil {
		return fmt.Errorf("create grant %s: %w", name, err)
	}
	return nil
}

// Uses is how often the grant was used; -1 when the API server does not say.
func (w *World) Uses(ctx context.Context, name string) int64 {
	grant := &v1alpha1.Grant{}
	if err := w.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name}, grant); err != nil {
		return -1
	}
	return grant.Status.Uses
}

// ExpiringGrant is a Grant, not created yet, that holds until then.
func (w *World) ExpiringGrant(name, plane string, path []string, until time.Time, actions ...string) *v1alpha1.Grant {
	grant := w.grant(name, plane, path, actions...)
	grant.Spec.Constraints = &v1alpha1.GrantConstraints{ExpiresAt: v1alpha1.Timestamp(until.UTC().Format(time.RFC3339))}
	return grant
}
