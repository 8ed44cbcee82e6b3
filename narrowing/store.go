package narrowing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// FieldOwner is the field manager of the entries that the HTTP API writes.
const FieldOwner = "sharedos-narrowing"

// contention is how long an update competes with others for the same Principal: about
// three seconds.
var contention = wait.Backoff{Steps: 40, Duration: 5 * time.Millisecond, Factor: 1.1, Jitter: 0.5}

// errNoPrincipal means that the context's actor is not exactly one Principal.
var errNoPrincipal = errors.New("the actor is no Principal that can act")

// Store is a [kernel.NamespaceStore] in spec.disabledToolNamespaces of Principals.
type Store struct {
	// Reader must not be a cache: a stale version would only conflict.
	Reader client.Reader
	Writer client.Client
	// Cache, if set, is what the next request will be answered from: an update is
	// over when it shows there, or after a second.
	Cache client.Reader
}

var _ kernel.NamespaceStore = Store{}

// UpdateToolNamespaces implements [kernel.NamespaceStore]. The update is applied on
// the version that was read, and begins again where that has changed meanwhile.
// Namespaces that do not exist are passed over.
func (s Store) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) ([]string, error) {
	var enabled []string
	err := retry.RetryOnConflict(contention, func() error {
		principal, namespaces, err := s.read(ctx, &ac)
		if err != nil {
			return err
		}
		mine, err := owned(principal)
		if err != nil {
			return err
		}
		want := apply(mine, namespaces, update)
		if !slices.Equal(mine, want) {
			if principal, err = s.write(ctx, principal, want); err != nil {
				return err
			}
			s.shows(ctx, principal)
		}
		enabled, err = translate.EnabledToolNamespaces(namespaces, principal)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("narrow the tool namespaces of %s: %w", contract.CanonicalActor(ac.Actor), err)
	}
	return enabled, nil
}

func (s Store) read(ctx context.Context, ac *contract.AccessContext) (*v1alpha1.Principal, []v1alpha1.ToolNamespace, error) {
	var principals v1alpha1.PrincipalList
	if err := s.Reader.List(ctx, &principals, client.InNamespace(ac.NamespaceID)); err != nil {
		return nil, nil, fmt.Errorf("list principals: %w", err)
	}
	directory := translate.NewDirectory(principals.Items)
	names := directory.Sharing(ac.Actor)
	if len(names) != 1 {
		return nil, nil, errNoPrincipal
	}
	principal, _ := directory.Principal(names[0])
	var namespaces v1alpha1.ToolNamespaceList
	if err := s.Reader.List(ctx, &namespaces, client.InNamespace(ac.NamespaceID)); err != nil {
		return nil, nil, fmt.Errorf("list tool namespaces: %w", err)
	}
	return principal, namespaces.Items, nil
}

// apply is the update on the entries that are ours, sorted. A name of the kernel may
// be that of several objects.
func apply(mine []string, namespaces []v1alpha1.ToolNamespace, update contract.ToolNamespaceUpdate) []string {
	want := slices.Clone(mine)
	for i := range namespaces {
		n := &namespaces[i]
		id := translate.ToolNamespaceID(n)
		switch {
		case slices.Contains(update.Disable, id) && !slices.Contains(want, n.Name):
			want = append(want, n.Name)
		case slices.Contains(update.Enable, id):
			want = slices.DeleteFunc(want, func(name string) bool { return name == n.Name })
		}
	}
	slices.Sort(want)
	return want
}

// write applies our entries on the version that was read.
func (s Store) write(ctx context.Context, read *v1alpha1.Principal, entries []string) (*v1alpha1.Principal, error) {
	spec := map[string]any{}
	if len(entries) > 0 {
		list := make([]any, len(entries))
		for i, name := range entries {
			list[i] = name
		}
		spec["disabledToolNamespaces"] = list
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Principal",
		"metadata": map[string]any{
			"name": read.Name, "namespace": read.Namespace, "uid": string(read.UID), "resourceVersion": read.ResourceVersion,
		},
		"spec": spec,
	}}
	err := s.Writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldOwner))
	if err != nil {
		return nil, err
	}
	// What is stored now is ours and everybody else's entries together.
	stored, _, err := unstructured.NestedStringSlice(object.Object, "spec", "disabledToolNamespaces")
	if err != nil {
		return nil, fmt.Errorf("read what was stored: %w", err)
	}
	out := read.DeepCopy()
	out.Generation = object.GetGeneration()
	out.Spec.DisabledToolNamespaces = nil
	for _, name := range stored {
		out.Spec.DisabledToolNamespaces = append(out.Spec.DisabledToolNamespaces, v1alpha1.LabelName(name))
	}
	return out, nil
}

// shows waits until the cache has what was written.
func (s Store) shows(ctx context.Context, written *v1alpha1.Principal) {
	if s.Cache == nil {
		return
	}
	seen := &v1alpha1.Principal{}
	// What has not come by then comes later; the update has taken effect.
	_ = wait.PollUntilContextTimeout(ctx, lookAgain, time.Second, true, func(ctx context.Context) (bool, error) {
		err := s.Cache.Get(ctx, client.ObjectKeyFromObject(written), seen)
		return err == nil && seen.Generation >= written.Generation, client.IgnoreNotFound(err)
	})
}

// lookAgain is how often the cache is looked at.
const lookAgain = 2 * time.Millisecond
