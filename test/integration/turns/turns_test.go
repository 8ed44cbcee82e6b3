package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

var (
	list = contract.Object(`{"path":["Work"]}`)
	home = contract.Object(`{"path":["Home"]}`)
)

// refused checks that the status lists these calls, and no others, as refused for want
// of a Grant to list Home.
func refused(t *testing.T, turn *v1alpha1.Turn, ids ...string) {
	t.Helper()
	got := []string{}
	for _, r := range turn.Status.Refusals {
		got = append(got, r.CallID)
		need, err := contract.Unmarshal[contract.CapabilityRequest]([]byte(r.RequiredAuthority))
		if err != nil || r.Tool != "files.list" || r.Code != contract.CodeNoMatchingGrant {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		c := need.Capabilities[0]
		if c.Resource.Namespace != "files" || !slices.Equal(c.Resource.Path, contract.Path{"Home"}) || !slices.Equal(c.Actions, []string{"list"}) ||
			need.Requester != contract.Agent("bot") || need.Purpose != "work" {
			t.Errorf("call %s needed %s", r.CallID, r.RequiredAuthority)
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("the status lists the refused calls %q, want %q", got, ids)
	}
}

func done(output string) bridge.Outcome {
	return bridge.Outcome{Started: true, Initialized: true, Output: []byte(output), OutputSize: int64(len(output))}
}

func TestATurnFromCreationToEnd(t *testing.T) {
	o := start(t)
	w := newWorld(t, "whole")
	w.mayRun()
	w.turn("t")
	turn := w.until("t", hasPod)
	a := turn.Status.Admission
	if a == nil || a.ToolCount != 1 || len(a.Grants) != 2 || a.CatalogHash == "" || a.AuthorityHash == "" || a.PolicyHash == "" {
		t.Fatalf("admission %+v", a)
	}
	s := o.session(w, turn)
	s.Ready(context.Background())
	w.until("t", func(t *v1alpha1.Turn) bool {
		return t.State() == v1alpha1.TurnStateRunning && t.Status.Admission.Deadline != nil
	})
	if r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "1", Tool: "files.list", Arguments: list}); r.Status != contract.StatusSucceeded {
		t.Errorf("an allowed call: %+v %+v", r, r.Error)
	}
	if r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "2", Tool: "files.list", Arguments: home}); r.Status != contract.StatusDenied {
		t.Errorf("a forbidden call: %+v", r)
	}
	must(t, s.Outcome(t.Context(), done("hello")))
	turn = w.ended("t")
	if turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Output == nil || *turn.Status.Output != "hello" {
		t.Errorf("%s, output %v", turn.State(), turn.Status.Output)
	}
	if u := turn.Status.Usage; u.ToolCalls != 2 || u.Denied != 1 {
		t.Errorf("usage %+v", u)
	}
	refused(t, turn, "2")
	if n := turn.Status.Events.Count; n != 6 {
		t.Errorf("%d events, want started, two calls of two each, completed", n)
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}, policy); err != nil {
		t.Errorf("the strict policy is not enforced: %v", err)
	}
	settled(t, w, "t")
}

// settled checks that a finished Turn is left alone. Its finalizer goes first.
func settled(t *testing.T, w *world, name string) {
	t.Helper()
	turn := w.until(name, func(t *v1alpha1.Turn) bool { return len(t.Finalizers) == 0 })
	again := turn.DeepCopy()
	again.Labels = map[string]string{"touched": "yes"}
	must(t, server.client.Patch(t.Context(), again, client.MergeFrom(turn)))
	// The controller sees the change and another Turn after it; then it had its chance.
	w.turn(name + "-after")
	w.cancelled(name + "-after")
	now := &v1alpha1.Turn{}
	must(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(turn), now))
	if now.ResourceVersion != again.ResourceVersion {
		t.Error("a finished Turn was written")
	}
}

// cancelled cancels a Turn and waits for its end.
func (w *world) cancelled(name string) {
	w.t.Helper()
	turn := w.until(name, func(*v1alpha1.Turn) bool { return true })
	before := turn.DeepCopy()
	turn.Spec.Cancel = true
	must(w.t, server.client.Patch(w.t.Context(), turn, client.MergeFrom(before)))
	if got := w.ended(name).State(); got != v1alpha1.TurnStateCancelled {
		w.t.Errorf("turn %s: %s, want Cancelled", name, got)
	}
}

