package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// patience is for what takes seconds on a machine that does nothing else.
const patience = 3 * time.Minute

func external(s *v1alpha1.TurnSpec) { s.Harness = "" }

func isRunning(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning }

// errorOf is the Turn's error with its details.
func errorOf(t *v1alpha1.Turn) string {
	if t.Status.Error == nil {
		return ""
	}
	return t.Status.Error.Code + " " + t.Status.Error.Message + " " + string(t.Status.Error.Details)
}

// harness creates another Harness of the world.
func harness(t *testing.T, w *kit.World, name string, change func(*v1alpha1.HarnessSpec)) func(*v1alpha1.TurnSpec) {
	t.Helper()
	h := &v1alpha1.Harness{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: v1alpha1.HarnessSpec{
			Type: v1alpha1.HarnessCustom, Output: v1alpha1.OutputJSON, Template: corev1.PodTemplateSpec{Spec: w.PodSpec()},
		},
	}
	change(&h.Spec)
	must(t, cluster.Client.Create(t.Context(), h))
	return func(s *v1alpha1.TurnSpec) { s.Harness = v1alpha1.ObjectName(name) }
}

// TestPodsThatFail: each cause that can be provoked here ends its Turn with an error
// of its own.
func TestPodsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "causes")
	must(t, w.GrantRun(t.Context()))
	// Long enough that the bridge, without which the harness's image is not looked for,
	// has started on a busy machine.
	soon := func(s *v1alpha1.TurnSpec) { s.StartTimeoutMs = new(int64(45_000)) }
	for name, c := range map[string]struct {
		template func(*corev1.PodTemplateSpec)
		running  func(t *testing.T, turn *v1alpha1.Turn)
		allocate int
		says     string
	}{
		"memory": {
			template: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			},
			allocate: 256,
			says:     "OOMKilled",
		},
		"image": {
			template: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "sharedos.dev/none:none", corev1.PullNever
			},
			says: "ErrImageNeverPull",
		},
		"node-selector": {
			template: func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"no-such": "node"} },
			says:     "Unschedulable",
		},
		"resources": {
			template: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Ti")}
			},
			says: "Insufficient memory",
		},
		"command": {
			template: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Command = []string{"/no-such-program"} },
			says:     "harness_not_started",
		},
		"evicted": {
			template: func(*corev1.PodTemplateSpec) {},
			running: func(t *testing.T, turn *v1alpha1.Turn) {
				clientset, err := kubernetes.NewForConfig(cluster.Config)
				must(t, err)
				must(t, clientset.PolicyV1().Evictions(w.Namespace).Evict(t.Context(), &policyv1.Eviction{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)},
				}))
			},
			says: "Evicted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := harness(t, w, name, func(s *v1alpha1.HarnessSpec) { c.template(&s.Template) })
			change := []func(*v1alpha1.TurnSpec){with}
			if c.running == nil {
				change = append(change, soon)
			}
			_, err := w.Turn(t.Context(), name, kit.Script{SleepSeconds: 120, AllocateMiB: c.allocate}, change...)
			must(t, err)
			if c.running != nil {
				turn, err := w.Until(t.Context(), name, patience, isRunning)
				must(t, err)
				c.running(t, turn)
			}
			turn, err := w.Finish(t.Context(), name)
			must(t, err)
			if turn.State() != v1alpha1.TurnStateFailed || !strings.Contains(errorOf(turn), c.says) {
				t.Errorf("%s %s; want Failed and %q", turn.State(), errorOf(turn), c.says)
			}
		})
	}
}

