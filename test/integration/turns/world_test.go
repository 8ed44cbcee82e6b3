package turns

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/sessions"
)

const patience = 30 * time.Second

// world is one namespace with an agent that may run and list files below Work.
type world struct {
	t         *testing.T
	namespace string
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	w := &world{t, "turns-" + name}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta("default")})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("alice"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice")}})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("bot"), Spec: v1alpha1.PrincipalSpec{
		Address:   v1alpha1.NewAddress(v1alpha1.AddressAgent, "bot"),
		Authority: "alice", Owner: "alice", Purposes: []v1alpha1.Purpose{"work"},
	}})
	w.create(&v1alpha1.ToolNamespace{ObjectMeta: w.meta("files"), Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{
		Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles, Endpoint: v1alpha1.Endpoint{URL: "https://files.example"}},
	}}})
	w.create(&v1alpha1.Harness{ObjectMeta: w.meta("h"), Spec: v1alpha1.HarnessSpec{
		Type: v1alpha1.HarnessCustom,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: v1alpha1.ContainerHarness, Image: "i", Command: []string{"/agent"},
		}}}},
	}})
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	must(w.t, server.client.Create(w.t.Context(), o))
}

func (w *world) grant(name, plane string, path []v1alpha1.PathSegment, action v1alpha1.Action, change ...func(*v1alpha1.GrantSpec)) {
	w.t.Helper()
	spec := v1alpha1.GrantSpec{Issuer: "alice", Subject: "bot", Capabilities: []v1alpha1.Capability{{
		Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(plane), Path: path},
		Actions:  []v1alpha1.Action{action}, Scope: v1alpha1.ScopeDescendants,
	}}}
	for _, c := range change {
		c(&spec)
	}
	w.create(&v1alpha1.Grant{ObjectMeta: w.meta(name), Spec: spec})
}

// mayRun gives the agent what nearly every test needs.
func (w *world) mayRun(change ...func(*v1alpha1.GrantSpec)) {
	w.t.Helper()
	w.grant("run", "sharedos.execution", []v1alpha1.PathSegment{"agent", "bot"}, "invoke", change...)
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list")
}

func (w *world) turn(name string, change ...func(*v1alpha1.TurnSpec)) {
	w.t.Helper()
	spec := v1alpha1.TurnSpec{Principal: "bot", Harness: "h", Message: v1alpha1.TurnMessage{Text: "go"}}
	for _, c := range change {
		c(&spec)
	}
	w.create(&v1alpha1.Turn{ObjectMeta: w.meta(name), Spec: spec})
}

// until waits until the Turn is as wanted.
func (w *world) until(name string, wanted func(*v1alpha1.Turn) bool) *v1alpha1.Turn {
	w.t.Helper()
	turn := &v1alpha1.Turn{}
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, turn)
		return err == nil && wanted(turn), err
	})
	if err != nil {
		w.t.Fatalf("turn %s: %v; it is %s: %+v", name, err, turn.State(), turn.Status)
	}
	return turn
}

func (w *world) ended(name string) *v1alpha1.Turn {
	w.t.Helper()
	return w.until(name, (*v1alpha1.Turn).IsFinished)
}

func hasPod(t *v1alpha1.Turn) bool { return t.Status.Pod != nil }

// session is the Turn's, once its pod is bound.
func (o *operator) session(w *world, turn *v1alpha1.Turn) *sessions.Session {
	w.t.Helper()
	var out *sessions.Session
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		s, ok := o.registry.Get(sessions.Key{Namespace: turn.Namespace, Turn: turn.Name}, string(turn.UID))
		out = s
		return ok && s.Bound(string(turn.Status.Pod.UID)), nil
	})
	must(w.t, err)
	return out
}

// pod sets the status of the Turn's pod, as its kubelet would.
func (w *world) pod(turn *v1alpha1.Turn, status corev1.PodStatus) {
	w.t.Helper()
	pod := &corev1.Pod{}
	must(w.t, server.client.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}, pod))
	pod.Status = status
	must(w.t, server.client.Status().Update(w.t.Context(), pod))
}
