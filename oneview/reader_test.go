package oneview_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/oneview"
)

// world counts how often it was listed, and grows by one item each time.
type world struct {
	client.Reader
	lists atomic.Int64
	err   error
}

func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	n := w.lists.Add(1)
	switch list := list.(type) {
	case *v1alpha1.GrantList:
		list.Items = make([]v1alpha1.Grant, n)
	case *v1alpha1.PrincipalList:
		list.Items = make([]v1alpha1.Principal, n)
	case *v1alpha1.TurnList:
		list.Items = make([]v1alpha1.Turn, n)
	}
	return w.err
}

func grants(ctx context.Context, t *testing.T, r client.Reader, opts ...client.ListOption) int {
	t.Helper()
	var list v1alpha1.GrantList
	if err := r.List(ctx, &list, opts...); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestAListIsReadOnce(t *testing.T) {
	w := &world{}
	r := oneview.Reader{Reader: w}
	ctx, end := oneview.With(t.Context())
	in := client.InNamespace("a")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := grants(ctx, t, r, in); got != 1 {
				t.Errorf("%d items, want those of the first look", got)
			}
		})
	}
	wg.Wait()
	if got := w.lists.Load(); got != 1 {
		t.Errorf("asked %d times", got)
	}
	for name, opts := range map[string][]client.ListOption{
		"another namespace": {client.InNamespace("b")},
		"all namespaces":    nil,
		"a selection":       {in, client.MatchingLabels{"a": "b"}},
		"a page":            {in, client.Limit(1)},
	} {
		if got := grants(ctx, t, r, opts...); got == 1 {
			t.Errorf("%s: given what was found for another question", name)
		}
	}
	var principals v1alpha1.PrincipalList
	if err := r.List(ctx, &principals, in); err != nil || len(principals.Items) == 1 {
		t.Errorf("principals: %d items, %v", len(principals.Items), err)
	}
	if got := grants(ctx, t, r, in); got != 1 {
		t.Errorf("%d items, want those of the first look", got)
	}
	end()
	before := w.lists.Load()
	if got := grants(ctx, t, r, in); int64(got) != before+1 {
		t.Errorf("%d items after the end, want what is there now", got)
	}
}

func TestWithoutAViewEverythingIsAskedAnew(t *testing.T) {
	w := &world{}
	r := oneview.Reader{Reader: w}
	for want := 1; want <= 3; want++ {
		if got := grants(t.Context(), t, r, client.InNamespace("a")); got != want {
			t.Errorf("%d items, want %d", got, want)
		}
	}
	ctx, end := oneview.With(t.Context())
	defer end()
	for want := 4; want <= 5; want++ { // a kind that is not kept
		var turns v1alpha1.TurnList
		if err := r.List(ctx, &turns, client.InNamespace("a")); err != nil || len(turns.Items) != want {
			t.Errorf("%d items, want %d: %v", len(turns.Items), want, err)
		}
	}
}

func TestAnErrorIsEverybodys(t *testing.T) {
	w := &world{err: errors.New("down")}
	ctx, end := oneview.With(t.Context())
	defer end()
	for range 2 {
		var list v1alpha1.GrantList
		if err := (oneview.Reader{Reader: w}).List(ctx, &list, client.InNamespace("a")); !errors.Is(err, w.err) || list.Items != nil {
			t.Errorf("%v with %d items", err, len(list.Items))
		}
	}
}
