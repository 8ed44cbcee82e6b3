package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestNobodyAnswersTheWebhook: without a manager no harness pod is made, and no other
// becomes one, even with the webhook taken away (a pod that got through nevertheless is
// named: test/integration/turns). What was asked for meanwhile runs when there is a
// manager again. It is not parallel: the others need the manager.
func TestNobodyAnswersTheWebhook(t *testing.T) {
	w := newWorld(t, "away")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	scaleManager(t.Context(), t, 0)
	back := sync.OnceFunc(func() { scaleManager(context.Background(), t, 1) })
	t.Cleanup(back)

	_, err := w.Turn(t.Context(), "theirs", kit.Script{}, external)
	must(t, err)
	_, err = w.Turn(t.Context(), "ours", kit.Script{Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")}})
	must(t, err)
	if err := cluster.Client.Create(t.Context(), pod(w, "refused", "theirs")); err == nil || !strings.Contains(err.Error(), "injection.sharedos.dev") {
		t.Errorf("a harness pod without anybody to inject its bridge: %v", err)
	}
	plain := pod(w, "plain", "theirs")
	plain.Labels = nil
	must(t, cluster.Client.Create(t.Context(), plain))
	before := plain.DeepCopy()
	plain.Labels = map[string]string{v1alpha1.LabelTurn: "theirs"}
	if err := cluster.Client.Patch(t.Context(), plain, client.MergeFrom(before)); err == nil || !strings.Contains(err.Error(), v1alpha1.LabelTurn) {
		t.Errorf("a running pod gets the label: %v", err)
	}
	restore := withoutWebhook(t)
	if err := cluster.Client.Create(t.Context(), pod(w, "bare", "theirs")); err == nil || !strings.Contains(err.Error(), "has no bridge") {
		t.Errorf("a harness pod although nobody is asked to inject its bridge: %v", err)
	}
	restore()

	back()
	turn, err := w.Finish(t.Context(), "ours")
	must(t, err)
	report, err := kit.ReportOf(turn)
	must(t, err)
	if turn.State() != v1alpha1.TurnStateSucceeded || len(report.Calls) != 1 || report.Calls[0].IsError {
		t.Errorf("%s %s: %+v", turn.State(), errorOf(turn), report.Calls)
	}
}

// withoutWebhook takes the injecting webhook away until the returned function is called.
func withoutWebhook(t *testing.T) (restore func()) {
	t.Helper()
	config := &admissionregistrationv1.MutatingWebhookConfiguration{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Name: "sharedos-injection"}, config))
	must(t, cluster.Client.Delete(t.Context(), config))
	config.ObjectMeta = metav1.ObjectMeta{Name: config.Name, Labels: config.Labels, Annotations: config.Annotations}
	restore = sync.OnceFunc(func() { must(t, cluster.Client.Create(context.Background(), config)) })
	t.Cleanup(restore)
	return restore
}

// TestALargeOutput of 5 MB comes through the wrapper, the bridge and the kernel: its
// beginning is kept, and its size and digest are those of all of it.
func TestALargeOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "output")
	must(t, w.GrantRun(t.Context()))
	text := harness(t, w, "text", func(s *v1alpha1.HarnessSpec) { s.Output = v1alpha1.OutputText })
	_, err := w.Turn(t.Context(), "t", kit.Script{OutputBytes: 5_000_000}, text)
	must(t, err)
	_, err = w.Turn(t.Context(), "json", kit.Script{OutputBytes: 5_000_000})
	must(t, err)
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	podCompletes(t, w, turn)
	log, err := cluster.Run(t.Context(), "-n", w.Namespace, "logs", string(turn.Status.Pod.Name), "-c", v1alpha1.ContainerHarness)
	must(t, err)
	// What it says on standard error comes first, in lines without a brace.
	whole := log[max(strings.Index(log, "{"), 0):]
	out, sum := turn.Status.TurnOutput, sha256.Sum256([]byte(whole))
	if turn.State() != v1alpha1.TurnStateSucceeded || out.Output != nil || !out.OutputTruncated || out.OutputRef == nil || out.OutputSize == nil {
		t.Fatalf("%s %s: truncated %t, ref %v, size %v", turn.State(), errorOf(turn), out.OutputTruncated, out.OutputRef, out.OutputSize)
	}
	if len(whole) < 5_000_000 || *out.OutputSize != int64(len(whole)) || string(out.OutputSHA256) != hex.EncodeToString(sum[:]) {
		t.Errorf("size %d and digest %s, want those of the %d bytes that the pod printed", *out.OutputSize, out.OutputSHA256, len(whole))
	}
	kept := &corev1.ConfigMap{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: string(out.OutputRef.Name)}, kept))
	if kept.Data[out.OutputRef.Key] != whole[:v1alpha1.MaxReferencedOutput] {
		t.Errorf("%d bytes are kept, want the first %d", len(kept.Data[out.OutputRef.Key]), v1alpha1.MaxReferencedOutput)
	}
	turn, err = w.Finish(t.Context(), "json")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateFailed || !strings.Contains(errorOf(turn), "may not be longer") || !turn.Status.TurnOutput.OutputTruncated {
		t.Errorf("5 MB of JSON that are cut: %s %s", turn.State(), errorOf(turn))
	}
}
