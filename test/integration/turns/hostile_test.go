package turns

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TestAMalformedHarnessHurtsOnlyItself: the API server does not look into a
// template, and one that cannot be decoded must not blind the manager.
func TestAMalformedHarnessHurtsOnlyItself(t *testing.T) {
	w := newWorld(t, "malformed")
	w.mayRun()
	bad := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(`{"apiVersion":"sharedos.dev/v1alpha1","kind":"Harness","metadata":{"name":"bad","namespace":"`+w.namespace+`"},
		"spec":{"type":"custom","template":{"metadata":{"annotations":{"a":true}}}}}`), &bad.Object))
	w.create(bad)
	t.Cleanup(func() { _ = server.client.Delete(context.Background(), bad) })
	start(t)
	w.turn("good")
	w.until("good", hasPod)
	w.turn("bad", func(s *v1alpha1.TurnSpec) { s.Harness, s.StartTimeoutMs = "bad", new(int64(500)) })
	if turn := w.ended("bad"); turn.State() != v1alpha1.TurnStateDenied || !strings.Contains(turn.Status.Error.Message, "spec.template") {
		t.Errorf("%s %+v", turn.State(), turn.Status.Error)
	}
	harness := &v1alpha1.Harness{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "bad"}, harness)
		return len(harness.Status.Conditions) > 0, err
	})
	must(t, err)
	if c := harness.Status.Conditions[0]; c.Reason != string(v1alpha1.HarnessReasonTemplateInvalid) {
		t.Errorf("condition %+v", c)
	}
}

// TestAnExecutionIDIsNotTakenOver: a Turn that claims a running turn's id gets
// nothing, and the running one goes on.
func TestAnExecutionIDIsNotTakenOver(t *testing.T) {
	o := start(t)
	w := newWorld(t, "takeover")
	w.mayRun()
	w.turn("victim")
	victim := w.until("victim", hasPod)
	s := o.session(w, victim)
	s.Ready(context.Background())
	w.turn("thief", func(s *v1alpha1.TurnSpec) { s.ExecutionID = v1alpha1.Identifier(victim.UID) })
	if thief := w.ended("thief"); thief.State() != v1alpha1.TurnStateDenied || thief.Status.Error.Code != contract.CodeInvalidRequest {
		t.Errorf("the thief: %s %+v", thief.State(), thief.Status.Error)
	}
	if found, _ := o.registry.ByExecution(t.Context(), w.namespace, string(victim.UID)); found != s {
		t.Error("the id leads elsewhere")
	}
	if r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "1", Tool: "files.list", Arguments: list}); r.Status != contract.StatusSucceeded {
		t.Errorf("the victim's call: %+v", r.Error)
	}
	must(t, s.Outcome(t.Context(), done("mine")))
	if got := w.ended("victim"); got.State() != v1alpha1.TurnStateSucceeded {
		t.Errorf("the victim: %s %+v", got.State(), got.Status.Error)
	}
}

// TestAHarnessThatNeverRuns although its bridge does: the image cannot be pulled.
func TestAHarnessThatNeverRuns(t *testing.T) {
	o := start(t)
	w := newWorld(t, "unpulled")
	w.mayRun()
	w.turn("t", func(s *v1alpha1.TurnSpec) { s.StartTimeoutMs = new(int64(2000)) })
	turn := w.until("t", hasPod)
	w.pod(turn, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: v1alpha1.ContainerHarness, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}})
	o.session(w, turn).Ready(context.Background())
	turn = w.ended("t")
	if turn.Status.Error.Code != "harness_not_started" || !strings.Contains(turn.Status.Error.Message, "ImagePullBackOff: no such image") {
		t.Errorf("%s %+v", turn.State(), turn.Status.Error)
	}
}

// TestTheNetworkPolicyIsPutBack when somebody deletes or opens it.
func TestTheNetworkPolicyIsPutBack(t *testing.T) {
	start(t)
	w := newWorld(t, "policy")
	w.mayRun()
	w.turn("t")
	turn := w.until("t", hasPod)
	name := types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}
	made := &networkingv1.NetworkPolicy{}
	must(t, server.client.Get(t.Context(), name, made))
	back := func(what string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			now := &networkingv1.NetworkPolicy{}
			err := server.client.Get(ctx, name, now)
			return err == nil && len(now.Spec.Egress) == len(made.Spec.Egress), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Errorf("%s: not put back: %v", what, err)
		}
	}
	must(t, server.client.Delete(t.Context(), made.DeepCopy()))
	back("deleted")
	open := &networkingv1.NetworkPolicy{}
	must(t, server.client.Get(t.Context(), name, open))
	open.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	must(t, server.client.Update(t.Context(), open))
	back("opened")
}
