package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// clean looks after a finished Turn: its pod goes if it still runs, its finalizer
// goes, and after its time the Turn itself does.
func (r *TurnReconciler) clean(ctx context.Context, t *v1alpha1.Turn) (ctrl.Result, error) {
	again, err := r.endPod(ctx, t)
	if err != nil {
		return ctrl.Result{}, err
	}
	if controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerTurn) {
		released := t.DeepCopy()
		controllerutil.RemoveFinalizer(released, v1alpha1.FinalizerTurn)
		patch := client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, released, patch, client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("release the turn: %w", err)
		}
		return ctrl.Result{RequeueAfter: again}, nil
	}
	ttl, err := r.expire(ctx, t)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(again, ttl)}, nil
}

// soonest is the earlier of two waits, where zero is none.
func soonest(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}

// endPod deletes our pod if it goes on after its turn: at once when the turn did
// not end by the harness's own word, after a while when it did. A pod that somebody
// else brought is theirs.
func (r *TurnReconciler) endPod(ctx context.Context, t *v1alpha1.Turn) (time.Duration, error) {
	if t.Status.Pod == nil || t.Spec.Harness == "" {
		return 0, nil
	}
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(t.Status.Pod.Name)}, pod)
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if string(pod.UID) != string(t.Status.Pod.UID) || podOver(pod) || !pod.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	byItself := t.Status.ExitCode != nil && t.DeletionTimestamp.IsZero()
	if left := t.Status.CompletedAt.Add(windDown).Sub(r.Clock()); byItself && left > 0 {
		return left, nil
	}
	preconditions := client.Preconditions{UID: new(pod.UID)}
	if err := r.Client.Delete(ctx, pod, preconditions); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("end the pod: %w", err)
	}
	return 0, nil
}

// expire deletes a Turn that has been finished for its time.
func (r *TurnReconciler) expire(ctx context.Context, t *v1alpha1.Turn) (time.Duration, error) {
	ttl := t.Spec.TTLSecondsAfterFinished
	if ttl == nil && t.Spec.Harness != "" {
		harness := &v1alpha1.Harness{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(t.Spec.Harness)}, harness); err == nil && harness.Spec.Defaults != nil {
			ttl = harness.Spec.Defaults.TTLSecondsAfterFinished
		}
	}
	if ttl == nil || t.Status.CompletedAt == nil || !t.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	left := t.Status.CompletedAt.Add(time.Duration(*ttl) * time.Second).Sub(r.Clock())
	if left > 0 {
		return left, nil
	}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if err := r.Client.Delete(ctx, t, client.Preconditions{UID: new(t.UID)}, background); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete the finished turn: %w", err)
	}
	return 0, nil
}

// Reasons of the Events on a Turn.
const (
	eventFinished   = "Finished"
	eventCallDenied = "CallDenied"
	actionRun       = "Run"
	// maxAction is the most characters of an Event's action.
	maxAction = 128
)

// announce tells the ending: as an Event on the Turn, and to whoever counts.
func (r *TurnReconciler) announce(t *v1alpha1.Turn) {
	kind, note := corev1.EventTypeNormal, string(v1alpha1.StateOf(t.Status.Outcome))
	if t.Status.Outcome != v1alpha1.TurnSucceeded {
		kind = corev1.EventTypeWarning
	}
	if e := t.Status.Error; e != nil {
		note += ": " + e.Code + ": " + e.Message
	}
	r.Recorder.Eventf(t, nil, kind, eventFinished, actionRun, "%s", translate.Text(note, translate.MaxMessage))
	if r.OnFinished != nil {
		r.OnFinished(t)
	}
}

// OnCall tells each denied call as an Event on its Turn. It is the
// registry's hook; ctx is the process's.
func OnCall(ctx context.Context, recorder events.EventRecorder, reader client.Reader) func(sessions.Key, string, contract.Status, string) {
	return func(key sessions.Key, tool string, status contract.Status, code string) {
		if status != contract.StatusDenied {
			return
		}
		turn := &v1alpha1.Turn{}
		name := types.NamespacedName{Namespace: key.Namespace, Name: key.Turn}
		if err := reader.Get(ctx, name, turn); err != nil {
			return // an Event is a courtesy; the audit log has the record
		}
		recorder.Eventf(turn, nil, corev1.EventTypeWarning, eventCallDenied,
			// Events that differ in their note alone are counted as one.
			translate.Text(code+" "+tool, maxAction), "%s: %s", translate.Text(tool, maxAction), code)
	}
}
