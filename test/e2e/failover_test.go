package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestLeaderChanges runs Turns while the leading of two managers is killed, handed
// over and replaced. Every line that a call appends to a file is there at most once
// afterwards, and at least once if the call was answered. It is not parallel: the
// others would see the pauses. How long those are is logged, and measured in
// test/integration/load.
func TestLeaderChanges(t *testing.T) {
	if cluster.Kind != kit.Local {
		t.Skip("the manager's process is only in reach on the local cluster")
	}
	twoManagers(t)

	t.Run("killed in the middle of many turns", func(t *testing.T) {
		w := newWorld(t, "killed")
		n := fromEnvironment(t, "SHAREDOS_TURNS", 12)
		l := startLoad(t, w, n, 30+n) // the first must still be busy when the last begins
		process := managerProcess(t, leader(t))
		gap := l.watch(t)
		must(t, syscall.Kill(process, syscall.SIGKILL))
		calls := l.finish(t)
		t.Logf("%d turns, leader killed: no call was allowed for %s; %d calls succeeded, %d failed", len(l.turns), gap(), calls.succeeded, calls.failed)
		if calls.failed > len(l.turns) {
			t.Errorf("%d calls failed; only those that were on their way may, one of each turn", calls.failed)
		}
		calls.truthful(t)
		l.onceEach(t, calls)
		nothingLeft(t, w)
	})

	t.Run("handed over", func(t *testing.T) {
		w := newWorld(t, "handover")
		l := startLoad(t, w, 4, 20)
		gap := l.watch(t)
		must(t, cluster.Client.Delete(t.Context(), leader(t)))
		calls := l.finish(t)
		t.Logf("%d turns, planned handover: no call was allowed for %s; %d calls succeeded, %d failed", len(l.turns), gap(), calls.succeeded, calls.failed)
		calls.noneFailed(t)
		l.onceEach(t, calls)
		rolledOut(t.Context(), t)
		nothingLeft(t, w)
	})

	t.Run("both replaced", func(t *testing.T) {
		w := newWorld(t, "rolled")
		l := startLoad(t, w, 4, 40)
		gap := l.watch(t)
		_, err := cluster.Run(t.Context(), "-n", kit.Namespace, "rollout", "restart", "statefulset/sharedos-manager")
		must(t, err)
		rolledOut(t.Context(), t)
		calls := l.finish(t)
		t.Logf("%d turns, rolling restart: no call was allowed for %s; %d calls succeeded, %d failed", len(l.turns), gap(), calls.succeeded, calls.failed)
		calls.noneFailed(t)
		l.onceEach(t, calls)
		nothingLeft(t, w)
	})
}

// fromEnvironment is how many of something a test makes: few, so that a busy machine is
// still in time, or what the variable says.
func fromEnvironment(t *testing.T, name string, few int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// twoManagers scales the manager up until the test ends.
func twoManagers(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { scaleManager(context.Background(), t, 1) })
	scaleManager(t.Context(), t, 2)
}

// scaleManager waits until there are so many managers, all ready; it waits for the end
// of all if that is none.
func scaleManager(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	if _, err := cluster.Run(ctx, "-n", kit.Namespace, "scale", "statefulset/sharedos-manager", "--replicas="+strconv.Itoa(n)); err != nil {
		t.Errorf("scale the manager: %v", err)
	}
	rolledOut(ctx, t)
	if n > 0 {
		return
	}
	if _, err := cluster.Run(ctx, "-n", kit.Namespace, "wait", "--for=delete", "pod", "--selector=app.kubernetes.io/component=manager", "--timeout=2m"); err != nil {
		t.Errorf("wait for the end of the managers: %v", err)
	}
}

// rolledOut waits until every manager is ready.
func rolledOut(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := cluster.Run(ctx, "-n", kit.Namespace, "rollout", "status", "statefulset/sharedos-manager", "--timeout=3m"); err != nil {
		t.Errorf("the managers are not ready: %v", err)
	}
}

// leader is the pod that holds the lease.
func leader(t *testing.T) *corev1.Pod {
	t.Helper()
	lease := &coordinationv1.Lease{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-manager"}, lease))
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod := &corev1.Pod{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: name}, pod))
	return pod
}

// managerProcess is the process of a pod's manager.
func managerProcess(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	return processOf(t, pod, func(command string) bool { return strings.Contains(command, "manager") })
}

// processOf finds a process of the pod by the pod's control group and the program's
// name, and nobody else's.
func processOf(t *testing.T, pod *corev1.Pod, is func(command string) bool) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	must(t, err)
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(bytes.ReplaceAll(groups, []byte("_"), []byte("-")), []byte(pod.UID)) {
			continue // it has ended, or is somebody else's
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || !is(string(command)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		must(t, err)
		return pid
	}
	t.Fatalf("no such process of pod %s found", pod.Name)
	return 0
}
