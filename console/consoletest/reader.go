package consoletest

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Reader is a [client.Reader] over objects in memory. It shares them, as a cache
// does that is asked not to copy, and fails for every other kind.
type Reader struct {
	Turns          []v1alpha1.Turn
	Principals     []v1alpha1.Principal
	Grants         []v1alpha1.Grant
	ToolNamespaces []v1alpha1.ToolNamespace
	Harnesses      []v1alpha1.Harness
	// Err, if set, is what every read answers.
	Err error
}

var _ client.Reader = (*Reader)(nil)

// Get implements [client.Reader].
func (r *Reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.Err != nil {
		return r.Err
	}
	switch into := into.(type) {
	case *v1alpha1.Turn:
		return get(r.Turns, key, into, "turns", func(t *v1alpha1.Turn) client.Object { return t })
	case *v1alpha1.Harness:
		return get(r.Harnesses, key, into, "harnesses", func(h *v1alpha1.Harness) client.Object { return h })
	case *v1alpha1.Grant:
		return get(r.Grants, key, into, "grants", func(g *v1alpha1.Grant) client.Object { return g })
	default:
		return fmt.Errorf("the console has no business with a %T", into)
	}
}

// List implements [client.Reader].
func (r *Reader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if r.Err != nil {
		return r.Err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch into := into.(type) {
	case *v1alpha1.TurnList:
		into.Items = in(r.Turns, o.Namespace, func(t *v1alpha1.Turn) string { return t.Namespace })
	case *v1alpha1.PrincipalList:
		into.Items = in(r.Principals, o.Namespace, func(p *v1alpha1.Principal) string { return p.Namespace })
	case *v1alpha1.GrantList:
		into.Items = in(r.Grants, o.Namespace, func(g *v1alpha1.Grant) string { return g.Namespace })
	case *v1alpha1.ToolNamespaceList:
		into.Items = in(r.ToolNamespaces, o.Namespace, func(n *v1alpha1.ToolNamespace) string { return n.Namespace })
	default:
		return fmt.Errorf("the console has no business with a %T", into)
	}
	return nil
}

func get[T any](all []T, key client.ObjectKey, into *T, resource string, object func(*T) client.Object) error {
	for i := range all {
		if o := object(&all[i]); o.GetNamespace() == key.Namespace && o.GetName() == key.Name {
			*into = all[i]
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: resource}, key.Name)
}

func in[T any](all []T, namespace string, of func(*T) string) []T {
	if namespace == "" {
		return slices.Clone(all)
	}
	var out []T
	for i := range all {
		if of(&all[i]) == namespace {
			out = append(out, all[i])
		}
	}
	return out
}
