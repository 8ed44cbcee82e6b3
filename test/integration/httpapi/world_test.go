package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
)

const patience = 30 * time.Second

// world is one namespace: Alice, her agents bot and helper, each with a Harness and a
// ServiceAccount of its name, and three families of tools that are on.
type world struct {
	t         *testing.T
	namespace string
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	w := &world{t, "api-" + name}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&v1alpha1.Harness{ObjectMeta: w.meta("h"), Spec: v1alpha1.HarnessSpec{
		Type: v1alpha1.HarnessCustom,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: v1alpha1.ContainerHarness, Image: "i", Command: []string{"/agent"},
		}}}},
	}})
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("alice"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice")}})
	for _, agent := range []string{"bot", "helper"} {
		w.account(agent)
		w.principal(agent)
	}
	for _, name := range []string{"files", "repo"} {
		plane := v1alpha1.PlaneFiles
		if name == "repo" {
			plane = v1alpha1.PlaneRepo
		}
		w.create(&v1alpha1.ToolNamespace{ObjectMeta: w.meta(name), Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{
			Provider: &v1alpha1.ProviderSource{Plane: plane, Endpoint: v1alpha1.Endpoint{URL: "https://files.example"}},
		}}})
	}
	w.create(&v1alpha1.ToolNamespace{ObjectMeta: w.meta("messages"), Spec: v1alpha1.ToolNamespaceSpec{
		Enabled: true, Source: v1alpha1.ToolSource{Builtin: v1alpha1.BuiltinMessages},
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

func (w *world) account(name string) {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta(name)})
}

// principal is an agent of Alice's whose identity is the ServiceAccount of its name.
func (w *world) principal(name string, change ...func(*v1alpha1.PrincipalSpec)) *v1alpha1.Principal {
	w.t.Helper()
	p := &v1alpha1.Principal{ObjectMeta: w.meta(name), Spec: v1alpha1.PrincipalSpec{
		Address:   v1alpha1.NewAddress(v1alpha1.AddressAgent, name),
		Authority: "alice", Owner: "alice", Purposes: []v1alpha1.Purpose{"work", "play"}, Harness: "h",
		Identities: []v1alpha1.Identity{{ServiceAccount: &v1alpha1.ServiceAccountIdentity{
			Name: v1alpha1.ObjectName(name), Namespace: v1alpha1.LabelName(w.namespace),
		}}},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	w.create(p)
	return p
}

// grant lets Alice's agent do something on a path and below.
func (w *world) grant(subject, plane string, path []v1alpha1.PathSegment, action v1alpha1.Action) {
	w.t.Helper()
	w.create(&v1alpha1.Grant{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "g-"},
		Spec: v1alpha1.GrantSpec{Issuer: "alice", Subject: v1alpha1.ObjectName(subject), Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(plane), Path: path},
			Actions:  []v1alpha1.Action{action}, Scope: v1alpha1.ScopeDescendants,
		}}},
	})
}

// mayRun lets the subject run the agent.
func (w *world) mayRun(subject, agent v1alpha1.PathSegment) {
	w.t.Helper()
	w.grant(string(subject), "sharedos.execution", []v1alpha1.PathSegment{"agent", agent}, "invoke")
}

// maySend lets the subject send to the agent.
func (w *world) maySend(subject, agent v1alpha1.PathSegment) {
	w.t.Helper()
	w.grant(string(subject), "sharedos.messaging", []v1alpha1.PathSegment{"agent", agent}, "send")
}

// token is a ServiceAccount's, for the audience.
func (w *world) token(account, audience string) string {
	w.t.Helper()
	request, err := server.clientset.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: new(int64(3600))}},
		metav1.CreateOptions{})
	must(w.t, err)
	return request.Status.Token
}

// answer is what the API said.
type answer struct {
	status int
	body   string
}

