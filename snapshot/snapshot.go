package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/objects"
)

// Snapshot is the objects of worlds. It is a [objects.Reader] of the five kinds, and
// must not be changed once it is in use; then it is safe for concurrent use.
type Snapshot struct{ worlds map[string]*world }

type world struct {
	principals []v1alpha1.Principal
	grants     []v1alpha1.Grant
	namespaces []v1alpha1.ToolNamespace
	harnesses  []v1alpha1.Harness
	turns      []v1alpha1.Turn
}

var _ objects.Reader = (*Snapshot)(nil)

// New makes a snapshot. Objects that were never applied have no identity
// yet: they are given a UID that follows from their name, and count as created long
// ago.
func New(of ...objects.Object) *Snapshot {
	s := &Snapshot{worlds: map[string]*world{}}
	for _, object := range of {
		s.add(object)
	}
	return s
}

func (s *Snapshot) add(object objects.Object) {
	w := s.worlds[object.GetNamespace()]
	if w == nil {
		w = &world{}
		s.worlds[object.GetNamespace()] = w
	}
	object, ok := object.DeepCopyObject().(objects.Object)
	if !ok {
		return // every object of the API is one
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID("unapplied-" + plural(object) + "-" + object.GetName()))
	}
	if object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0).UTC()))
	}
	switch o := object.(type) {
	case *v1alpha1.Principal:
		w.principals = append(w.principals, *o)
	case *v1alpha1.Grant:
		w.grants = append(w.grants, *o)
	case *v1alpha1.ToolNamespace:
		w.namespaces = append(w.namespaces, *o)
	case *v1alpha1.Harness:
		w.harnesses = append(w.harnesses, *o)
	case *v1alpha1.Turn:
		w.turns = append(w.turns, *o)
	}
}

// Take lists what decides in one namespace: Principals, Grants and ToolNamespaces.
func Take(ctx context.Context, from objects.Reader, namespace string) (*Snapshot, error) {
	w := &world{}
	var principals v1alpha1.PrincipalList
	var grants v1alpha1.GrantList
	var namespaces v1alpha1.ToolNamespaceList
	for _, list := range []objects.List{&principals, &grants, &namespaces} {
		if err := from.List(ctx, list, namespace); err != nil {
			return nil, fmt.Errorf("list %s: %w", plural(list), err)
		}
	}
	w.principals, w.grants, w.namespaces = principals.Items, grants.Items, namespaces.Items
	return &Snapshot{worlds: map[string]*world{namespace: w}}, nil
}

// plural is the resource of an object or a list.
func plural(of any) string {
	switch of.(type) {
	case *v1alpha1.Principal, *v1alpha1.PrincipalList:
		return "principals"
	case *v1alpha1.Grant, *v1alpha1.GrantList:
		return "grants"
	case *v1alpha1.ToolNamespace, *v1alpha1.ToolNamespaceList:
		return "toolnamespaces"
	case *v1alpha1.Harness, *v1alpha1.HarnessList:
		return "harnesses"
	case *v1alpha1.Turn, *v1alpha1.TurnList:
		return "turns"
	default:
		return fmt.Sprintf("%T", of)
	}
}

// Namespaces are the worlds there are, sorted.
func (s *Snapshot) Namespaces() []string { return slices.Sorted(maps.Keys(s.worlds)) }

func (s *Snapshot) world(namespace string) *world {
	if w := s.worlds[namespace]; w != nil {
		return w
	}
	return &world{}
}

// Grants of a world, which must not be changed.
func (s *Snapshot) Grants(namespace string) []v1alpha1.Grant { return s.world(namespace).grants }

// Principals of a world, which must not be changed.
func (s *Snapshot) Principals(namespace string) []v1alpha1.Principal {
	return s.world(namespace).principals
}

// ToolNamespaces of a world, which must not be changed.
func (s *Snapshot) ToolNamespaces(namespace string) []v1alpha1.ToolNamespace {
	return s.world(namespace).namespaces
}

// Harnesses of a world, which must not be changed.
func (s *Snapshot) Harnesses(namespace string) []v1alpha1.Harness {
	return s.world(namespace).harnesses
}

// Get implements [objects.Reader].
func (s *Snapshot) Get(_ context.Context, key types.NamespacedName, into objects.Object) error {
	w := s.world(key.Namespace)
	found := false
	switch into := into.(type) {
	case *v1alpha1.Principal:
		found = get(w.principals, key.Name, into, (*v1alpha1.Principal).DeepCopyInto)
	case *v1alpha1.Grant:
		found = get(w.grants, key.Name, into, (*v1alpha1.Grant).DeepCopyInto)
	case *v1alpha1.ToolNamespace:
		found = get(w.namespaces, key.Name, into, (*v1alpha1.ToolNamespace).DeepCopyInto)
	case *v1alpha1.Harness:
		found = get(w.harnesses, key.Name, into, (*v1alpha1.Harness).DeepCopyInto)
	case *v1alpha1.Turn:
		found = get(w.turns, key.Name, into, (*v1alpha1.Turn).DeepCopyInto)
	default:
		return fmt.Errorf("a snapshot holds no %T", into)
	}
	if !found {
		return apierrors.NewNotFound(v1alpha1.Resource(plural(into)), key.Name)
	}
	return nil
}

func get[T any, P interface {
	*T
	objects.Object
}](items []T, name string, into P, copyInto func(P, P)) bool {
	for i := range items {
		if item := P(&items[i]); item.GetName() == name {
			copyInto(item, into)
			return true
		}
	}
	return false
}

// List implements [objects.Reader]. What it returns is shared and must not
// be changed.
func (s *Snapshot) List(_ context.Context, into objects.List, namespace string) error {
	w := s.world(namespace)
	switch into := into.(type) {
	case *v1alpha1.PrincipalList:
		into.Items = slices.Clip(w.principals)
	case *v1alpha1.GrantList:
		into.Items = slices.Clip(w.grants)
	case *v1alpha1.ToolNamespaceList:
		into.Items = slices.Clip(w.namespaces)
	case *v1alpha1.HarnessList:
		into.Items = slices.Clip(w.harnesses)
	case *v1alpha1.TurnList:
		into.Items = slices.Clip(w.turns)
	default:
		return fmt.Errorf("a snapshot holds no %T", into)
	}
	return nil
}
