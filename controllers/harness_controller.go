package controllers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/injection"
	"github.com/sharedos-dev/operator/translate"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=harnesses,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=harnesses/status,verbs=get;update;patch

// dryRunEvery is how often a template is tried again that the API server would not
// take for a reason outside of it: a quota, a missing ServiceAccount, the
// namespace's Pod Security level.
const dryRunEvery = time.Minute

// HarnessReconciler says whether a Harness can be used.
type HarnessReconciler struct {
	Client client.Client
	// Sidecar is the present configuration of injected sidecars, which the dry run
	// puts into the pod.
	Sidecar func() (injection.Config, error)
}

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
	condition, again := r.judge(ctx, harness)
	v1alpha1.SetCondition(&harness.Status.Conditions, condition)
	harness.Status.ObservedGeneration = harness.Generation
	result, err := requeueOnConflict(patchStatus(ctx, r.Client, before, harness, before.Status, harness.Status))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = again
	}
	return result, err
}

// judge is the Ready condition, and when to look again; zero is never. A template
// that the API server has judged is not sent to it again until it changes.
func (r *HarnessReconciler) judge(ctx context.Context, h *v1alpha1.Harness) (metav1.Condition, time.Duration) {
	if fault := CheckHarness(h); fault != nil {
		return notUsable(h, fault), 0
	}
	if was := v1alpha1.FindCondition(h.Status.Conditions, v1alpha1.HarnessReady); was != nil && judged(was, h.Generation) {
		return *was, 0
	}
	fault, err := r.dryRun(ctx, h)
	switch {
	case err != nil:
		return v1alpha1.Condition(v1alpha1.HarnessReady, metav1.ConditionUnknown, v1alpha1.HarnessReasonPending,
			translate.Text(err.Error(), translate.MaxMessage), h.Generation), dryRunEvery
	case fault != nil && fault.Reason == v1alpha1.HarnessReasonTemplateForbidden:
		return notUsable(h, fault), dryRunEvery
	case fault != nil:
		return notUsable(h, fault), 0
	}
	return v1alpha1.Condition(v1alpha1.HarnessReady, metav1.ConditionTrue, v1alpha1.HarnessReasonValid,
		"its pods can be made", h.Generation), 0
}

// judged reports whether a dry run has decided about this generation.
func judged(c *metav1.Condition, generation int64) bool {
	decided := c.Reason == string(v1alpha1.HarnessReasonValid) || c.Reason == string(v1alpha1.HarnessReasonTemplateInvalid)
	return decided && c.ObservedGeneration == generation
}

func notUsable(h *v1alpha1.Harness, fault *HarnessFault) metav1.Condition {
	return v1alpha1.Condition(v1alpha1.HarnessReady, metav1.ConditionFalse, fault.Reason, translate.Text(fault.Message, translate.MaxMessage), h.Generation)
}
