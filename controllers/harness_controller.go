package controllers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/translate"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=harnesses,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=harnesses/status,verbs=get;update;patch

// HarnessReconciler says whether a Harness can be used.
type HarnessReconciler struct{ Client client.Client }

// SetupWithManager registers the controller.
func (r *HarnessReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("harness").For(&v1alpha1.Harness{}).Complete(r)
}

// Reconcile judges one Harness.
func (r *HarnessReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	harness := &v1alpha1.Harness{}
	if err := r.Client.Get(ctx, req.NamespacedName, harness); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := harness.DeepCopy()
	condition := v1alpha1.Condition(v1alpha1.HarnessReady, metav1.ConditionTrue, v1alpha1.HarnessReasonValid,
		"its pods can be made", harness.Generation)
	if fault := CheckHarness(harness); fault != nil {
		condition = v1alpha1.Condition(v1alpha1.HarnessReady, metav1.ConditionFalse, fault.Reason,
			translate.Text(fault.Message, maxMessage), harness.Generation)
	}
	v1alpha1.SetCondition(&harness.Status.Conditions, condition)
	harness.Status.ObservedGeneration = harness.Generation
	return requeueOnConflict(patchStatus(ctx, r.Client, before, harness, before.Status, harness.Status))
}
