package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestSamplesTwice applies every sample twice: the second time changes nothing.
func TestSamplesTwice(t *testing.T) {
	dir := filepath.Join(cluster.Root, "config", "samples")
	apply := func() string {
		t.Helper()
		out, err := cluster.Run(t.Context(), "apply", "--server-side", "-k", dir)
		must(t, err)
		more, err := cluster.Run(t.Context(), "apply", "--server-side", "-f", filepath.Join(dir, "51-turn-status-report-2.yaml"))
		must(t, err)
		return out + more
	}
	t.Cleanup(func() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-atlas"}}
		_ = cluster.Client.Delete(context.Background(), ns)
	})
	apply()
	for _, name := range []string{"status-report", "status-report-2"} {
		w := &kit.World{Cluster: cluster, Namespace: "team-atlas"}
		turn, err := w.Finish(t.Context(), name)
		must(t, err)
		if turn.Status.Outcome != v1alpha1.TurnSucceeded {
			t.Fatalf("turn %s: %s %+v", name, turn.State(), turn.Status.Error)
		}
	}
	settle(t, "team-atlas")
	before := versions(t.Context(), t, "team-atlas")
	apply()
	if after := versions(t.Context(), t, "team-atlas"); before != after {
		t.Errorf("applying the samples again changed something:\n%s\n%s", before, after)
	}
}

// settle waits until no object of the namespace changes between two looks, which
// are as far apart as the slowest controller needs.
func settle(t *testing.T, namespace string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		now := versions(ctx, t, namespace)
		same := now == last
		last = now
		return same, nil
	})
	must(t, err)
}

// versions are the resource versions of everything of ours in the namespace.
func versions(ctx context.Context, t *testing.T, namespace string) string {
	t.Helper()
	var b strings.Builder
	for _, list := range []client.ObjectList{
		&v1alpha1.PrincipalList{}, &v1alpha1.GrantList{}, &v1alpha1.ToolNamespaceList{}, &v1alpha1.HarnessList{}, &v1alpha1.TurnList{},
	} {
		must(t, cluster.Client.List(ctx, list, client.InNamespace(namespace)))
		fmt.Fprintf(&b, "%T %s\n", list, objectVersions(t, list))
	}
	return b.String()
}

func objectVersions(t *testing.T, list client.ObjectList) string {
	t.Helper()
	var out []string
	must(t, meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		out = append(out, object.GetName()+"@"+object.GetResourceVersion())
		return nil
	}))
	return strings.Join(out, " ")
}

// TestManagerRestartedMidTurn kills the manager while a turn runs. It is not
// parallel: the others would see the pause.
func TestManagerRestartedMidTurn(t *testing.T) {
	w := newWorld(t, "restarted")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	_, err := w.Turn(t.Context(), "t", kit.Script{
		SleepSeconds: 5, Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")},
	})
	must(t, err)
	_, err = w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	var managers corev1.PodList
	must(t, cluster.Client.List(t.Context(), &managers, client.InNamespace(kit.Namespace),
		client.MatchingLabels{"app.kubernetes.io/component": "manager"}))
	if len(managers.Items) == 0 {
		t.Fatal("no manager pod found")
	}
	now := int64(0)
	for i := range managers.Items {
		must(t, cluster.Client.Delete(t.Context(), &managers.Items[i], &client.DeleteOptions{GracePeriodSeconds: &now}))
	}
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	if turn.Status.Outcome != v1alpha1.TurnSucceeded {
		t.Fatalf("the turn ended %s: %+v", turn.State(), turn.Status.Error)
	}
	report, err := kit.ReportOf(turn)
	must(t, err)
	if len(report.Calls) != 1 || report.Calls[0].IsError {
		t.Errorf("the call across the restart: %+v", report.Calls)
	}
	waitForManager(t)
}

func waitForManager(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-manager-0"}, pod)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	must(t, err)
}
