package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/translate"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=principals,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=principals/status,verbs=get;update;patch

// PrincipalReconciler says whether a Principal can act, and which of several that
// claim one address or identity are disabled: all of them.
type PrincipalReconciler struct{ Client client.Client }

// SetupWithManager registers the controller. A Principal's standing depends on its
// neighbours, so each change looks at all of the namespace.
func (r *PrincipalReconciler) SetupWithManager(mgr ctrl.Manager) error {
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("principal").
		For(&v1alpha1.Principal{}).
		Watches(&v1alpha1.Principal{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), edited).
		Watches(&v1alpha1.Harness{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), edited).
		Complete(r)
}

func (r *PrincipalReconciler) neighbours(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.PrincipalList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is gone, and with it this process
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile judges one Principal.
func (r *PrincipalReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	principal := &v1alpha1.Principal{}
	if err := r.Client.Get(ctx, req.NamespacedName, principal); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list v1alpha1.PrincipalList
	if err := r.Client.List(ctx, &list, client.InNamespace(req.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list principals: %w", err)
	}
	harnessExists := true
	if name := principal.Spec.Harness; name != "" {
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: string(name)}, &v1alpha1.Harness{})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("get harness: %w", err)
		}
		harnessExists = err == nil
	}
	before := principal.DeepCopy()
	v1alpha1.SetCondition(&principal.Status.Conditions, JudgePrincipal(principal, list.Items, harnessExists))
	principal.Status.ObservedGeneration = principal.Generation
	return requeueOnConflict(patchStatus(ctx, r.Client, before, principal, before.Status, principal.Status))
}

// JudgePrincipal is the Ready condition of a Principal among all of its namespace.
// It is pure.
func JudgePrincipal(p *v1alpha1.Principal, all []v1alpha1.Principal, harnessExists bool) metav1.Condition {
	no := func(reason v1alpha1.ConditionReason, format string, args ...any) metav1.Condition {
		return v1alpha1.Condition(v1alpha1.PrincipalReady, metav1.ConditionFalse, reason,
			translate.Text(fmt.Sprintf(format, args...), translate.MaxMessage), p.Generation)
	}
	directory := translate.NewDirectory(all)
	_, err := directory.Identity(p.Name)
	switch {
	case len(directory.Sharing(translate.Address(p.Spec.Address))) > 1:
		return no(v1alpha1.PrincipalReasonDuplicateAddress, "spec.address: shared by %s; all of them are disabled until one is left",
			strings.Join(directory.Sharing(translate.Address(p.Spec.Address)), ", "))
	case err != nil && errors.Is(err, translate.ErrPrincipalNotFound) && strings.HasPrefix(err.Error(), "spec.owner"):
		return no(v1alpha1.PrincipalReasonOwnerNotFound, "spec.owner: there is no Principal %q", p.Spec.Owner)
	case err != nil && errors.Is(err, translate.ErrPrincipalNotFound):
		return no(v1alpha1.PrincipalReasonAuthorityNotFound, "spec.authority: there is no Principal %q", p.Spec.Authority)
	case err != nil:
		return no(v1alpha1.PrincipalReasonDuplicateAddress, "%s", err.Error())
	case !harnessExists:
		return no(v1alpha1.PrincipalReasonHarnessNotFound, "spec.harness: there is no Harness %q", p.Spec.Harness)
	}
	if others := sharingIdentity(p, all); len(others) > 0 {
		return no(v1alpha1.PrincipalReasonDuplicateIdentity, "spec.identities: also claimed by %s; nobody is known by it until one is left",
			strings.Join(others, ", "))
	}
	return v1alpha1.Condition(v1alpha1.PrincipalReady, metav1.ConditionTrue, v1alpha1.PrincipalReasonResolved,
		"it can act", p.Generation)
}

// sharingIdentity names the other Principals that claim an identity of p.
func sharingIdentity(p *v1alpha1.Principal, all []v1alpha1.Principal) []string {
	mine := translate.Usernames(p)
	var out []string
	for i := range all {
		if all[i].Name == p.Name {
			continue
		}
		if slices.ContainsFunc(translate.Usernames(&all[i]), func(k string) bool { return slices.Contains(mine, k) }) {
			out = append(out, all[i].Name)
		}
	}
	slices.Sort(out)
	return out
}
