package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sessions"
)

// runPod makes or binds the turn's pod and follows it.
func (r *TurnReconciler) runPod(ctx context.Context, s *turnScope) (ctrl.Result, error) {
	if s.turn.Status.Pod == nil {
		if s.before.Status.Admission == nil {
			return ctrl.Result{}, nil // admitted just now: stored before anything runs
		}
		if err := r.obtainPod(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	if s.turn.Status.Pod != nil {
		if err := r.followPod(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	if s.ended() {
		return ctrl.Result{}, nil
	}
	return r.heed(ctx, s), nil
}

// heed ends a turn whose pod did not start in time and says when to look again.
// Everything else that can happen wakes the controller by itself.
func (r *TurnReconciler) heed(ctx context.Context, s *turnScope) ctrl.Result {
	bridgeReady := !s.session.State().ReadyAt.IsZero() || s.turn.Status.StartedAt != nil
	if bridgeReady && s.waiting == "" {
		return ctrl.Result{}
	}
	left := s.turn.Status.Admission.At.Add(s.session.Subject().StartTimeout).Sub(r.Clock())
	switch {
	case left > 0 && s.retry:
		return ctrl.Result{RequeueAfter: min(left, pendingEvery)}
	case left > 0:
		return ctrl.Result{RequeueAfter: left}
	}
	s.session.Execution().Fail(ctx, *notInTime(s.waitingFor, s.waiting))
	return ctrl.Result{}
}

// obtainPod creates the Harness's pod, or looks at the one that asks to be bound.
func (r *TurnReconciler) obtainPod(ctx context.Context, s *turnScope) error {
	if s.turn.Spec.Harness == "" {
		return r.bindExternal(ctx, s)
	}
	harness := s.harness
	if harness == nil {
		harness = &v1alpha1.Harness{}
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.turn.Namespace, Name: string(s.turn.Spec.Harness)}, harness); err != nil {
			s.waiting, s.waitingFor, s.retry = fmt.Sprintf("harness %q: %v", s.turn.Spec.Harness, err), "HarnessNotReady", true
			return client.IgnoreNotFound(err)
		}
	}
	if !s.confined {
		if err := r.applyEgress(ctx, s.turn, harness); err != nil {
			return err
		}
	}
	pod := HarnessPod(s.turn, harness)
	err := r.Client.Create(ctx, pod, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if err == nil && !metav1.IsControlledBy(pod, s.turn) {
			s.waiting, s.waitingFor = fmt.Sprintf("a pod %q that is not the Turn's has its name; delete it", pod.Name), "PodNameTaken"
			s.retry = true
			return nil
		}
	}
	switch {
	case apierrors.IsInvalid(err):
		s.session.Execution().Fail(ctx, *harnessFailure(false, "PodInvalid", "the API server refused the harness pod: "+err.Error(), nil))
		return nil
	case err != nil:
		s.waiting, s.waitingFor, s.retry = "the harness pod cannot be created: "+err.Error(), "PodRefused", true
		return nil //nolint:nilerr // looked at again until the start timeout
	}
	s.turn.Status.Pod = &v1alpha1.PodReference{Name: v1alpha1.ObjectName(pod.Name), UID: v1alpha1.UID(pod.UID)}
	if !HasBridge(pod) {
		s.session.Execution().Fail(ctx, *harnessFailure(false, "BridgeMissing",
			"the pod was made without its bridge, so the injection webhook was not asked", nil))
	}
	return nil
}

// bindExternal binds the pod that attached first, if it may be bound.
func (r *TurnReconciler) bindExternal(ctx context.Context, s *turnScope) error {
	candidate := s.session.State().Candidate
	if candidate == nil {
		s.waitingFor = "NoPod"
		s.waiting = "waiting for a pod with the label " + v1alpha1.LabelTurn + ": " + s.turn.Name
		return nil
	}
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.turn.Namespace, Name: candidate.Name}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get pod %q: %w", candidate.Name, err)
	}
	if err != nil || string(pod.UID) != candidate.UID || pod.Labels[v1alpha1.LabelTurn] != s.turn.Name || podOver(pod) || !HasBridge(pod) {
		s.session.Reject(candidate.UID)
		return nil //nolint:nilerr // the pod is gone, and is no candidate any more
	}
	s.turn.Status.Pod = &v1alpha1.PodReference{Name: v1alpha1.ObjectName(pod.Name), UID: v1alpha1.UID(pod.UID)}
	return nil
}

