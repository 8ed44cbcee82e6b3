package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

func TestHarnessCannotReadTheSidecarsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "probed")
	must(t, w.GrantRun(t.Context()))
	_, report := run(t, w, "t", kit.Script{Probe: []string{
		bridge.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token", "/proc/1/root" + bridge.TokenFile, bridge.MessageFile,
	}})
	if len(report.Probe) != 4 {
		t.Fatalf("probed %d files, want 4", len(report.Probe))
	}
	for _, p := range report.Probe[:3] {
		if p.Readable {
			t.Errorf("the harness can read %s", p.Path)
		}
	}
	if !report.Probe[3].Readable {
		t.Errorf("the harness cannot read its own message, so the probe proves nothing: %+v", report.Probe[3])
	}
}

func TestSecondPodOfATurnIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "second")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 60})
	must(t, err)
	_, err = w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "second", Labels: map[string]string{v1alpha1.LabelTurn: "t"}},
		Spec:       w.PodSpec(),
	}
	err = cluster.Client.Create(t.Context(), pod)
	if err == nil || !strings.Contains(err.Error(), "metadata.labels[sharedos.dev/turn]") {
		t.Errorf("a second pod with the label: %v; want a refusal that names the label", err)
	}
	pod.Labels[v1alpha1.LabelTurn] = "no-such-turn"
	if err := cluster.Client.Create(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "no-such-turn") {
		t.Errorf("a pod for a Turn that does not exist: %v", err)
	}
}

// TestStolenExecutionToken gives another pod the best token there is: one with the
// right claims, signed with the right key.
func TestStolenExecutionToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "stolen")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 60})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	stolen := mintFor(t, turn)

	own := podToken(t, w.Namespace, string(turn.Status.Pod.Name), turn.Status.Pod.UID)
	if status, body := invoke(t, own, stolen); status != http.StatusOK {
		t.Fatalf("the bound pod's credentials: %d %s; the attack below would prove nothing", status, body)
	}
	other := attackerPod(t, w)
	foreign := podToken(t, w.Namespace, other.Name, v1alpha1.UID(other.UID))
	if status, body := invoke(t, foreign, stolen); status != http.StatusForbidden || !strings.Contains(body, bridge.CodePodNotBound) {
		t.Errorf("another pod with the stolen token: %d %s; want 403 %s", status, body, bridge.CodePodNotBound)
	}
	if status, body := invoke(t, own, strings.Replace(stolen, ".", "x.", 1)); status != http.StatusUnauthorized {
		t.Errorf("a forged execution token: %d %s; want 401", status, body)
	}
	if status, body := invoke(t, "", stolen); status != http.StatusUnauthorized {
		t.Errorf("no ServiceAccount token: %d %s; want 401", status, body)
	}
	if status, body := attach(t, foreign, "t"); status != http.StatusForbidden {
		t.Errorf("another pod attaching: %d %s; want 403", status, body)
	}
}

// attackerPod is a pod beside the harness that has a token for the kernel of its
// own. Nothing keeps a pod that runs no Turn from mounting one; it opens no door.
func attackerPod(t *testing.T, w *kit.World) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "attacker"}, Spec: w.PodSpec()}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: bridge.Audience, Path: "token"}}},
	}}}}
	must(t, cluster.Client.Create(t.Context(), pod))
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: pod.Name}, pod)
		return pod.Spec.NodeName != "", err
	})
	must(t, err)
	return pod
}

// mintFor mints the Turn's execution token with the installation's own key.
func mintFor(t *testing.T, turn *v1alpha1.Turn) string {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-execution-token"}, secret))
	token, err := mcp.MintExecutionToken(mcp.ExecutionClaims{
		ExecutionID: turn.EffectiveExecutionID(), NamespaceID: turn.Namespace, Actor: "agent:" + kit.Agent,
		CatalogHash: string(turn.Status.Admission.CatalogHash), ExpiresAt: contract.At(time.Now().Add(time.Hour).UTC()),
	}, secret.Data["current"])
	must(t, err)
	return token
}

// podToken asks for a pod's token as its kubelet would.
func podToken(t *testing.T, namespace, pod string, uid v1alpha1.UID) string {
	t.Helper()
	object := &corev1.Pod{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: pod}, object))
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + object.Spec.NodeName, Groups: []string{"system:nodes"}}
	clientset, err := kubernetes.NewForConfig(config)
	must(t, err)
	request, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), object.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{bridge.Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: types.UID(uid)},
		}}, metav1.CreateOptions{})
	must(t, err)
	return request.Status.Token
}

func invoke(t *testing.T, podToken, executionToken string) (int, string) {
	t.Helper()
	return post(t, bridge.PathInvoke, podToken, executionToken, bridge.InvokeRequest{
		CallID: "e2e-" + strconv.FormatInt(time.Now().UnixNano(), 36), Tool: "files.read",
		Arguments: contract.Object(`{"path":["Work","atlas","status.md"]}`),
	})
}

func attach(t *testing.T, podToken, turn string) (int, string) {
	t.Helper()
	return post(t, bridge.PathAttach, podToken, "", bridge.AttachRequest{Turn: turn})
}

// post speaks to the kernel service as a pod would.
func post(t *testing.T, path, podToken, executionToken string, body any) (int, string) {
	t.Helper()
	service := &corev1.Service{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-kernel"}, service))
	secret := &corev1.Secret{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-manager-tls"}, secret))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	raw, err := json.Marshal(body)
	must(t, err)
	address := net.JoinHostPort(service.Spec.ClusterIP, "8444")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+path, bytes.NewReader(raw))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	if podToken != "" {
		req.Header.Set("Authorization", "Bearer "+podToken)
	}
	if executionToken != "" {
		req.Header.Set(bridge.HeaderExecutionToken, executionToken)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "sharedos-kernel." + kit.Namespace + ".svc",
	}}}
	res, err := client.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	must(t, err)
	return res.StatusCode, string(answer)
}
