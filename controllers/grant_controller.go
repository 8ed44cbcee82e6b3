package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
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

// Indexes of Grants in the manager's cache.
const (
	// indexParty finds Grants by the Principals they name.
	indexParty = "party"
	// indexAncestor finds Grants by their ancestors, as far as they are known.
	indexAncestor = "ancestor"
)

// SetupWithManager registers the controller. A Grant's standing depends on its
// parties and its ancestors, so their changes look at it again. What others wrote
// into a status changes nothing.
func (r *GrantReconciler) SetupWithManager(mgr ctrl.Manager) error {
	for name, values := range map[string]client.IndexerFunc{indexParty: partiesOfGrant, indexAncestor: ancestorsOf} {
		// The manager's process is what these last as long as.
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Grant{}, name, values); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("grant").
		For(&v1alpha1.Grant{}).
		Watches(&v1alpha1.Principal{}, handler.EnqueueRequestsFromMapFunc(r.naming), edited).
		Watches(&v1alpha1.Grant{}, handler.EnqueueRequestsFromMapFunc(r.descendants), edited).
		Complete(r)
}

func partiesOfGrant(o client.Object) []string {
	g := o.(*v1alpha1.Grant) //nolint:errcheck,forcetypeassert // what is indexed
	out := []string{string(g.Spec.Issuer), string(g.Spec.Subject)}
	for i := range g.Spec.Capabilities {
		if owner := string(g.Spec.Capabilities[i].Resource.Owner); owner != "" {
			out = append(out, owner)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ancestorsOf(o client.Object) []string {
	g := o.(*v1alpha1.Grant) //nolint:errcheck,forcetypeassert // what is indexed
	var out []string
	if g.Spec.ParentGrant != "" {
		out = append(out, string(g.Spec.ParentGrant))
	}
	for _, name := range g.Status.Chain {
		out = append(out, string(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// naming are the Grants that name the Principal, or one that shares its address:
// those are disabled together.
func (r *GrantReconciler) naming(ctx context.Context, o client.Object) []reconcile.Request {
	principal, ok := o.(*v1alpha1.Principal)
	if !ok {
		return nil
	}
	var all v1alpha1.PrincipalList
	if err := r.Client.List(ctx, &all, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is gone, and with it this process
	}
	names := []string{principal.Name}
	for i := range all.Items {
		if p := &all.Items[i]; p.Name != principal.Name && p.Spec.Address == principal.Spec.Address {
			names = append(names, p.Name)
		}
	}
	var out []reconcile.Request
	for _, name := range names {
		out = append(out, r.those(ctx, o.GetNamespace(), client.MatchingFields{indexParty: name})...)
	}
	return out
}

func (r *GrantReconciler) descendants(ctx context.Context, o client.Object) []reconcile.Request {
	return r.those(ctx, o.GetNamespace(), client.MatchingFields{indexAncestor: o.GetName()})
}

func (r *GrantReconciler) those(ctx context.Context, namespace string, which client.MatchingFields) []reconcile.Request {
	var list v1alpha1.GrantList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), which, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is gone, and with it this process
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// family is the Grant with its ancestors, as far as they exist.
func (r *GrantReconciler) family(ctx context.Context, g *v1alpha1.Grant) ([]v1alpha1.Grant, error) {
	out := []v1alpha1.Grant{*g}
	seen := map[string]bool{g.Name: true}
	for parent := string(g.Spec.ParentGrant); parent != "" && !seen[parent] && len(out) <= kernel.MaxChainLinks; {
		seen[parent] = true
		found := &v1alpha1.Grant{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: parent}, found)
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get grant %q: %w", parent, err)
		}
		out = append(out, *found)
		parent = string(found.Spec.ParentGrant)
	}
	return out, nil
}

// Reconcile shows one Grant's standing and comes back when time alone changes it.
func (r *GrantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	grant := &v1alpha1.Grant{}
	if err := r.Client.Get(ctx, req.NamespacedName, grant); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var principals v1alpha1.PrincipalList
	if err := r.Client.List(ctx, &principals, client.InNamespace(req.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list principals: %w", err)
	}
	family, err := r.family(ctx, grant)
	if err != nil {
		return ctrl.Result{}, err
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
	chain := ChainOf(grant, family)
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