// followPod annotates the bound pod and ends the turn when the pod has.
func (r *TurnReconciler) followPod(ctx context.Context, s *turnScope) error {
	pod := &corev1.Pod{}
	name := types.NamespacedName{Namespace: s.turn.Namespace, Name: string(s.turn.Status.Pod.Name)}
	err := r.Client.Get(ctx, name, pod)
	if apierrors.IsNotFound(err) {
		// The cache may not have seen it yet.
		err = r.Live.Get(ctx, name, pod)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get pod: %w", err)
	}
	if apierrors.IsNotFound(err) || string(pod.UID) != string(s.turn.Status.Pod.UID) {
		s.session.Execution().Fail(ctx, podGone(!s.session.State().ReadyAt.IsZero()))
		return nil
	}
	verdict := JudgePod(pod)
	s.waiting, s.waitingFor = verdict.Waiting, verdict.Reason
	switch {
	case verdict.Failure != nil:
		s.session.Execution().Fail(ctx, *verdict.Failure)
		return nil
	case verdict.Exited && s.turn.Spec.Harness == "":
		r.finishExternal(ctx, s)
		return nil
	}
	own, err := r.restoreEgress(ctx, s.turn)
	if err != nil {
		return err
	}
	if err := r.widened(ctx, s, pod, own); err != nil {
		return err
	}
	return r.annotate(ctx, s, pod)
}

// finishExternal ends a turn whose unwrapped harness exited with code 0.
func (r *TurnReconciler) finishExternal(ctx context.Context, s *turnScope) {
	s.session.Execution().Finish(ctx, sessions.EnvelopeOutcome(bridge.Outcome{
		Started: true, Initialized: s.session.Execution().Usage().ToolCalls > 0 || !s.session.State().ReadyAt.IsZero(),
	}, false))
}

// annotate writes on the pod which turn and which catalogue it runs.
func (r *TurnReconciler) annotate(ctx context.Context, s *turnScope, pod *corev1.Pod) error {
	want := annotationsOf(s.turn)
	same := true
	for key, value := range want {
		same = same && pod.Annotations[key] == value
	}
	if same {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": want, "uid": pod.UID}})
	if err != nil {
		return fmt.Errorf("encode annotations: %w", err)
	}
	if err := r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(FieldOwner)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("annotate pod: %w", err))
	}
	return nil
}

func annotationsOf(t *v1alpha1.Turn) map[string]string {
	return map[string]string{
		v1alpha1.AnnotationExecutionID: t.EffectiveExecutionID(),
		v1alpha1.AnnotationCatalogHash: string(t.Status.Admission.CatalogHash),
	}
}

// podSlack is how much longer than its turn a pod may live, should nobody end it.
const podSlack = 5 * time.Minute

// HarnessPod is the pod of a Turn with a Harness: the Harness's template, its
// command wrapped, its life bounded. Its name follows from the Turn, so that it is
// made at most once. It is pure.
func HarnessPod(t *v1alpha1.Turn, h *v1alpha1.Harness) *corev1.Pod {
	template := h.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: PodName(t), Namespace: t.Namespace,
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{ownerOf(t)},
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[v1alpha1.LabelTurn] = t.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, annotationsOf(t))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.AutomountServiceAccountToken = new(false)
	pod.Spec.EnableServiceLinks = new(false)
	tolerateBriefly(&pod.Spec)
	if pod.Spec.ActiveDeadlineSeconds == nil {
		life := startTimeout(t, h) + subjectOf(t, h).CallTimeout + podSlack
		pod.Spec.ActiveDeadlineSeconds = new(int64(life / time.Second))
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name == v1alpha1.ContainerHarness {
			c.Command = append([]string{bridge.WrapperPath, "run", "--"}, c.Command...)
		}
	}
	return pod
}

// nodeLossSeconds is how long a pod stays on a node that is not there: a turn is
// short, and Kubernetes' own five minutes are longer than most.
const nodeLossSeconds = 30

// tolerateBriefly lets a lost node end the turn soon, unless the template decides.
func tolerateBriefly(spec *corev1.PodSpec) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		decided := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !decided {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(nodeLossSeconds)),
			})
		}
	}
}

// PodName is the name of the pod that is made for a Turn.
func PodName(t *v1alpha1.Turn) string {
	sum := sha256.Sum256([]byte(t.UID))
	return t.Name + "-" + hex.EncodeToString(sum[:])[:6]
}
