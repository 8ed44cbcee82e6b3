//go:build long

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestALongTurn goes on while the kubelet replaces its bridge's ServiceAccount token,
// which is valid for ten minutes and replaced after eight: the bridge reads it anew, and
// the kernel has it reviewed again. It takes ten minutes, the longest that a turn may.
func TestALongTurn(t *testing.T) {
	t.Parallel()
	if cluster.Kind != kit.Local {
		t.Skip("the bridge's token is only in reach on the local cluster")
	}
	w := newWorld(t, "long")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	script := kit.Script{PauseSeconds: 3}
	for range 200 {
		script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
	}
	_, err := w.Turn(t.Context(), "t", script, calls(len(script.Calls)))
	must(t, err)
	turn, err := w.Until(t.Context(), "t", patience, isRunning)
	must(t, err)
	bridgePod := podOf(t, w, turn)
	if got := tokenSeconds(bridgePod); got != 600 {
		t.Fatalf("the bridge's token is valid for %d s; this test is about one of 600", got)
	}
	process := processOf(t, bridgePod, func(command string) bool { return strings.Contains(command, "bridge") })
	file := filepath.Join("/proc", strconv.Itoa(process), "root", bridge.TokenFile)
	first, err := os.ReadFile(file)
	must(t, err)
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 10*time.Minute, true, func(context.Context) (bool, error) {
		now, err := os.ReadFile(file)
		return err == nil && !bytes.Equal(now, first), err
	})
	if err != nil {
		t.Fatalf("the token was not replaced while the turn ran: %v", err)
	}
	turn, err = w.Until(t.Context(), "t", patience, func(t *v1alpha1.Turn) bool { return t.Status.Usage != nil })
	must(t, err)
	then := turn.Status.Usage.ToolCalls
	t.Logf("the token was replaced %s after the start, after %d calls", time.Since(turn.Status.StartedAt.Time).Round(time.Second), then)
	turn, err = w.Until(t.Context(), "t", patience, func(t *v1alpha1.Turn) bool { return t.Status.Usage.ToolCalls > then+3 || t.IsFinished() })
	must(t, err)
	if turn.IsFinished() || turn.Status.Usage.Denied != 0 {
		t.Errorf("%s %s, %d calls denied, with the new token", turn.State(), errorOf(turn), turn.Status.Usage.Denied)
	}
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
