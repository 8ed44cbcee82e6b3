//go:build load

package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/client"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// world is one namespace with an agent that may run and list files below Work.
type world struct {
	t         *testing.T
	namespace string
	files     *provider
}

func newWorld(t *testing.T, name string, files *provider) *world {
	t.Helper()
	w := &world{t, "load-" + name, files}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta("default")})
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("files-ca"), Data: map[string]string{"ca.crt": files.CA}})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("alice"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice")}})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("bot"), Spec: v1alpha1.PrincipalSpec{
		Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, "bot"), Authority: "alice", Owner: "alice", Purposes: []v1alpha1.Purpose{"work"},
	}})
	w.create(&v1alpha1.ToolNamespace{ObjectMeta: w.meta("files"), Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{
		Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles, Endpoint: v1alpha1.Endpoint{
			URL: files.URL,
			TLS: &v1alpha1.TLSConfig{CAFrom: &v1alpha1.CASource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "files-ca", Key: "ca.crt"}}},
		}},
	}}})
	w.create(&v1alpha1.Harness{ObjectMeta: w.meta("h"), Spec: v1alpha1.HarnessSpec{
		Type: v1alpha1.HarnessCustom, Template: corev1.PodTemplateSpec{Spec: podSpec("/agent")},
	}})
	w.grant("run", "sharedos.execution", []v1alpha1.PathSegment{"agent", "bot"}, "invoke", nil)
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list", nil)
	n := &v1alpha1.ToolNamespace{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := env.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "files"}, n)
		c := v1alpha1.FindCondition(n.Status.Conditions, v1alpha1.ToolNamespaceReady)
		return c != nil && c.Status == metav1.ConditionTrue, err
	})
	if err != nil {
		t.Fatalf("the files are not served: %+v", n.Status.Conditions)
	}
	return w
}

func podSpec(command ...string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{Name: v1alpha1.ContainerHarness, Image: "i", Command: command}},
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) create(o ctrlclient.Object) {
	w.t.Helper()
	if err := env.client.Create(context.Background(), o); err != nil {
		w.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

func (w *world) grant(name, plane string, path []v1alpha1.PathSegment, action v1alpha1.Action, c *v1alpha1.GrantConstraints) {
	w.t.Helper()
	w.create(&v1alpha1.Grant{ObjectMeta: w.meta(name), Spec: v1alpha1.GrantSpec{
		Issuer: "alice", Subject: "bot", Constraints: c, Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(plane), Path: path},
			Actions:  []v1alpha1.Action{action}, Scope: v1alpha1.ScopeDescendants,
		}},
	}})
}

// turn creates a Turn whose pod somebody brings, or one with the Harness h.
func (w *world) turn(name string, harness v1alpha1.ObjectName) *v1alpha1.Turn {
	turn := &v1alpha1.Turn{ObjectMeta: w.meta(name), Spec: v1alpha1.TurnSpec{
		Principal: "bot", Harness: harness, Message: v1alpha1.TurnMessage{Text: "go"}, StartTimeoutMs: new(int64(600_000)),
		Options: &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(10_000)), TimeoutMs: new(int64(600_000))},
	}}
	w.create(turn)
	return turn
}

// standIn is a pod's bridge without the pod.
type standIn struct {
	*client.Client
	turn string
}

// bring makes a pod for the Turn and the connection of its bridge.
func (w *world) bring(turn, url string, ca []byte) *standIn {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: w.meta(turn + "-pod"), Spec: podSpec()}
	pod.Labels = map[string]string{v1alpha1.LabelTurn: turn}
	w.create(pod)
	return w.standInFor(pod, turn, url, ca)
}

// standInFor asks for the pod's token as its kubelet would.
func (w *world) standInFor(pod *corev1.Pod, turn, url string, ca []byte) *standIn {
	w.t.Helper()
	request, err := env.clientset.CoreV1().ServiceAccounts(w.namespace).CreateToken(context.Background(), "default",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{bridge.Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	must(w.t, err)
	file := filepath.Join(w.t.TempDir(), "token")
	must(w.t, os.WriteFile(file, []byte(request.Status.Token), 0o600))
	c, err := client.New(client.Options{
		BaseURL: url, RootCAs: ca, TokenFile: file, ServerName: "sharedos-kernel." + system + ".svc",
	})
	must(w.t, err)
	w.t.Cleanup(c.Close)
	return &standIn{c, turn}
}

// open attaches and follows the session, as a sidecar does, and returns once the
// turn has started.
func (s *standIn) open(ctx context.Context) error {
	if _, err := s.Attach(ctx, s.turn); err != nil {
		return fmt.Errorf("attach to %s: %w", s.turn, err)
	}
	attached := make(chan error, 1)
	go func() {
		first := true
		for event, err := range s.Session(ctx) {
			if err != nil || event.Type == bridge.SessionAttached && first {
				first = false
				select {
				case attached <- err:
				default:
				}
			}
		}
	}()
	select {
	case err := <-attached:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *standIn) call(ctx context.Context, id string) (*contract.ToolResult, error) {
	return s.Invoke(ctx, bridge.InvokeRequest{CallID: id, Tool: "files.list", Arguments: contract.Object(`{"path":["Work"]}`)}, client.Repeatable)
}

// finish reports the outcome. A report that was repeated because its answer was late may
// be told that the turn has ended; how it ended is for the caller to look at.
func (s *standIn) finish(ctx context.Context) error {
	err := s.Outcome(ctx, bridge.Outcome{Started: true, Initialized: true, Output: []byte("ok"), OutputSize: 2})
	if refused, ok := errors.AsType[*bridge.Error](err); ok && refused.Code == bridge.CodeTurnEnded {
		return nil
	}
	return err
}