// code is an error body's.
func (a answer) code() string {
	var body struct {
		Error struct{ Code string } `json:"error"`
	}
	if json.Unmarshal([]byte(a.body), &body) != nil {
		return ""
	}
	return body.Error.Code
}

// call makes one request. Headers are pairs of a name and a value.
func (o *operator) call(ctx context.Context, method, path, token, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, o.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := o.server.Client().Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(raw)}, err
}

func (o *operator) get(t *testing.T, path, token string, headers ...string) answer {
	t.Helper()
	a, err := o.call(t.Context(), http.MethodGet, path, token, "", headers...)
	must(t, err)
	return a
}

func (o *operator) post(t *testing.T, path, token, body string, headers ...string) answer {
	t.Helper()
	a, err := o.call(t.Context(), http.MethodPost, path, token, body, headers...)
	must(t, err)
	return a
}

// eventually waits until the cache has caught up with what a test has written.
func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// known waits until the API knows who the token's caller is.
func (o *operator) known(t *testing.T, token string, headers ...string) {
	t.Helper()
	eventually(t, "the caller is known", func(ctx context.Context) bool {
		a, err := o.call(ctx, http.MethodGet, "/v1/reach", token, "", headers...)
		return err == nil && a.status == http.StatusOK
	})
}

// turns are those of the world whose field has the value.
func (w *world) turns(field, value string) []v1alpha1.Turn {
	w.t.Helper()
	var list v1alpha1.TurnList
	must(w.t, server.client.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingFields{field: value}))
	return list.Items
}

// until waits until the one such Turn is as wanted.
func (w *world) until(field, value string, wanted func(*v1alpha1.Turn) bool) *v1alpha1.Turn {
	w.t.Helper()
	var last *v1alpha1.Turn
	eventually(w.t, "turn with "+field+"="+value, func(context.Context) bool {
		found := w.turns(field, value) //nolint:contextcheck // the test's own bounds it
		if len(found) > 1 {
			w.t.Fatalf("%d turns with %s=%s", len(found), field, value)
		}
		if len(found) == 0 {
			return false
		}
		last = &found[0]
		return wanted(last)
	})
	return last
}

func hasPod(t *v1alpha1.Turn) bool { return t.Status.Pod != nil }

// session is the Turn's, once its pod is bound and the bridge is ready.
func (o *operator) session(t *testing.T, turn *v1alpha1.Turn) *sessions.Session {
	t.Helper()
	var out *sessions.Session
	eventually(t, "the session of "+turn.Name, func(context.Context) bool {
		s, ok := o.registry.Get(sessions.Key{Namespace: turn.Namespace, Turn: turn.Name}, string(turn.UID))
		out = s
		return ok && s.Bound(string(turn.Status.Pod.UID))
	})
	out.Ready(context.Background())
	return out
}

func done(output string) bridge.Outcome {
	return bridge.Outcome{Started: true, Initialized: true, Output: []byte(output), OutputSize: int64(len(output))}
}

// envelope is a message from one agent to another.
func envelope(id, sender, receiver string) contract.MessageEnvelope {
	return contract.MessageEnvelope{
		Version: contract.Version, ID: id, Sender: contract.Agent(sender), Receiver: contract.Agent(receiver), Purpose: "work",
		Payload: contract.Value(`{"n":9007199254740993}`), TraceID: "trace-1", CreatedAt: contract.At(time.Unix(1_800_000_000, 0)),
	}
}

// request is the body of POST /v1/turns.
func request(id, sender, agent string, change ...func(*contract.RemoteExecutionRequest)) string {
	req := contract.RemoteExecutionRequest{
		Version: contract.Version, ExecutionID: id, Agent: contract.Agent(agent), Message: envelope("m-"+id, sender, agent),
	}
	for _, c := range change {
		c(&req)
	}
	return encode(req)
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // what the tests make always encodes
	}
	return string(raw)
}

func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	if a.status != http.StatusOK && a.status != http.StatusAccepted {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	v, err := contract.Unmarshal[T]([]byte(a.body))
	if err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
