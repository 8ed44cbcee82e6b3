package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Indexes of the manager's cache. Without them every Turn would look through all
// others of its namespace.
const (
	// IndexExecution finds Turns by their effective execution id.
	IndexExecution = "executionId"
	// indexPending finds Turns that wait to be admitted.
	indexPending = "pending"
	// indexTurn finds pods by the Turn they claim to run.
	indexTurn = "turn"
	// indexForeign finds NetworkPolicies that are no Turn's.
	indexForeign = "foreign"
	// yes is the value of an index that says yes or nothing.
	yes = "yes"
)

// defaultConcurrency is how many Turns are reconciled at once: a Turn mostly waits
// for the API server.
const defaultConcurrency = 16

// SetupWithManager registers the controller.
func (r *TurnReconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Concurrency
	if workers == 0 {
		workers = defaultConcurrency
	}
	if err := indexTurns(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("turn").
		For(&v1alpha1.Turn{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(turnOfPod)).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(r.underPolicy)).
		Watches(&v1alpha1.Harness{}, handler.EnqueueRequestsFromMapFunc(r.pending)).
		Watches(&v1alpha1.Principal{}, handler.EnqueueRequestsFromMapFunc(r.pending)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](r.Changes.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(after(r.Ready, r))
}

func indexTurns(indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&v1alpha1.Turn{}, IndexExecution, func(o client.Object) []string {
			return []string{o.(*v1alpha1.Turn).EffectiveExecutionID()} //nolint:errcheck,forcetypeassert // what is indexed
		}},
		{&v1alpha1.Turn{}, indexPending, func(o client.Object) []string {
			t := o.(*v1alpha1.Turn) //nolint:errcheck,forcetypeassert // what is indexed
			return mark(t.Status.Admission == nil && !t.IsFinished())
		}},
		{&corev1.Pod{}, indexTurn, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.LabelTurn]} }},
		{&networkingv1.NetworkPolicy{}, indexForeign, func(o client.Object) []string { return mark(!ofATurn(o)) }},
	} {
		// The manager's process is what these last as long as.
		if err := indexer.IndexField(context.Background(), index.object, index.name, index.values); err != nil {
			return fmt.Errorf("index %s: %w", index.name, err)
		}
	}
	return nil
}

func mark(is bool) []string {
	if is {
		return []string{yes}
	}
	return nil
}

// ofATurn reports whether a Turn controls the object.
func ofATurn(o client.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == "Turn" && owner.APIVersion == v1alpha1.GroupVersion.String()
}

func turnOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelTurn]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// pending are the Turns that may have waited for the object.
func (r *TurnReconciler) pending(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.TurnList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexPending: yes}); err != nil {
		return nil // the cache is gone, and with it this process
	}
	return requestsFor(&list)
}

// underPolicy are the running Turns whose pods somebody else's policy may select.
func (r *TurnReconciler) underPolicy(ctx context.Context, o client.Object) []reconcile.Request {
	if ofATurn(o) {
		return nil
	}
	var list v1alpha1.TurnList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is gone, and with it this process
	}
	running := v1alpha1.TurnList{}
	for i := range list.Items {
		if t := &list.Items[i]; t.Status.Pod != nil && !t.IsFinished() {
			running.Items = append(running.Items, *t)
		}
	}
	return requestsFor(&running)
}

func requestsFor(list *v1alpha1.TurnList) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
