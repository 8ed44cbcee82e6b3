package controllers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=grants,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=grants/status,verbs=get;update;patch

// GrantReconciler shows what has become of a Grant. It decides nothing: the kernel
// judges the Grant itself at every turn.
type GrantReconciler struct {
	Client client.Client
	Clock  func() time.Time
}

// SetupWithManager registers the controller. A Grant's standing depends on its
// parties and its ancestors, so their changes look at all of the namespace.
func (r *GrantReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("grant").
		For(&v1alpha1.Grant{}).
		Watches(&v1alpha1.Principal{}, handler.EnqueueRequestsFromMapFunc(r.all)).
		Watches(&v1alpha1.Grant{}, handler.EnqueueRequestsFromMapFunc(r.descendants)).
		Complete(r)
}

func (r *GrantReconciler) all(ctx context.Context, o client.Object) []reconcile.Request {
	return r.those(ctx, o.GetNamespace(), func(*v1alpha1.Grant) bool { return true })
}

func (r *GrantReconciler) descendants(ctx context.Context, o client.Object) []reconcile.Request {
	return r.those(ctx, o.GetNamespace(), func(g *v1alpha1.Grant) bool {
		for _, ancestor := range g.Status.Chain {
			if string(ancestor) == o.GetName() {
				return true
			}
		}
		return string(g.Spec.ParentGrant) == o.GetName()
	})
}

func (r *GrantReconciler) those(ctx context.Context, namespace string, which func(*v1alpha1.Grant) bool) []reconcile.Request {
	var list v1alpha1.GrantList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil // the cache is gone, and with it this process
	}
	var out []reconcile.Request
	for i := range list.Items {
		if which(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile shows one Grant's standing and comes back when time alone changes it.
func (r *GrantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	grant := &v1alpha1.Grant{}
	if err := r.Client.Get(ctx, req.NamespacedName, grant); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var principals v1alpha1.PrincipalList
	if err := r.Client.List(ctx, &principals, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list principals: %w", err)
	}
	var grants v1alpha1.GrantList
	if err := r.Client.List(ctx, &grants, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list grants: %w", err)
	}
	now := r.Clock()
	before := grant.DeepCopy()
	status := &grant.Status
	status.IssuedAt = new(grant.CreationTimestamp)
	if grant.Spec.Revoked && status.RevokedAt == nil {
		status.RevokedAt = new(metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond)))
	}
	if c := grant.Spec.Constraints; c != nil && c.MaxUses != nil {
		status.RemainingUses = new(max(*c.MaxUses-status.Uses, 0))
	} else {
		status.RemainingUses = nil
	}
	chain := ChainOf(grant, grants.Items)
	status.Chain = chain.Names
	condition, next := JudgeGrant(grant, principals.Items, chain, now)
	v1alpha1.SetCondition(&status.Conditions, condition)
	status.ObservedGeneration = grant.Generation
	if err := patchStatus(ctx, r.Client, before, grant, before.Status, grant.Status); err != nil {
		return requeueOnConflict(err)
	}
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(next.Sub(now), time.Second)}, nil
}

// Chain is a Grant's ancestors as they are found.
type Chain struct {
	// Names from the immediate parent up.
	Names []v1alpha1.ObjectName
	// Grants of those names.
	Grants []*v1alpha1.Grant
	// Missing is the ancestor that does not exist.
	Missing string
	// Fault is the kernel's code of a chain that cannot be walked.
	Fault string
}

// ChainOf walks up a Grant's ancestors. It is pure.
func ChainOf(g *v1alpha1.Grant, all []v1alpha1.Grant) Chain {
	byName := make(map[string]*v1alpha1.Grant, len(all))
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	var out Chain
	seen := map[string]bool{g.Name: true}
	for parent := string(g.Spec.ParentGrant); parent != ""; {
		switch {
		case seen[parent]:
			out.Fault = "chain_cycle"
			return out
		case len(out.Names) == kernel.MaxChainLinks:
			out.Fault = "chain_too_long"
			return out
		}
		seen[parent] = true
		found, ok := byName[parent]
		if !ok {
			out.Missing = parent
			return out
		}
		out.Names = append(out.Names, v1alpha1.ObjectName(parent))
		out.Grants = append(out.Grants, found)
		parent = string(found.Spec.ParentGrant)
	}
	return out
}
