package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/sessions"
)

func status(name string, state corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: state}
}

func terminated(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// TestJudgePod: every cause that Kubernetes tells apart has an ending of its own.
func TestJudgePod(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	harness := func(state corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{status(v1alpha1.ContainerHarness, state)}
	}
	spec := corev1.PodSpec{InitContainers: []corev1.Container{
		{Name: v1alpha1.ContainerBridge, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		{Name: "mesh-proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		{Name: "setup"},
	}}
	for name, c := range map[string]struct {
		status  corev1.PodStatus
		code    string
		says    string
		waiting string
		exited  bool
	}{
		"nothing yet": {waiting: "the pod is starting"},
		"unschedulable": {
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes",
			}}},
			waiting: "Unschedulable: 0/1 nodes",
		},
		"image pull": {
			status:  corev1.PodStatus{ContainerStatuses: harness(waiting("ImagePullBackOff", "no such image"))},
			waiting: "ImagePullBackOff: no such image",
		},
		"sidecar image pull": {
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
				status(v1alpha1.ContainerBridge, waiting("ErrImagePull", "")),
			}},
			waiting: "sharedos-bridge: ErrImagePull",
		},
		"sidecar crash": {
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name: v1alpha1.ContainerBridge, State: running, LastTerminationState: terminated(1, "Error"),
			}}},
			waiting: "sharedos-bridge: exited with code 1",
		},
		"init container": {
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{status("setup", terminated(3, "Error"))}},
			code:   sessions.CodeHarnessNotStarted, says: `init container "setup"`,
		},
		"an init container that is started anew": {
			status:  corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{status("mesh-proxy", terminated(1, "Error"))}},
			waiting: "mesh-proxy: exited with code 1",
		},
		"running": {status: corev1.PodStatus{ContainerStatuses: harness(running)}},
		"exit 0":  {status: corev1.PodStatus{ContainerStatuses: harness(terminated(0, "Completed"))}, exited: true},
		"exit 9":  {status: corev1.PodStatus{ContainerStatuses: harness(terminated(9, "Error"))}, code: sessions.CodeHarnessExited, says: "Error"},
		"out of memory": {
			status: corev1.PodStatus{ContainerStatuses: harness(terminated(137, "OOMKilled"))}, code: sessions.CodeHarnessExited, says: "OOMKilled",
		},
		"cannot start": {
			status: corev1.PodStatus{ContainerStatuses: harness(terminated(128, "StartError"))}, code: sessions.CodeHarnessNotStarted, says: "StartError",
		},
		"evicted": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory", ContainerStatuses: harness(running)},
			code:   sessions.CodeHarnessExited, says: "(Evicted): low on memory",
		},
		"evicted before it started": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, code: sessions.CodeHarnessNotStarted, says: "Evicted",
		},
		"node lost": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeLost", ContainerStatuses: harness(running)},
			code:   sessions.CodeHarnessExited, says: "NodeLost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := controllers.JudgePod(&corev1.Pod{Spec: spec, Status: c.status})
			code, message := "", ""
			if got.Failure != nil {
				code, message = got.Failure.Code, got.Failure.Message
			}
			if code != c.code || !strings.Contains(message, c.says) || got.Waiting != c.waiting || got.Exited != c.exited {
				t.Errorf("failure %q %q, waiting %q, exited %t; want %q %q, %q, %t",
					code, message, got.Waiting, got.Exited, c.code, c.says, c.waiting, c.exited)
			}
		})
	}
}