func TestRefusedTurns(t *testing.T) {
	start(t)
	w := newWorld(t, "refused")
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list")
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("twin-1"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, "twin")}})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("twin-2"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, "twin")}})
	soon := func(s *v1alpha1.TurnSpec) { s.StartTimeoutMs = new(int64(1)) }
	for name, c := range map[string]struct {
		change func(*v1alpha1.TurnSpec)
		code   string
		reason v1alpha1.ConditionReason
	}{
		"no-grant":     {func(*v1alpha1.TurnSpec) {}, contract.CodeNoMatchingGrant, v1alpha1.TurnReasonDenied},
		"no-purpose":   {func(s *v1alpha1.TurnSpec) { s.Purpose = "unlisted" }, contract.CodeInvalidRequest, v1alpha1.TurnReasonInvalid},
		"no-json":      {func(s *v1alpha1.TurnSpec) { s.Message = v1alpha1.TurnMessage{Payload: `{"a":`} }, contract.CodeInvalidRequest, v1alpha1.TurnReasonInvalid},
		"a-human":      {func(s *v1alpha1.TurnSpec) { s.Principal = "alice" }, contract.CodeInvalidRequest, v1alpha1.TurnReasonPrincipalNotReady},
		"no-principal": {func(s *v1alpha1.TurnSpec) { s.Principal = "nobody"; soon(s) }, contract.CodeInvalidRequest, v1alpha1.TurnReasonPrincipalNotReady},
		"a-twin":       {func(s *v1alpha1.TurnSpec) { s.Principal = "twin-1"; soon(s) }, contract.CodeInvalidRequest, v1alpha1.TurnReasonPrincipalNotReady},
		"no-harness":   {func(s *v1alpha1.TurnSpec) { s.Harness = "none"; soon(s) }, contract.CodeInvalidRequest, v1alpha1.TurnReasonHarnessNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t, w.namespace}
			w.turn(name, c.change)
			turn := w.ended(name)
			admitted := v1alpha1.FindCondition(turn.Status.Conditions, v1alpha1.TurnConditionAdmitted)
			if turn.State() != v1alpha1.TurnStateDenied || turn.Status.Error.Code != c.code || admitted.Reason != string(c.reason) {
				t.Errorf("%s %s, admitted %s: %s; want %s %s", turn.State(), turn.Status.Error.Code, admitted.Reason, admitted.Message, c.code, c.reason)
			}
		})
	}
	var pods corev1.PodList
	must(t, server.client.List(t.Context(), &pods, client.InNamespace(w.namespace)))
	if len(pods.Items) != 0 {
		t.Errorf("refused turns have %d pods", len(pods.Items))
	}
}

func TestAHarnessThatComesLater(t *testing.T) {
	start(t)
	w := newWorld(t, "later")
	w.mayRun()
	w.turn("t", func(s *v1alpha1.TurnSpec) { s.Harness = "late" })
	w.until("t", func(t *v1alpha1.Turn) bool {
		c := v1alpha1.FindCondition(t.Status.Conditions, v1alpha1.TurnConditionAdmitted)
		return c != nil && c.Reason == string(v1alpha1.TurnReasonHarnessNotReady)
	})
	harness := &v1alpha1.Harness{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "h"}, harness))
	w.create(&v1alpha1.Harness{ObjectMeta: w.meta("late"), Spec: harness.Spec})
	w.until("t", hasPod)
}

func TestPodsThatDoNotMakeIt(t *testing.T) {
	start(t)
	w := newWorld(t, "pods")
	w.mayRun()
	for name, c := range map[string]struct {
		status *corev1.PodStatus // nil deletes the pod
		code   string
	}{
		"evicted": {&corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, "harness_not_started"},
		"killed": {&corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: v1alpha1.ContainerHarness, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
		}}}, "harness_exited_without_outcome"},
		"deleted": {nil, "harness_not_started"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t, w.namespace}
			w.turn(name)
			turn := w.until(name, hasPod)
			if c.status == nil {
				must(t, server.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: w.meta(string(turn.Status.Pod.Name))}, client.GracePeriodSeconds(0)))
			} else {
				w.pod(turn, *c.status)
			}
			if turn = w.ended(name); turn.State() != v1alpha1.TurnStateFailed || turn.Status.Error.Code != c.code {
				t.Errorf("%s %+v, want %s", turn.State(), turn.Status.Error, c.code)
			}
		})
	}
	w.turn("slow", func(s *v1alpha1.TurnSpec) { s.StartTimeoutMs = new(int64(500)) })
	if turn := w.ended("slow"); turn.Status.Error.Code != "harness_not_started" {
		t.Errorf("a pod that never starts: %+v", turn.Status.Error)
	}
}

