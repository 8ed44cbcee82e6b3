package turns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
)

func intOrString(n int32) intstr.IntOrString { return intstr.FromInt32(n) }

func external(s *v1alpha1.TurnSpec) { s.Harness = "" }

// attach plays the bridge of a pod until it is let in, and returns its session.
func (o *operator) attach(w *world, turn *v1alpha1.Turn, pod *corev1.Pod) *sessions.Session {
	w.t.Helper()
	var out *sessions.Session
	err := wait.PollUntilContextTimeout(w.t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		s, ok := o.registry.Get(sessions.Key{Namespace: turn.Namespace, Turn: turn.Name}, string(turn.UID))
		out = s
		return ok && s.Attach(sessions.Pod{Name: pod.Name, UID: string(pod.UID)}) == nil, nil
	})
	if err != nil {
		w.t.Fatalf("pod %s is not let in: %v", pod.Name, err)
	}
	return out
}

func (w *world) bring(name, turn string) *corev1.Pod {
	w.t.Helper()
	pod := podFor(w.meta(name), map[string]string{v1alpha1.LabelTurn: turn})
	w.create(pod)
	return pod
}

// TestAPodSomebodyBrings: label only, no Harness; its outcome is its exit code.
func TestAPodSomebodyBrings(t *testing.T) {
	o := start(t)
	w := newWorld(t, "external")
	w.mayRun()
	for name, c := range map[string]struct {
		exit  corev1.ContainerStateTerminated
		state v1alpha1.ConditionReason
		says  string
	}{
		"good":   {corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed"}, v1alpha1.TurnStateSucceeded, ""},
		"bad":    {corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}, v1alpha1.TurnStateFailed, `"exitCode":3`},
		"killed": {corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, v1alpha1.TurnStateFailed, `"reason":"OOMKilled"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t, w.namespace}
			w.turn(name, external)
			pod := w.bring("pod-"+name, name)
			if !controllers.HasBridge(pod) {
				t.Fatal("the pod has no bridge")
			}
			turn := w.until(name, func(*v1alpha1.Turn) bool { return true })
			s := o.attach(w, turn, pod)
			s.Ready(context.Background())
			turn = w.until(name, hasPod)
			if r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "1", Tool: "files.list", Arguments: list}); r.Status != contract.StatusSucceeded {
				t.Errorf("a call: %+v", r.Error)
			}
			w.pod(turn, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: v1alpha1.ContainerHarness, State: corev1.ContainerState{Terminated: &c.exit},
			}}})
			turn = w.ended(name)
			details := ""
			if turn.Status.Error != nil {
				details = string(turn.Status.Error.Details)
			}
			if turn.State() != c.state || !strings.Contains(details, c.says) {
				t.Errorf("%s, details %s; want %s %s", turn.State(), details, c.state, c.says)
			}
			// The pod is somebody else's: ending the turn does not end it.
			if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || !pod.DeletionTimestamp.IsZero() {
				t.Errorf("the pod was taken away: %v", err)
			}
		})
	}
	t.Run("a second pod", func(t *testing.T) {
		err := server.client.Create(t.Context(), podFor(w.meta("late"), map[string]string{v1alpha1.LabelTurn: "good"}))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("a pod for an ended Turn: %v", err)
		}
	})
	t.Run("without the verb use", func(t *testing.T) {
		w.turn("theirs", external)
		config := rest.CopyConfig(server.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"system:authenticated", "pod-makers"}}
		theirs, err := client.New(config, client.Options{Scheme: server.client.Scheme()})
		must(t, err)
		err = theirs.Create(t.Context(), podFor(w.meta("mallory"), map[string]string{v1alpha1.LabelTurn: "theirs"}))
		if !apierrors.IsForbidden(err) {
			t.Errorf("a pod of somebody who may not use the principal: %v", err)
		}
		w.cancelled("theirs")
	})
}

// TestATurnAndItsPodInOneCommand applies both at once, 200 times: no pod is ever
// there without its bridge, and each gets its turn.
func TestATurnAndItsPodInOneCommand(t *testing.T) {
	o := start(t)
	w := newWorld(t, "together")
	w.mayRun()
	const times = 200
	pods := make([]*corev1.Pod, times)
	for i := range times {
		name := fmt.Sprintf("t%03d", i)
		w.turn(name, external)
		pods[i] = w.bring("pod-"+name, name)
		if !controllers.HasBridge(pods[i]) {
			t.Fatalf("pod %d has no bridge", i)
		}
	}
	for i := range times {
		name := fmt.Sprintf("t%03d", i)
		turn := w.until(name, func(*v1alpha1.Turn) bool { return true })
		s := o.attach(w, turn, pods[i])
		s.Ready(context.Background())
		must(t, s.Outcome(t.Context(), done("ok")))
	}
	for i := range times {
		if turn := w.ended(fmt.Sprintf("t%03d", i)); turn.State() != v1alpha1.TurnStateSucceeded || string(turn.Status.Pod.UID) != string(pods[i].UID) {
			t.Errorf("turn %d: %s %+v", i, turn.State(), turn.Status.Error)
		}
	}
}
