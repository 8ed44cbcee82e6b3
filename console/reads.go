package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// reads is everything that the console reads. What it returns is shared with the
// cache and never changed here, so nothing is copied. An empty world means all.
type reads struct{ reader client.Reader }

// shared reads lists without copying every object out of the cache.
type shared struct{ client.Reader }

// List implements [client.Reader]. Who calls it changes nothing in the list.
func (s shared) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.Reader.List(ctx, list, append(slices.Clone(opts), client.UnsafeDisableDeepCopy)...)
}

func (r reads) list(ctx context.Context, into client.ObjectList, what, world string) error {
	var opts []client.ListOption
	if world != "" {
		opts = append(opts, client.InNamespace(world))
	}
	if err := r.reader.List(ctx, into, opts...); err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}

// turns are those of all worlds, the newest first.
func (r reads) turns(ctx context.Context) ([]*v1alpha1.Turn, error) {
	var list v1alpha1.TurnList
	if err := r.list(ctx, &list, "turns", ""); err != nil {
		return nil, err
	}
	out := make([]*v1alpha1.Turn, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Turn) int {
		return cmp.Or(
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return out, nil
}

func (r reads) turn(ctx context.Context, world, name string) (*v1alpha1.Turn, error) {
	turn := &v1alpha1.Turn{}
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: world, Name: name}, turn)
	if apierrors.IsNotFound(err) {
		return nil, notFound("There is no such Turn. A finished Turn is deleted when its time is up.")
	}
	if err != nil {
		return nil, fmt.Errorf("get turn: %w", err)
	}
	return turn, nil
}

// harness is nil when there is none of that name.
func (r reads) harness(ctx context.Context, world, name string) (*v1alpha1.Harness, error) {
	harness := &v1alpha1.Harness{}
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: world, Name: name}, harness)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // an absent Harness is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("get harness: %w", err)
	}
	return harness, nil
}

func (r reads) principals(ctx context.Context, world string) ([]v1alpha1.Principal, error) {
	var list v1alpha1.PrincipalList
	if err := r.list(ctx, &list, "principals", world); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Principal) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

func (r reads) grants(ctx context.Context, world string) ([]v1alpha1.Grant, error) {
	var list v1alpha1.GrantList
	if err := r.list(ctx, &list, "grants", world); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Grant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

func (r reads) toolNamespaces(ctx context.Context, world string) ([]v1alpha1.ToolNamespace, error) {
	var list v1alpha1.ToolNamespaceList
	err := r.list(ctx, &list, "tool namespaces", world)
	return list.Items, err
}

// selection is what the pages of many Turns begin with: all of them, and the worlds
// there are. A world that is asked for must be one of those.
func (c *console) selection(ctx context.Context, r request) (turns []*v1alpha1.Turn, names []string, err error) {
	if turns, err = c.reads.turns(ctx); err != nil {
		return nil, nil, err
	}
	principals, err := c.reads.principals(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	names = worlds(principals, turns)
	if r.World != "" && !slices.Contains(names, r.World) {
		return nil, nil, noWorld()
	}
	return turns, names, nil
}

// worlds are the namespaces in which somebody exists or something ran.
func worlds(principals []v1alpha1.Principal, turns []*v1alpha1.Turn) []string {
	seen := map[string]bool{}
	for i := range principals {
		seen[principals[i].Namespace] = true
	}
	for _, t := range turns {
		seen[t.Namespace] = true
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