// TestTheSidecarIsKilled: its restart is a pause, and the harness goes on.
func TestTheSidecarIsKilled(t *testing.T) {
	if cluster.Kind != kit.Local {
		t.Skip("the sidecar's process is only in reach on the local cluster")
	}
	t.Parallel()
	w := newWorld(t, "sidecar")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 15, Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")}})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", patience, isRunning)
	must(t, err)
	pod := podOf(t, w, turn)
	must(t, syscall.Kill(processOf(t, pod, func(command string) bool { return strings.HasPrefix(command, "bridge-sidecar") }), syscall.SIGKILL))
	turn, err = w.Finish(t.Context(), "t")
	must(t, err)
	if turn.Status.Outcome == v1alpha1.TurnSucceeded {
		report, err := kit.ReportOf(turn)
		must(t, err)
		if len(report.Calls) != 1 || report.Calls[0].IsError {
			t.Errorf("the call after the sidecar's restart: %+v", report.Calls)
		}
		return
	}
	t.Errorf("%s %s", turn.State(), errorOf(turn))
}

// TestAHarnessThatIgnoresSIGTERM is ended with its Turn all the same.
func TestAHarnessThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "stubborn")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 300, IgnoreTerm: true})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", patience, isRunning)
	must(t, err)
	cancelTurn(t, turn)
	began := time.Now()
	turn, err = w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateCancelled {
		t.Errorf("%s %s", turn.State(), errorOf(turn))
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(turn.Status.Pod.Name)}, &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the pod is still there %s after the cancel: %v", time.Since(began), err)
	}
}

func cancelTurn(t *testing.T, turn *v1alpha1.Turn) {
	t.Helper()
	before := turn.DeepCopy()
	turn.Spec.Cancel = true
	must(t, cluster.Client.Patch(t.Context(), turn, client.MergeFrom(before)))
}

// pod is a harness pod that somebody brings.
func pod(w *kit.World, name, turn string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelTurn: turn}},
		Spec:       w.PodSpec(),
	}
}

// TestCallsAfterTheTurnHasEnded: the pod is somebody else's and goes on; its calls
// are refused. Nobody who may not debug the Turn gets a container into it either.
func TestCallsAfterTheTurnHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "late")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	script := kit.Script{PauseSeconds: 1}
	for range 10 {
		script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
	}
	_, err := w.Turn(t.Context(), "t", script, external)
	must(t, err)
	must(t, cluster.Client.Create(t.Context(), pod(w, "theirs", "t")))
	turn, err := w.Until(t.Context(), "t", patience, func(t *v1alpha1.Turn) bool { return t.Status.Usage != nil && t.Status.Usage.ToolCalls > 0 })
	must(t, err)

	_, err = cluster.Run(t.Context(), "-n", w.Namespace, "debug", "theirs", "--image="+w.Image, "--target="+v1alpha1.ContainerHarness,
		"--as=somebody", "--as-group=system:authenticated", "--", "/example-harness")
	if err == nil {
		t.Error("somebody without rights debugs a harness pod")
	}

	cancelTurn(t, turn)
	turn, err = w.Finish(t.Context(), "t")
	must(t, err)
	used := turn.Status.Usage.ToolCalls
	var logs string
	err = wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		logs, err = cluster.Run(ctx, "-n", w.Namespace, "logs", "theirs", "-c", v1alpha1.ContainerHarness)
		p := &corev1.Pod{}
		get := cluster.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "theirs"}, p)
		return err == nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed), get
	})
	must(t, err)
	if answered := strings.Count(logs, "files.read {\"path\":[\"Work\",\"atlas\",\"status.md\"]}: succeeded"); int64(answered) > used {
		t.Errorf("%d calls were answered, %d were counted when the turn ended:\n%s", answered, used, logs)
	}
	after := &v1alpha1.Turn{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(turn), after))
	if after.Status.Usage.ToolCalls != used {
		t.Errorf("%d calls after the end were counted", after.Status.Usage.ToolCalls-used)
	}
}

