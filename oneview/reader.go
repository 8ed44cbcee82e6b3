package oneview

import (
	"context"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Reader is a [client.Reader] that asks Live. Under a context of [With] each namespace's
// Principals, Grants and ToolNamespaces are listed once, and whoever lists them again
// is given what was found then. Those items are shared: they must not be changed.
// Everything else goes through as it is.
type Reader struct{ client.Reader }

var _ client.Reader = Reader{}

type viewKey struct{}

// With returns a context under which a [Reader] has one view. The view ends with the
// call of end; whoever still lists under the context is told what is there then.
func With(ctx context.Context) (_ context.Context, end func()) {
	v := &view{lists: map[listKey]*answer{}}
	return context.WithValue(ctx, viewKey{}, v), v.end
}

// view is the lists of one piece of work.
type view struct {
	mu    sync.Mutex
	lists map[listKey]*answer
}

type listKey struct {
	kind      reflect.Type
	namespace string
}

type answer struct {
	once  sync.Once
	found reflect.Value
	err   error
}

func viewOf(ctx context.Context) *view {
	v, _ := ctx.Value(viewKey{}).(*view)
	return v
}

func (v *view) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lists = nil
}

// answer is the one for that list, or nil if there is no view or it keeps no such list.
func (v *view) answer(list client.ObjectList, opts []client.ListOption) *answer {
	switch list.(type) {
	case *v1alpha1.PrincipalList, *v1alpha1.GrantList, *v1alpha1.ToolNamespaceList:
	default:
		return nil
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	key := listKey{reflect.TypeOf(list), o.Namespace}
	if o.Namespace = ""; v == nil || key.namespace == "" || o != (client.ListOptions{}) {
		return nil // not all of one namespace
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lists == nil {
		return nil
	}
	if v.lists[key] == nil {
		v.lists[key] = &answer{}
	}
	return v.lists[key]
}

// List implements [client.Reader].
func (r Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	a := viewOf(ctx).answer(list, opts)
	if a == nil {
		return r.Reader.List(ctx, list, opts...)
	}
	a.once.Do(func() {
		found := reflect.New(reflect.TypeOf(list).Elem())
		a.found = found.Elem()
		a.err = r.Reader.List(ctx, found.Interface().(client.ObjectList), opts...) //nolint:errcheck,forcetypeassert // of the list's type
	})
	if a.err == nil {
		reflect.ValueOf(list).Elem().Set(a.found)
	}
	return a.err
}
