package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// signalled is the highest exit code that no signal explains.
const signalled = 128

// nameDisruption adds to an ending by a signal who took the pod away: a harness in a
// pod that is evicted reports its exit code, and cannot know why it was ended.
func (r *TurnReconciler) nameDisruption(ctx context.Context, s *turnScope) error {
	status := &s.turn.Status
	if status.Pod == nil || status.Error == nil || status.Error.Code != sessions.CodeHarnessExited ||
		status.ExitCode == nil || *status.ExitCode <= signalled {
		return nil
	}
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.turn.Namespace, Name: string(status.Pod.Name)}, pod)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the pod that was ended: %w", err)
	}
	if err == nil && string(pod.UID) == string(status.Pod.UID) {
		NameDisruption(status.Error, *status.ExitCode, pod)
	}
	return nil
}

// NameDisruption adds to the error of a harness that a signal ended the reason why
// Kubernetes ends its pod, if it says one. The code stays. It is pure.
func NameDisruption(e *v1alpha1.TurnError, exitCode int32, pod *corev1.Pod) {
	if disruption(pod) == nil {
		return
	}
	reason := podReason(pod)
	raw, err := json.Marshal(map[string]any{"exitCode": exitCode, "reason": reason})
	if err != nil {
		return // unreachable: a number and a string always encode
	}
	e.Message = cut(e.Message+" ("+reason+")"+text(podMessage(pod)), translate.MaxMessage)
	e.Details = v1alpha1.JSONText(raw)
}
