package controllers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// PodVerdict is what a pod says about its turn.
type PodVerdict struct {
	// Waiting says why the harness has not started, and Reason says so in one word;
	// both are empty once it has.
	Waiting, Reason string
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
	if podOver(pod) || lost(pod) {
		// The pod ended without the container's own word: evicted, its node lost, its
		// deadline over.
		return PodVerdict{Failure: harnessFailure(started(harness), podReason(pod), podMessage(pod), nil)}
	}
	if failure := judgeBridge(pod, started(harness)); failure != nil {
		return PodVerdict{Failure: failure}
	}
	if started(harness) {
		return PodVerdict{}
	}
	if failure := judgeInit(pod); failure != nil {
		return PodVerdict{Failure: failure}
	}
	reason, message := waitingReason(pod, harness)
	return PodVerdict{Reason: reason, Waiting: message}
}

func judgeExit(pod *corev1.Pod, t *corev1.ContainerStateTerminated) PodVerdict {
	if t.ExitCode == 0 && t.Reason != "OOMKilled" {
		return PodVerdict{Exited: true}
	}
	reason := t.Reason
	if over := podReason(pod); over != "PodFailed" && (pod.Status.Reason != "" || disruption(pod) != nil) {
		reason = over
	}
	wasStarted := t.Reason != "StartError" && t.Reason != "ContainerCannotRun"
	return PodVerdict{Failure: harnessFailure(wasStarted, reason, t.Message, &t.ExitCode)}
}

// judgeInit fails a turn one of whose init containers failed for good. A container
// that the kubelet starts anew, as a mesh's proxy, has not: if it never comes up, the
// harness is not running in time.
func judgeInit(pod *corev1.Pod) *contract.ProtocolError {
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if s.State.Terminated == nil || s.State.Terminated.ExitCode == 0 || startedAnew(pod, s.Name) {
			continue
		}
		return harnessFailure(false, "InitContainerFailed", fmt.Sprintf("init container %q: %s", s.Name, s.State.Terminated.Reason), &s.State.Terminated.ExitCode)
	}
	return nil
}

// startedAnew reports whether the kubelet starts that init container anew when it ends.
func startedAnew(pod *corev1.Pod, name string) bool {
	return name == v1alpha1.ContainerBridge || slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy != corev1.ContainerRestartPolicyNever
	})
}

// bridgeRestarts is how often a bridge may be started anew. One restart is a pause;
// a bridge that crashes again and again will never serve the turn.
const bridgeRestarts = 5

// judgeBridge fails a turn whose bridge crashes again and again.
func judgeBridge(pod *corev1.Pod, started bool) *contract.ProtocolError {
	s := containerStatus(pod.Status.InitContainerStatuses, v1alpha1.ContainerBridge)
	if s == nil || s.RestartCount < bridgeRestarts || s.State.Running != nil {
		return nil
	}
	t := s.LastTerminationState.Terminated
	if t == nil {
		t = &corev1.ContainerStateTerminated{}
	}
	return harnessFailure(started, "BridgeCrashed",
		fmt.Sprintf("the bridge was started %d times and ended with code %d (%s)%s", s.RestartCount+1, t.ExitCode, t.Reason, text(t.Message)), nil)
}

// waitingReason is the most telling reason why nothing runs yet, in one word and in
// a sentence.
func waitingReason(pod *corev1.Pod, harness *corev1.ContainerStatus) (reason, message string) {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Reason + ": " + c.Message
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		t, reason := s.State.Terminated, "InitContainerFailed"
		if s.Name == v1alpha1.ContainerBridge {
			t, reason = cmp.Or(t, s.LastTerminationState.Terminated), "BridgeCrashed"
		}
		if t != nil && (t.ExitCode != 0 || s.Name == v1alpha1.ContainerBridge) {
			return reason, fmt.Sprintf("%s: exited with code %d%s", s.Name, t.ExitCode, text(t.Message))
		}
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			return w.Reason, s.Name + ": " + w.Reason + text(w.Message)
		}
	}
	if harness != nil && harness.State.Waiting != nil && harness.State.Waiting.Reason != "" {
		return harness.State.Waiting.Reason, harness.State.Waiting.Reason + text(harness.State.Waiting.Message)
	}
	return "Starting", "the pod is starting"
}

// notInTime is the error of a harness that did not start in time, with the reason
// that it waited for.
func notInTime(reason, message string) *contract.ProtocolError {
	if reason == "" {
		reason = "NotInTime"
	}
	out := harnessFailure(false, reason, message, nil)
	out.Message = cut("the harness was not running in time ("+reason+")"+text(message), translate.MaxMessage)
	return out
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
	out.Message = cut(out.Message, translate.MaxMessage)
	return out
}

// cut shortens a message to n characters.
func cut(message string, n int) string {
	if r := []rune(message); len(r) > n {
		return string(r[:n])
	}
	return message
}

// podGone is the error of a turn whose pod was deleted under it.
func podGone(started bool) contract.ProtocolError {
	return *harnessFailure(started, "PodDeleted", "the pod was deleted", nil)
}

// disruptions are the causes of a disruption in the words of this operator.
var disruptions = map[string]string{
	"DeletionByTaintManager": "NodeLost",
	"DeletionByPodGC":        "NodeLost",
	"PreemptionByScheduler":  "Preempted",
	"EvictionByEvictionAPI":  "Evicted",
	"TerminationByKubelet":   "TerminatedByNode",
}

// disruption is what Kubernetes says about a pod that it ends, or nil.
func disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// lost reports whether the pod is to go because its node is not there: nobody will
// ever say how its containers ended.
func lost(pod *corev1.Pod) bool {
	c := disruption(pod)
	return c != nil && disruptions[c.Reason] == "NodeLost" && !pod.DeletionTimestamp.IsZero()
}

func podReason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	if c := disruption(pod); c != nil {
		if reason, known := disruptions[c.Reason]; known {
			return reason
		}
		return c.Reason
	}
	return "Pod" + string(pod.Status.Phase)
}

func podMessage(pod *corev1.Pod) string {
	if c := disruption(pod); c != nil && pod.Status.Message == "" {
		return c.Message
	}
	return pod.Status.Message
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
