package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run creates the Turn, waits for its end and reads its report.
func run(t *testing.T, w *kit.World, name string, script kit.Script) (*v1alpha1.Turn, kit.Report) {
	t.Helper()
	_, err := w.Turn(t.Context(), name, script)
	must(t, err)
	turn, err := w.Finish(t.Context(), name)
	must(t, err)
	if turn.Status.Outcome != v1alpha1.TurnSucceeded {
		t.Fatalf("turn %s: outcome %q, want succeeded: %+v", name, turn.Status.Outcome, turn.Status.Error)
	}
	report, err := kit.ReportOf(turn)
	must(t, err)
	return turn, report
}

func TestAllowedForbiddenAndAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allowed")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read", "list"))
	turn, report := run(t, w, "t", kit.Script{Calls: []kit.Call{
		kit.Read("Work", "atlas", "status.md"),
		kit.Read("Work", "hr", "salaries.md"),
		{Tool: "files.grep", Arguments: map[string]any{"path": []string{"Work", "atlas"}, "pattern": "ships"}},
		kit.Read("Work", "atlas", "risks.md"),
	}})

	if want := []string{"files.list", "files.read"}; !slices.Equal(report.Tools, want) {
		t.Errorf("tools/list: %v, want %v", report.Tools, want)
	}
	allowed, forbidden, absent, again := report.Calls[0], report.Calls[1], report.Calls[2], report.Calls[3]
	if allowed.IsError || !strings.Contains(allowed.Text, "2027-02-15") {
		t.Errorf("the granted file: %+v", allowed)
	}
	if !forbidden.IsError || forbidden.Status != "denied" || forbidden.Code != "no_matching_grant" {
		t.Errorf("the forbidden file: %+v", forbidden)
	}
	if strings.Contains(forbidden.Text, "assistants") {
		t.Errorf("the forbidden file's content came through: %s", forbidden.Text)
	}
	if !absent.IsError || absent.Status != "denied" || absent.Code != "tool_unavailable" {
		t.Errorf("the tool without a grant: %+v", absent)
	}
	if again.IsError {
		t.Errorf("a denial ended the session: %+v", again)
	}
	if u := turn.Status.Usage; u == nil || u.ToolCalls != 4 || u.Denied != 2 {
		t.Errorf("usage: %+v, want 4 calls, 2 denied", u)
	}
	if turn.Status.ExitCode == nil || *turn.Status.ExitCode != 0 {
		t.Errorf("exit code: %v, want 0", turn.Status.ExitCode)
	}
	t.Logf("created to running: %s", startDelay(t, w, turn))
	podCompletes(t, w, turn)
}

// startDelay is how long it took from the Turn's creation until the harness ran.
func startDelay(t *testing.T, w *kit.World, turn *v1alpha1.Turn) time.Duration {
	t.Helper()
	pod := podOf(t, w, turn)
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated != nil {
			return s.State.Terminated.StartedAt.Sub(turn.CreationTimestamp.Time)
		}
		if s.State.Running != nil {
			return s.State.Running.StartedAt.Sub(turn.CreationTimestamp.Time)
		}
	}
	return 0
}

func podOf(t *testing.T, w *kit.World, turn *v1alpha1.Turn) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)}, pod))
	return pod
}

// podCompletes waits until the pod has ended although its sidecar never does.
func podCompletes(t *testing.T, w *kit.World, turn *v1alpha1.Turn) {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)}, pod)
		return pod.Status.Phase == corev1.PodSucceeded, err
	})
	if err != nil {
		t.Errorf("the pod is %s, want Succeeded: %v", pod.Status.Phase, err)
	}
	if len(pod.Spec.InitContainers) == 0 || pod.Spec.InitContainers[0].Name != v1alpha1.ContainerBridge {
		t.Errorf("no native sidecar in the pod")
	}
}

func TestNoExecutionGrantNoPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unexecuted")
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work"}, "read"))
	_, err := w.Turn(t.Context(), "t", kit.Script{})
	must(t, err)
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateDenied || turn.Status.Error == nil || turn.Status.Error.Code != "no_matching_grant" {
		t.Errorf("state %s, error %+v; want Denied, no_matching_grant", turn.State(), turn.Status.Error)
	}
	var pods corev1.PodList
	must(t, cluster.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace)))
	if len(pods.Items) != 0 || turn.Status.Pod != nil {
		t.Errorf("a denied turn has a pod: %d, %+v", len(pods.Items), turn.Status.Pod)
	}
	var events corev1.EventList
	must(t, cluster.Client.List(t.Context(), &events, client.InNamespace(w.Namespace)))
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Pod" {
			t.Errorf("there was a pod: %s", e.Message)
		}
	}
}

func TestRevokedBetweenTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "revoked")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	must(t, w.Grant(t.Context(), "grep", "files", []string{"Work", "atlas"}, "grep"))
	first, before := run(t, w, "first", kit.Script{Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")}})

	grant := &v1alpha1.Grant{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: "grep"}, grant))
	grant.Spec.Revoked = true
	must(t, cluster.Client.Update(t.Context(), grant))
	second, after := run(t, w, "second", kit.Script{Calls: []kit.Call{
		{Tool: "files.grep", Arguments: map[string]any{"path": []string{"Work", "atlas"}, "pattern": "ships"}},
	}})

	if want := []string{"files.grep", "files.read"}; !slices.Equal(before.Tools, want) {
		t.Errorf("first turn: %v, want %v", before.Tools, want)
	}
	if want := []string{"files.read"}; !slices.Equal(after.Tools, want) {
		t.Errorf("second turn: %v, want %v", after.Tools, want)
	}
	if after.Calls[0].Code != "tool_unavailable" {
		t.Errorf("the revoked tool: %+v", after.Calls[0])
	}
	if first.Status.Admission.CatalogHash == second.Status.Admission.CatalogHash {
		t.Error("both catalogues have the same hash")
	}
	for _, c := range []struct {
		turn   *v1alpha1.Turn
		report kit.Report
	}{{first, before}, {second, after}} {
		want := string(c.turn.Status.Admission.CatalogHash)
		annotation := podOf(t, w, c.turn).Annotations[v1alpha1.AnnotationCatalogHash]
		if annotation != want || c.report.CatalogHash != want || c.report.Token.CatalogHash != want {
			t.Errorf("turn %s: status %s, annotation %s, served %s, token %s",
				c.turn.Name, want, annotation, c.report.CatalogHash, c.report.Token.CatalogHash)
		}
	}
}

func TestExitCodeIsTruthful(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "exitcode")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "t", kit.Script{ExitCode: 7})
	must(t, err)
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateFailed || turn.Status.Error.Code != "harness_exited_without_outcome" {
		t.Errorf("state %s, error %+v", turn.State(), turn.Status.Error)
	}
	if turn.Status.ExitCode == nil || *turn.Status.ExitCode != 7 {
		t.Errorf("exit code %v, want 7", turn.Status.ExitCode)
	}
	if turn.Status.Output == nil || !strings.Contains(*turn.Status.Output, "executionId") {
		t.Error("what the harness printed is not in the Turn")
	}
}

func TestDeletingATurnRemovesItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "deleted")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 120})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	must(t, cluster.Client.Delete(t.Context(), turn))
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		turnErr := cluster.Client.Get(ctx, client.ObjectKeyFromObject(turn), &v1alpha1.Turn{})
		podErr := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)}, &corev1.Pod{})
		return apierrors.IsNotFound(turnErr) && apierrors.IsNotFound(podErr), nil
	})
	if err != nil {
		t.Errorf("the Turn or its pod is still there: %v", err)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "cancelled")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 120})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	before := turn.DeepCopy()
	turn.Spec.Cancel = true
	must(t, cluster.Client.Patch(t.Context(), turn, client.MergeFrom(before)))
	turn, err = w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateCancelled || turn.Status.Error.Code != "turn_cancelled" {
		t.Errorf("state %s, error %+v", turn.State(), turn.Status.Error)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)}, &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the pod outlives its cancelled turn: %v", err)
	}
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "escalated")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "ask", "sharedos", []string{"escalation"}, "request"))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	_, err := w.Turn(t.Context(), "t", kit.Script{Calls: []kit.Call{
		{Tool: "sharedos.escalate", Arguments: map[string]any{"reason": "I need the salaries"}},
		kit.Read("Work", "atlas", "status.md"),
	}})
	must(t, err)
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateEscalated || turn.Status.Escalation == nil || turn.Status.Escalation.Reason != "I need the salaries" {
		t.Errorf("state %s, escalation %+v", turn.State(), turn.Status.Escalation)
	}
	report, err := kit.ReportOf(turn)
	must(t, err)
	if report.Calls[0].IsError || report.Calls[1].Code != "escalation_pending" {
		t.Errorf("calls: %+v", report.Calls)
	}
	if turn.Status.Usage.CallsAfterEscalation != 1 {
		t.Errorf("usage: %+v", turn.Status.Usage)
	}
}
