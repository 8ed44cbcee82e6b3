package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/toolsource"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=toolnamespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=toolnamespaces/status,verbs=get;update;patch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get
//+kubebuilder:rbac:groups="",resources=configmaps,verbs=get

// ToolNamespaceReconciler shows what a ToolNamespace offers and whether its source
// can be used. Its looks at upstream servers are also what keeps their tools known, so
// that a Turn does not wait for them.
type ToolNamespaceReconciler struct {
	Client      client.Client
	Connections *toolsource.Connections
	// Ready, when set, is closed once sources can be reached; none is looked at before.
	Ready <-chan struct{}
}

// Times of looking at sources.
const (
	// probeEvery is how often a source that works is tried.
	probeEvery = time.Minute
	// nudgeAfter is how long a server's news wait: one that sends them without end is
	// asked once a second.
	nudgeAfter = time.Second
	// rewriteAfter is how old lastDiscovered gets when nothing else changed.
	rewriteAfter = 5 * time.Minute
	// atOnce is how many sources are looked at together; one that hangs takes one place
	// for ten seconds, and then waits longer every time. A look is little but waiting, so
	// there are places for many that hang beside those that do not.
	atOnce = 64
)

// SetupWithManager registers the controller.
func (r *ToolNamespaceReconciler) SetupWithManager(mgr ctrl.Manager) error {
	news := &nudges{}
	r.Connections.Changed = news.nudge
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.Connections.Close()
		return nil
	})); err != nil {
		return fmt.Errorf("add the end of connections: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("toolnamespace").
		For(&v1alpha1.ToolNamespace{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.TypedFunc[reconcile.Request](news.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).
		Complete(after(r.Ready, r))
}

// Reconcile looks at one ToolNamespace.
func (r *ToolNamespaceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	n := &v1alpha1.ToolNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, n); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Connections.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := n.DeepCopy()
	look, err := r.look(ctx, n)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := toolsource.Judge(n, &look.Look); err != nil {
		return ctrl.Result{}, err
	}
	n.Status.ObservedGeneration = n.Generation
	keepTime(&before.Status, &n.Status)
	result, err := requeueOnConflict(patchStatus(ctx, r.Client, before, n, before.Status, n.Status))
	if err == nil && result.RequeueAfter == 0 && n.Spec.Source.Builtin == "" {
		result.RequeueAfter = look.again() // nobody says when a server comes or goes
	}
	return result, err
}

// keepTime leaves lastDiscovered as it was when it would be the only change and is
// recent.
func keepTime(before, after *v1alpha1.ToolNamespaceStatus) {
	if before.LastDiscovered == nil || after.LastDiscovered == nil || after.LastDiscovered.Sub(before.LastDiscovered.Time) >= rewriteAfter {
		return
	}
	same := after.DeepCopy()
	same.LastDiscovered = before.LastDiscovered
	if equality.Semantic.DeepEqual(before, same) {
		after.LastDiscovered = before.LastDiscovered
	}
}

// sourceLook is what a look at a source found, and when to look again.
type sourceLook struct {
	toolsource.Look
	// retry is how long to wait after a fault.
	retry time.Duration
}

func (l *sourceLook) again() time.Duration {
	switch {
	case l.Fault == nil:
		return probeEvery
	case l.retry > 0:
		return l.retry
	default:
		return pendingEvery
	}
}

// look asks the source. It returns an error only for what is not the source's fault.
func (r *ToolNamespaceReconciler) look(ctx context.Context, n *v1alpha1.ToolNamespace) (*sourceLook, error) {
	out := &sourceLook{}
	switch {
	case n.Spec.Source.Provider != nil:
		out.Fault = r.Connections.Probe(ctx, n)
	case n.Spec.Source.MCP != nil:
		var found toolsource.Examination
		found, out.Fault = r.Connections.Examine(ctx, n)
		out.Binding, out.At, out.retry = found.Binding, metav1.NewTime(found.At.Truncate(time.Second)), found.Retry
	}
	var others v1alpha1.ToolNamespaceList
	if err := r.Client.List(ctx, &others, client.InNamespace(n.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list tool namespaces: %w", err)
	}
	out.Conflict = toolsource.Conflict(n, others.Items)
	return out, nil
}

// nudges bring the news of upstream servers into the controller's queue.
type nudges struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (n *nudges) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = queue
	return nil
}

func (n *nudges) nudge(name types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queue != nil {
		n.queue.AddAfter(reconcile.Request{NamespacedName: name}, nudgeAfter)
	}
}
