package toolsource_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/toolsource"
	"github.com/sharedos-dev/operator/upstream"
)

// wiki is a small MCP server that asks for a key.
type wiki struct {
	key    atomic.Value
	schema atomic.Value
	calls  atomic.Int32
}

func (s *wiki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := "0"
	if _, rest, ok := strings.Cut(string(body), `"id":`); ok {
		id, _, _ = strings.Cut(rest, ",")
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, strings.TrimRight(id, "}"), result)
	}
	switch {
	case r.Header.Get("X-Key") != s.key.Load():
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(string(body), `"initialize"`):
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`)
	case strings.Contains(string(body), `"tools/list"`):
		answer(fmt.Sprintf(`{"tools":[{"name":"get","inputSchema":%s}]}`, s.schema.Load()))
	case strings.Contains(string(body), `"tools/call"`):
		s.calls.Add(1)
		answer(`{"content":[{"type":"text","text":"a page"}]}`)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func serveWiki(t *testing.T) (*wiki, *v1alpha1.ToolNamespace, *toolsource.Connections, client.Client) {
	t.Helper()
	s := &wiki{}
	s.key.Store("one")
	s.schema.Store(pageSchema)
	web := httptest.NewTLSServer(s)
	t.Cleanup(web.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	n := brokered(declared("wiki.read", "get", digest(t, pageSchema)))
	n.UID, n.Generation = "u1", 1
	n.Spec.Source.MCP.URL = web.URL
	n.Spec.Source.MCP.HeadersFrom = []v1alpha1.HeaderFrom{{Name: "X-Key", SecretKeyRef: v1alpha1.KeyReference{Name: "wiki", Key: "key"}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "wiki"}, Data: map[string][]byte{"key": []byte("one\n")}}
	n.Spec.Source.MCP.TLS = &v1alpha1.TLSConfig{CAFrom: &v1alpha1.CASource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "wiki-ca", Key: "ca.crt"}}}
	authority := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "wiki-ca"}, Data: map[string]string{"ca.crt": string(pemOf(web.Certificate().Raw))},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(n, secret, authority).Build()
	connections := &toolsource.Connections{
		Reader: cluster.Reader(reader), Egress: &egress.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	t.Cleanup(connections.Close)
	return s, n, connections, reader
}

func ac() contract.AccessContext {
	return contract.AccessContext{NamespaceID: "ns", EnabledToolNamespaces: []string{"wiki"}}
}

func invoke(t *testing.T, tool *kernel.Tool) (string, error) {
	t.Helper()
	args, err := kernel.ParseArguments(contract.Object(`{"page":"p"}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := tool.Handle(t.Context(), kernel.ToolInvocation{CallID: "c", Arguments: args})
	return string(out.Value), err
}

func TestABrokeredSource(t *testing.T) {
	t.Parallel()
	s, n, connections, reader := serveWiki(t)
	provider := toolsource.Provider{Reader: cluster.Reader(reader), Connector: connections}
	tools, err := provider.Tools(t.Context(), ac())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	if got, err := invoke(t, &tools[0]); got != `"a page"` || err != nil {
		t.Errorf("%s %v", got, err)
	}
	// The Secret is rotated, and the server with it.
	secret := &corev1.Secret{}
	if err := reader.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "wiki"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["key"] = []byte("two")
	if err := reader.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.key.Store("two")
	if got, err := invoke(t, &tools[0]); got != `"a page"` || err != nil {
		t.Errorf("after rotation: %s %v", got, err)
	}
	// The server's schema changes: the turn's tool is not called, the next turn has none.
	s.schema.Store(`{"type":"object","properties":{"page":{"type":"string"},"to":{"type":"string"}}}`)
	found, err := connections.Examine(t.Context(), n)
	if err != nil || found.Binding.Statuses[0].Reason != v1alpha1.ToolSchemaChanged {
		t.Errorf("%+v %v", found.Binding, err)
	}
	calls := s.calls.Load()
	if _, err := invoke(t, &tools[0]); err == nil || !strings.Contains(err.Error(), upstream.CodeChanged) || s.calls.Load() != calls {
		t.Errorf("the old tool: %v", err)
	}
	if tools, err = provider.Tools(t.Context(), ac()); err != nil || len(tools) != 0 {
		t.Errorf("the next turn: %d tools, %v", len(tools), err)
	}
	// The Secret goes: nothing is used on, and the catalogue fails as a whole.
	if err := reader.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := connections.Examine(t.Context(), n); !errors.Is(err, toolsource.ErrCredentials) {
		t.Errorf("without its Secret: %v", err)
	}
}