func TestABoundedGrantIsSpentOnce(t *testing.T) {
	start(t)
	w := newWorld(t, "bounded")
	w.mayRun(func(s *v1alpha1.GrantSpec) { s.Constraints = &v1alpha1.GrantConstraints{MaxUses: new(int64(3))} })
	const turns = 8
	for i := range turns {
		w.turn(fmt.Sprintf("t%d", i))
	}
	admitted, exhausted := 0, 0
	for i := range turns {
		turn := w.until(fmt.Sprintf("t%d", i), func(t *v1alpha1.Turn) bool { return t.IsFinished() || hasPod(t) })
		switch {
		case hasPod(turn):
			admitted++
		case turn.Status.Error.Code == contract.CodeGrantExhausted:
			exhausted++
		default:
			t.Errorf("turn %s: %+v", turn.Name, turn.Status.Error)
		}
	}
	if admitted != 3 || exhausted != turns-3 {
		t.Errorf("%d admitted, %d exhausted; want 3 and %d", admitted, exhausted, turns-3)
	}
}

func TestDeletingEndsAndReleases(t *testing.T) {
	start(t)
	w := newWorld(t, "deleting")
	w.mayRun()
	w.turn("t")
	turn := w.until("t", hasPod)
	must(t, server.client.Delete(t.Context(), turn))
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, client.ObjectKeyFromObject(turn), &v1alpha1.Turn{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("the Turn is stuck: %v", err)
	}
	pod := &corev1.Pod{}
	err = server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}, pod)
	if err == nil && pod.DeletionTimestamp.IsZero() {
		t.Error("the pod of a deleted Turn was left running")
	}
}

// TestAnotherManagerTakesOver stops one manager in the middle of a turn and starts
// another. Of two Grants one changed meanwhile: the catalogue is another, so the
// turn whose tool it was fails, and the other one goes on with its counts.
func TestAnotherManagerTakesOver(t *testing.T) {
	first := start(t)
	w := newWorld(t, "failover")
	w.mayRun()
	w.turn("goes-on")
	turn := w.until("goes-on", hasPod)
	s := first.session(w, turn)
	s.Ready(context.Background())
	s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "1", Tool: "files.list", Arguments: list})
	s.Invoke(t.Context(), bridge.InvokeRequest{CallID: "before", Tool: "files.list", Arguments: home})
	refused(t, w.until("goes-on", func(t *v1alpha1.Turn) bool {
		return t.Status.Usage != nil && t.Status.Usage.ToolCalls == 2 && t.Status.Usage.Denied == 1
	}), "before")
	first.stop()

	second := start(t)
	resumed := second.session(w, turn)
	if !resumed.Resumed() || resumed.Catalog().CatalogHash != string(turn.Status.Admission.CatalogHash) {
		t.Errorf("resumed %t, catalogue %s, want %s", resumed.Resumed(), resumed.Catalog().CatalogHash, turn.Status.Admission.CatalogHash)
	}
	if u := resumed.Execution().Usage(); u.ToolCalls != 2 || u.Denied != 1 {
		t.Errorf("usage %+v, want the two calls", u)
	}
	if r := resumed.Invoke(t.Context(), bridge.InvokeRequest{CallID: "2", Tool: "files.list", Arguments: list}); r.Status != contract.StatusSucceeded {
		t.Errorf("a call after the failover: %+v", r.Error)
	}
	resumed.Invoke(t.Context(), bridge.InvokeRequest{CallID: "after", Tool: "files.list", Arguments: home})
	must(t, resumed.Outcome(t.Context(), done("late")))
	turn = w.ended("goes-on")
	if turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Usage.ToolCalls != 4 {
		t.Errorf("%s, usage %+v", turn.State(), turn.Status.Usage)
	}
	refused(t, turn, "before", "after")

	w.turn("loses")
	turn = w.until("loses", hasPod)
	second.session(w, turn)
	second.stop()
	grant := &v1alpha1.Grant{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "list"}, grant))
	grant.Spec.Capabilities[0].Resource.Path = []v1alpha1.PathSegment{}
	must(t, server.client.Update(t.Context(), grant))
	start(t)
	if turn := w.ended("loses"); turn.Status.Error.Code != contract.CodeCatalogChanged {
		t.Errorf("a turn whose Grant was widened: %+v; it must lose it, and never gain", turn.Status.Error)
	}
}

// TestManyAtOnce: every Turn ends, each with a pod of its own.
func TestManyAtOnce(t *testing.T) {
	o := start(t)
	w := newWorld(t, "many")
	w.mayRun()
	const turns = 40
	began := time.Now()
	for i := range turns {
		w.turn(fmt.Sprintf("t%d", i))
	}
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() {
			turn := w.until(fmt.Sprintf("t%d", i), hasPod)
			s := o.session(w, turn)
			s.Ready(context.Background())
			if err := s.Outcome(t.Context(), done("ok")); err != nil {
				t.Errorf("turn %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range turns {
		if turn := w.ended(fmt.Sprintf("t%d", i)); turn.State() != v1alpha1.TurnStateSucceeded {
			t.Errorf("turn %d: %s %+v", i, turn.State(), turn.Status.Error)
		}
	}
	t.Logf("%d turns in %s", turns, time.Since(began).Round(time.Millisecond))
}
