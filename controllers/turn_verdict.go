package controllers

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
)

// PodVerdict is what a pod says about its turn.
type PodVerdict struct {
	// Waiting says why the harness has not started; empty once it has.
	Waiting string
	// Failure ends the turn.
	Failure *contract.ProtocolError
	// Exited says that the harness container ended with exit code 0.
	Exited bool
}

// JudgePod reads a pod. Every cause that Kubernetes tells apart is told apart. It
// is pure.
func JudgePod(pod *corev1.Pod) PodVerdict {
	harness := containerStatus(pod.Status.ContainerStatuses, v1alpha1.ContainerHarness)
	if harness != nil && harness.State.Terminated != nil {
		return judgeExit(pod, harness.State.Terminated)
	}
	if podOver(pod) {
		// The pod ended without the container's own word: evicted, its node lost, its
		// deadline over.
		return PodVerdict{Failure: harnessFailure(started(harness), podReason(pod), pod.Status.Message, nil)}
	}
	if started(harness) {
		return PodVerdict{}
	}
	if failure := judgeInit(pod); failure != nil {
		return PodVerdict{Failure: failure}
	}
	return PodVerdict{Waiting: waitingReason(pod, harness)}
}

func judgeExit(pod *corev1.Pod, t *corev1.ContainerStateTerminated) PodVerdict {
	if t.ExitCode == 0 && t.Reason != "OOMKilled" {
		return PodVerdict{Exited: true}
	}
	reason := t.Reason
	if pod.Status.Reason != "" {
		reason = pod.Status.Reason
	}
	wasStarted := t.Reason != "StartError" && t.Reason != "ContainerCannotRun"
	return PodVerdict{Failure: harnessFailure(wasStarted, reason, t.Message, &t.ExitCode)}
}

// judgeInit fails a turn one of whose init containers failed for good.
func judgeInit(pod *corev1.Pod) *contract.ProtocolError {
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if s.Name == v1alpha1.ContainerBridge || s.State.Terminated == nil || s.State.Terminated.ExitCode == 0 {
			continue
		}
		return harnessFailure(false, "InitContainerFailed", fmt.Sprintf("init container %q: %s", s.Name, s.State.Terminated.Reason), &s.State.Terminated.ExitCode)
	}
	return nil
}

// waitingReason is the most telling reason why nothing runs yet.
func waitingReason(pod *corev1.Pod, harness *corev1.ContainerStatus) string {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			return s.Name + ": " + w.Reason + text(w.Message)
		}
		if t := s.LastTerminationState.Terminated; s.Name == v1alpha1.ContainerBridge && t != nil {
			return fmt.Sprintf("%s: exited with code %d%s", s.Name, t.ExitCode, text(t.Message))
		}
	}
	if harness != nil && harness.State.Waiting != nil && harness.State.Waiting.Reason != "" {
		return harness.State.Waiting.Reason + text(harness.State.Waiting.Message)
	}
	return "the pod is starting"
}

func text(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// harnessFailure is the error of a harness that ended without its own report.
func harnessFailure(started bool, reason, message string, exitCode *int32) *contract.ProtocolError {
	details := map[string]any{"reason": reason}
	if exitCode != nil {
		details["exitCode"] = *exitCode
	}
	raw, err := json.Marshal(details)
	if err != nil {
		raw = nil // unreachable: a string and a number always encode
	}
	out := &contract.ProtocolError{Code: sessions.CodeHarnessNotStarted, Message: "the harness did not start", Details: raw}
	if started {
		out.Code, out.Message = sessions.CodeHarnessExited, "the harness ended without an outcome"
	}
	out.Message += " (" + reason + ")" + text(message)
	if r := []rune(out.Message); len(r) > maxMessage {
		out.Message = string(r[:maxMessage])
	}
	return out
}

// podGone is the error of a turn whose pod was deleted under it.
func podGone(started bool) contract.ProtocolError {
	return *harnessFailure(started, "PodDeleted", "the pod was deleted", nil)
}

func podReason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return "Pod" + string(pod.Status.Phase)
}

func podOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func started(s *corev1.ContainerStatus) bool {
	return s != nil && (s.State.Running != nil || s.State.Terminated != nil)
}

func containerStatus(all []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
