//go:build long

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestALongTurn outlives the ServiceAccount token that its bridge began with, which is
// valid for ten minutes: the kubelet renews it, the bridge reads it anew, and the kernel
// has it reviewed again. It takes 13 minutes.
func TestALongTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "long")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	script := kit.Script{PauseSeconds: 20}
	for range 38 {
		script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
	}
	_, err := w.Turn(t.Context(), "t", script, func(s *v1alpha1.TurnSpec) {
		s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(len(script.Calls))), TimeoutMs: new(int64(1_200_000))}
	})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", patience, isRunning)
	must(t, err)
	if got := tokenSeconds(podOf(t, w, turn)); got != 600 {
		t.Fatalf("the bridge's token is valid for %d s; this test is about one of 600", got)
	}
	turn, err = w.Until(t.Context(), "t", 20*time.Minute, (*v1alpha1.Turn).IsFinished)
	must(t, err)
	report, err := kit.ReportOf(turn)
	must(t, err)
	if turn.State() != v1alpha1.TurnStateSucceeded || len(report.Calls) != len(script.Calls) {
		t.Fatalf("%s %s after %d calls", turn.State(), errorOf(turn), len(report.Calls))
	}
	for i, call := range report.Calls {
		if call.IsError {
			t.Errorf("call %d: %+v", i, call)
		}
	}
	took := turn.Status.CompletedAt.Sub(turn.Status.StartedAt.Time)
	if took < 11*time.Minute {
		t.Errorf("the turn took %s: it did not outlive its first token", took)
	}
	t.Logf("%d calls in %s", len(report.Calls), took.Round(time.Second))
}

// tokenSeconds is how long the bridge's token is valid.
func tokenSeconds(pod *corev1.Pod) int64 {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != v1alpha1.VolumeKernelToken || volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds != nil {
				return *token.ExpirationSeconds
			}
		}
	}
	return 0
}
