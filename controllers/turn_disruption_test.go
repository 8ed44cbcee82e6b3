package controllers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/sessions"
)

// TestDisruptions: who took a pod away is told in the operator's words. A pod on a
// node that is not there ends its turn as soon as it is to go; any other has its
// grace to end by itself.
func TestDisruptions(t *testing.T) {
	for cause, c := range map[string]struct {
		says  string
		going bool // what a pod that is being deleted and still runs says
	}{
		"DeletionByTaintManager": {"NodeLost", true},
		"DeletionByPodGC":        {"NodeLost", true},
		"PreemptionByScheduler":  {"Preempted", false},
		"EvictionByEvictionAPI":  {"Evicted", false},
		"TerminationByKubelet":   {"TerminatedByNode", false},
		"SomethingNew":           {"SomethingNew", false},
	} {
		t.Run(cause, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{
				Phase:      corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: cause, Message: "why"}},
				ContainerStatuses: []corev1.ContainerStatus{
					status(v1alpha1.ContainerHarness, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
				},
			}}
			if got := controllers.JudgePod(pod); got.Failure != nil {
				t.Errorf("before it is deleted: %+v", got.Failure)
			}
			pod.DeletionTimestamp = new(metav1.Now())
			if got := controllers.JudgePod(pod); (got.Failure != nil) != c.going {
				t.Errorf("while it is deleted: %+v", got.Failure)
			}
			pod.Status.Phase = corev1.PodFailed
			got := controllers.JudgePod(pod).Failure
			if got == nil || got.Code != sessions.CodeHarnessExited || !strings.Contains(got.Message, "("+c.says+"): why") {
				t.Errorf("afterwards: %+v, want %s", got, c.says)
			}
			pod.Status.ContainerStatuses[0] = status(v1alpha1.ContainerHarness, terminated(137, "Error"))
			if got := controllers.JudgePod(pod).Failure; got == nil || !strings.Contains(got.Message, c.says) || !strings.Contains(string(got.Details), "137") {
				t.Errorf("with the container's word: %+v, want %s and the exit code", got, c.says)
			}
		})
	}
}

// TestNameDisruption: an exit code that a signal explains gets its reason.
func TestNameDisruption(t *testing.T) {
	pod := &corev1.Pod{}
	e := v1alpha1.TurnError{Code: sessions.CodeHarnessExited, Message: "the harness exited with code 143", Details: `{"exitCode":143}`}
	before := e
	controllers.NameDisruption(&e, 143, pod)
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("nobody took the pod away: %s", diff)
	}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "drained",
	}}
	controllers.NameDisruption(&e, 143, pod)
	want := v1alpha1.TurnError{
		Code: sessions.CodeHarnessExited, Message: "the harness exited with code 143 (Evicted): drained",
		Details: `{"exitCode":143,"reason":"Evicted"}`,
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("an evicted pod: %s", diff)
	}
}

// TestBridgeCrashed: a restart is a pause; a bridge that does not stay up ends the turn.
func TestBridgeCrashed(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	back := waiting("CrashLoopBackOff", "")
	for name, c := range map[string]struct {
		restarts int32
		bridge   corev1.ContainerState
		harness  corev1.ContainerState
		code     string
	}{
		"one restart, harness running":   {1, running, running, ""},
		"four, it waits":                 {4, back, running, ""},
		"five, and it runs again":        {5, running, running, ""},
		"five, and it waits":             {5, back, running, sessions.CodeHarnessExited},
		"five, before the harness began": {5, back, waiting("PodInitializing", ""), sessions.CodeHarnessNotStarted},
	} {
		t.Run(name, func(t *testing.T) {
			got := controllers.JudgePod(&corev1.Pod{Status: corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{{
					Name: v1alpha1.ContainerBridge, RestartCount: c.restarts, State: c.bridge, LastTerminationState: terminated(2, "Error"),
				}},
				ContainerStatuses: []corev1.ContainerStatus{status(v1alpha1.ContainerHarness, c.harness)},
			}}).Failure
			switch {
			case c.code == "" && got != nil:
				t.Errorf("%+v, want no failure", got)
			case c.code != "" && (got == nil || got.Code != c.code || !strings.Contains(got.Message, "BridgeCrashed") || !strings.Contains(got.Message, "code 2")):
				t.Errorf("%+v, want %s, BridgeCrashed and the exit code", got, c.code)
			}
		})
	}
}
