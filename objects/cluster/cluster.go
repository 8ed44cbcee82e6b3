// Package cluster reads and writes through a client of Kubernetes what package objects
// and its users ask for.
package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/objects"
)

// Reader reads through a client or a cache.
func Reader(from client.Reader) objects.Reader { return reader{from} }

type reader struct{ from client.Reader }

// Get implements [objects.Reader].
func (r reader) Get(ctx context.Context, key types.NamespacedName, into objects.Object) error {
	return r.from.Get(ctx, key, into)
}

// List implements [objects.Reader].
func (r reader) List(ctx context.Context, into objects.List, namespace string) error {
	return r.from.List(ctx, into, client.InNamespace(namespace))
}

// GrantStatus writes the status of Grants through a client. It is an
// authority.GrantStatus.
type GrantStatus struct{ Writer client.SubResourceWriter }

// Patch writes what changed between two states of one Grant's status. It is a Conflict
// of k8s.io/apimachinery/pkg/api/errors if the Grant is no longer as it was before.
func (s GrantStatus) Patch(ctx context.Context, before, after *v1alpha1.Grant) error {
	return s.Writer.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