// TestAJobsPod: a pod that a controller makes takes the Turn that names the
// controller. It has a restartable init container of its own and another bridge port.
func TestAJobsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "job")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{v1alpha1.LabelTurn: "t"}, Annotations: map[string]string{v1alpha1.AnnotationBridgePort: "7500"},
		},
		Spec: w.PodSpec(),
	}
	mesh := template.Spec.Containers[0].DeepCopy()
	mesh.Name, mesh.RestartPolicy = "mesh-proxy", new(corev1.ContainerRestartPolicyAlways)
	mesh.Command = []string{"/example-harness", "serve"}
	certificate, key := selfSigned(t, "mesh-proxy")
	mesh.Env = []corev1.EnvVar{ // on the bridge's usual port
		{Name: "ADDRESS", Value: "127.0.0.1:7411"}, {Name: "CREDENTIAL", Value: "none"},
		{Name: "TLS_CERTIFICATE", Value: certificate}, {Name: "TLS_KEY", Value: key},
	}
	template.Spec.InitContainers = []corev1.Container{*mesh}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "agent-made"},
		Spec:       batchv1.JobSpec{Suspend: new(true), BackoffLimit: new(int32(0)), Template: template},
	}
	must(t, cluster.Client.Create(t.Context(), job))
	_, err := w.Turn(t.Context(), "t", kit.Script{Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")}}, external, func(s *v1alpha1.TurnSpec) {
		s.ExternalPod = &v1alpha1.ExternalPod{OwnerUID: v1alpha1.UID(job.UID)}
	})
	must(t, err)
	before := job.DeepCopy()
	job.Spec.Suspend = new(false)
	must(t, cluster.Client.Patch(t.Context(), job, client.MergeFrom(before)))
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	if turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Usage.ToolCalls != 1 || turn.Status.Usage.Denied != 0 {
		t.Errorf("%s %s, usage %+v", turn.State(), errorOf(turn), turn.Status.Usage)
	}
	for _, s := range podOf(t, w, turn).Status.InitContainerStatuses {
		if s.RestartCount != 0 {
			t.Errorf("%s was started %d times: the other sidecar was to hold its port all the time", s.Name, s.RestartCount+1)
		}
	}
}

// TestATurnAndItsPodInOneCommand applies pairs of them, 8 or as many as SHAREDOS_PAIRS
// says: no pod is ever there without its bridge, and each gets its turn.
func TestATurnAndItsPodInOneCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "together")
	must(t, w.GrantRun(t.Context()))
	pairs := fromEnvironment(t, "SHAREDOS_PAIRS", 8)
	var all bytes.Buffer
	for i := range pairs {
		name := fmt.Sprintf("t%d", i)
		turn := &v1alpha1.Turn{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Turn"},
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
			Spec:       v1alpha1.TurnSpec{Principal: kit.Agent, Message: v1alpha1.TurnMessage{From: kit.Human, Payload: `{"calls":[]}`}},
		}
		calls(1)(&turn.Spec)
		turn.Spec.StartTimeoutMs = new(int64(1_800_000)) // many pods at once start slowly
		for _, object := range []any{turn, pod(w, "pod-"+name, name)} {
			raw, err := json.Marshal(object)
			must(t, err)
			all.Write(append(raw, '\n'))
		}
	}
	apply := exec.CommandContext(t.Context(), cluster.Kubectl, "apply", "-f", "-")
	apply.Env, apply.Stdin = cluster.Env(), &all
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	var pods corev1.PodList
	must(t, cluster.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace)))
	if len(pods.Items) != pairs {
		t.Errorf("%d pods, want %d", len(pods.Items), pairs)
	}
	for _, p := range pods.Items {
		if len(p.Spec.InitContainers) != 1 || p.Spec.InitContainers[0].Name != v1alpha1.ContainerBridge {
			t.Errorf("pod %s has no bridge", p.Name)
		}
	}
	for i := range pairs {
		turn, err := w.Until(t.Context(), fmt.Sprintf("t%d", i), 20*time.Minute, (*v1alpha1.Turn).IsFinished)
		if err != nil || turn.State() != v1alpha1.TurnStateSucceeded {
			t.Errorf("turn %d: %s %s %v", i, turn.State(), errorOf(turn), err)
		}
	}
}