func TestASourceIsReplaced(t *testing.T) {
	t.Parallel()
	_, n, connections, reader := serveWiki(t)
	tools, err := toolsource.Provider{Reader: cluster.Reader(reader), Connector: connections}.Tools(t.Context(), ac())
	if err != nil {
		t.Fatal(err)
	}
	n.Spec.Source.MCP.TimeoutSeconds = new(int32(5))
	n.Generation++
	if _, err := connections.Examine(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if _, err := invoke(t, &tools[0]); err == nil || !strings.Contains(err.Error(), upstream.CodeChanged) {
		t.Errorf("a tool of the source that was replaced: %v", err)
	}
	connections.Forget(types.NamespacedName{Namespace: "ns", Name: "wiki"})
	if again, err := connections.Broker(t.Context(), n); err != nil || len(again.Tools) != 1 {
		t.Errorf("%v %v", again, err)
	}
}

// TestSchemasThatNobodyDeclares are not kept, and are there once somebody does.
func TestSchemasThatNobodyDeclares(t *testing.T) {
	t.Parallel()
	_, n, connections, _ := serveWiki(t)
	tools := n.Spec.Tools
	n.Spec.Tools = nil
	found, err := connections.Broker(t.Context(), n)
	if err != nil || len(found.Tools) != 0 || len(found.Statuses) != 1 || string(found.Statuses[0].SchemaDigest) != digest(t, pageSchema) {
		t.Fatalf("%+v, %v", found, err)
	}
	n.Spec.Tools = tools
	n.Generation++
	if found, err = connections.Broker(t.Context(), n); err != nil || len(found.Tools) != 1 || string(found.Tools[0].Definition.InputSchema) != pageSchema {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestASourceIsForgottenMeanwhile: an object that is deleted while it is being looked
// at is answered about as it was, and nothing of it is kept when it is forgotten again.
func TestASourceIsForgottenMeanwhile(t *testing.T) {
	t.Parallel()
	_, n, connections, reader := serveWiki(t)
	n.Spec.Source.MCP.TLS = &v1alpha1.TLSConfig{CAFrom: &v1alpha1.CASource{SecretKeyRef: &v1alpha1.KeyReference{Name: "ca", Key: "ca.crt"}}}
	if err := reader.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca"}, Data: map[string][]byte{"ca.crt": material(t).ProviderCA},
	}); err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Namespace: "ns", Name: "wiki"}
	if _, err := connections.Examine(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.UID = "u2"
	connections.Reader = cluster.Reader(forgetting{Client: reader, forget: sync.OnceFunc(func() { connections.Forget(name) })})
	found, err := connections.Examine(t.Context(), n)
	if err != nil || len(found.Binding.Tools) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// forgetting has the object forgotten when something is read for it.
type forgetting struct {
	client.Client

	forget func()
}

func (f forgetting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	f.forget()
	return f.Client.Get(ctx, key, o, options...)
}

func TestAddressesAreRefused(t *testing.T) {
	t.Parallel()
	_, n, connections, _ := serveWiki(t)
	connections.Egress = nil
	if _, err := connections.Examine(t.Context(), n); err == nil {
		t.Fatal("loopback was dialled")
	} else if _, ok := errors.AsType[*egress.RefusedError](err); !ok {
		t.Errorf("%v, want a refusal", err)
	}
	// The same for a provider.
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := namespace("files", plane(v1alpha1.PlaneFiles))
	p.Spec.Source.Provider.URL = "https://" + listener.Addr().String()
	p.Spec.Source.Provider.TLS = &v1alpha1.TLSConfig{}
	connections.Material = func() (toolsource.Material, error) { return material(t), nil }
	if err := connections.Probe(t.Context(), p); err == nil {
		t.Error("loopback was probed")
	} else if _, ok := errors.AsType[*egress.RefusedError](err); !ok {
		t.Errorf("%v, want a refusal", err)
	}
}

// material is an authority of no importance.
func material(t *testing.T) toolsource.Material {
	t.Helper()
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	return toolsource.Material{ProviderCA: pemOf(web.Certificate().Raw), Certificate: web.TLS.Certificates[0]}
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
