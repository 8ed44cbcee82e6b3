package toolsources

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/toolsource"
)

const (
	key        = "the-secret-key"
	schema     = `{"type":"object","properties":{"page":{"type":"string"}},"required":["page"]}`
	redirected = `{"type":"object","properties":{"page":{"type":"string"},"to":{"type":"string"}},"required":["page"]}`
)

// wiki is an upstream server of the official SDK that asks for a key.
type wiki struct {
	*mcp.Server
	http *httptest.Server
	down atomic.Bool
	key  atomic.Value
}

func newWiki(t *testing.T) *wiki {
	t.Helper()
	w := &wiki{Server: mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)}
	w.key.Store(key)
	w.offer("get_page", schema)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return w.Server }, nil)
	w.http = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case w.down.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case r.Header.Get("X-Key") != w.key.Load():
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			handler.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(w.http.CloseClientConnections)
	return w
}

// offer adds a tool or replaces it; clients are told that the list changed.
func (w *wiki) offer(name, input string) {
	w.AddTool(&mcp.Tool{Name: name, Description: "Reads a page.", InputSchema: contract.Object(input)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a page"}}}, nil
		})
}

// object is the ToolNamespace of the server.
func (w *wiki) object(namespace string, tools ...v1alpha1.ToolDeclaration) *v1alpha1.ToolNamespace {
	return &v1alpha1.ToolNamespace{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wiki"},
		Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Tools: tools, Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Endpoint: v1alpha1.Endpoint{
			URL:         w.http.URL,
			HeadersFrom: []v1alpha1.HeaderFrom{{Name: "X-Key", SecretKeyRef: v1alpha1.KeyReference{Name: "wiki", Key: "key"}}},
			TLS:         &v1alpha1.TLSConfig{CAFrom: &v1alpha1.CASource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "wiki-ca", Key: "ca.crt"}}},
		}}}},
	}
}

func (w *wiki) authority(namespace string) *corev1.ConfigMap {
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.http.Certificate().Raw})
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wiki-ca"}, Data: map[string]string{"ca.crt": string(raw)}}
}

func secret(namespace, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wiki"}, Data: map[string][]byte{"key": []byte(value)}}
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		must(t, server.client.Create(t.Context(), o))
	}
}

func declare(name string, path string) v1alpha1.ToolDeclaration {
	return v1alpha1.ToolDeclaration{
		Name: v1alpha1.ToolName(name), Upstream: "get_page", ReadWrite: v1alpha1.ToolRead,
		Requirement: v1alpha1.ToolRequirement{Action: "read", Resource: v1alpha1.RequiredResource{Namespace: "pages", Path: path}},
	}
}

// change edits the spec.
func change(t *testing.T, namespace string, edit func(*v1alpha1.ToolNamespaceSpec)) {
	t.Helper()
	n := until(t, namespace, "wiki", func(*v1alpha1.ToolNamespace) bool { return true })
	before := n.DeepCopy()
	edit(&n.Spec)
	must(t, server.client.Patch(t.Context(), n, client.MergeFrom(before)))
}

// toolsOf is what a turn that has the namespace would get.
func toolsOf(t *testing.T, connections *toolsource.Connections, namespace string) ([]kernel.Tool, error) {
	t.Helper()
	return toolsource.Provider{Reader: cluster.Reader(server.client), Connector: connections}.Tools(t.Context(), contract.AccessContext{
		NamespaceID: namespace, EnabledToolNamespaces: []string{"wiki"},
	})
}

// TestFromFirstLookToChange is the life of a declaration: found, reviewed, pinned,
// changed by the server, and reviewed again.
func TestFromFirstLookToChange(t *testing.T) {
	connections := start(t, true)
	w, ns := newWiki(t), world(t, "life")
	w.offer("another", schema)
	create(t, secret(ns, key+"\n"), w.authority(ns), w.object(ns, declare("wiki.page", "['pages', args.page]"), declare("wiki.wrong", "[args.pageId]")))

	n := until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
		return says(n, v1alpha1.ToolNamespaceReady, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonPartlyPublished)
	})
	found := tool(n, "wiki.page")
	if found.Reason != v1alpha1.ToolSchemaNotPinned || found.SchemaDigest == "" || found.Published || tool(n, "another").Reason != v1alpha1.ToolNotDeclared || n.Status.LastDiscovered == nil {
		t.Fatalf("%+v", n.Status)
	}
	change(t, ns, func(s *v1alpha1.ToolNamespaceSpec) {
		for i := range s.Tools {
			s.Tools[i].SchemaDigest = found.SchemaDigest
		}
	})
	n = until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool { return tool(n, "wiki.page").Published })
	if wrong := tool(n, "wiki.wrong"); wrong.Reason != v1alpha1.ToolRequirementInvalid || !strings.Contains(wrong.Message, "undefined field 'pageId'") || *n.Status.ToolCount != 1 {
		t.Errorf("%+v", n.Status)
	}
	tools, err := toolsOf(t, connections, ns)
	if err != nil || len(tools) != 1 || string(tools[0].Definition.InputSchema) == "" {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	switched(t, ns)

	// The server adds an argument, and says that its list changed.
	w.offer("get_page", redirected)
	n = until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool { return tool(n, "wiki.page").Reason == v1alpha1.ToolSchemaChanged })
	if tool(n, "wiki.page").SchemaDigest == found.SchemaDigest {
		t.Error("the digest shown is the old one")
	}
	if tools, err := toolsOf(t, connections, ns); err != nil || len(tools) != 0 {
		t.Errorf("the next turn: %d tools, %v", len(tools), err)
	}
	args, err := kernel.ParseArguments(contract.Object(`{"page":"p"}`))
	must(t, err)
	if out, err := tools[0].Handle(t.Context(), kernel.ToolInvocation{CallID: "c", Arguments: args}); err == nil {
		t.Errorf("a turn that began before: %s", out.Value)
	}
}

// switched checks that being switched off and on is told.
func switched(t *testing.T, ns string) {
	t.Helper()
	before := until(t, ns, "wiki", func(*v1alpha1.ToolNamespace) bool { return true })
	change(t, ns, func(s *v1alpha1.ToolNamespaceSpec) { s.Enabled = false })
	after := until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool { return n.Status.ObservedGeneration == before.Generation+1 })
	if !strings.Contains(v1alpha1.FindCondition(after.Status.Conditions, v1alpha1.ToolNamespaceReady).Message, "spec.enabled is false") {
		t.Errorf("%+v", after.Status.Conditions)
	}
	change(t, ns, func(s *v1alpha1.ToolNamespaceSpec) { s.Enabled = true })
	until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool { return n.Status.ObservedGeneration == n.Generation })
}

// TestFaults: each has its reason, the credential is in none of them, and turns get
// nothing meanwhile.
func TestFaults(t *testing.T) {
	connections := start(t, true)
	w, ns := newWiki(t), world(t, "faults")
	create(t, w.authority(ns), w.object(ns, declare("wiki.page", "['pages', args.page]")))
	faulty := func(reason v1alpha1.ConditionReason) {
		t.Helper()
		n := until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
			return says(n, v1alpha1.ToolNamespaceConnected, metav1.ConditionFalse, reason) &&
				says(n, v1alpha1.ToolNamespaceReady, metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonSourceUnavailable)
		})
		for _, c := range n.Status.Conditions {
			if strings.Contains(c.Message, key) || strings.Contains(c.Message, "another-key") {
				t.Errorf("the credential is in the status: %s", c.Message)
			}
		}
		if tools, err := toolsOf(t, connections, ns); err == nil {
			t.Errorf("%s: a turn gets %d tools", reason, len(tools))
		}
	}
	faulty(v1alpha1.ToolNamespaceReasonCredentialsNotFound)
	create(t, secret(ns, "another-key"))
	faulty(v1alpha1.ToolNamespaceReasonCredentialsInvalid)
	w.down.Store(true)
	faulty(v1alpha1.ToolNamespaceReasonDiscoveryFailed)
	w.down.Store(false)
	must(t, server.client.Update(t.Context(), secret(ns, key)))
	until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
		return says(n, v1alpha1.ToolNamespaceConnected, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonConnected)
	})
	broken := w.authority(ns)
	broken.Data["ca.crt"] = "no certificate"
	must(t, server.client.Update(t.Context(), broken))
	change(t, ns, func(s *v1alpha1.ToolNamespaceSpec) { s.Source.MCP.TimeoutSeconds = new(int32(5)) })
	faulty(v1alpha1.ToolNamespaceReasonCredentialsInvalid)
	must(t, server.client.Update(t.Context(), w.authority(ns)))
	w.http.Close()
	change(t, ns, func(s *v1alpha1.ToolNamespaceSpec) { s.Source.MCP.TimeoutSeconds = new(int32(6)) })
	faulty(v1alpha1.ToolNamespaceReasonConnectionFailed)
}

// TestAddressRefused: loopback is not dialled unless the platform team says so.
func TestAddressRefused(t *testing.T) {
	connections := start(t, false)
	w, ns := newWiki(t), world(t, "refused")
	create(t, secret(ns, key), w.authority(ns), w.object(ns))
	until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
		return says(n, v1alpha1.ToolNamespaceConnected, metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonAddressRefused)
	})
	if _, err := toolsOf(t, connections, ns); err == nil {
		t.Error("a turn gets tools")
	}
	// A deleted object's connections are forgotten.
	must(t, server.client.Delete(t.Context(), w.object(ns)))
	n := w.object(ns)
	n.Generation = 1
	if _, err := connections.Examine(t.Context(), n); err == nil || errors.Is(err, toolsource.ErrUnsupported) {
		t.Errorf("examined again: %v", err)
	}
}

// TestEmptyServer offers nothing, and that is no fault.
func TestEmptyServer(t *testing.T) {
	connections := start(t, true)
	w, ns := newWiki(t), world(t, "empty")
	w.RemoveTools("get_page")
	create(t, secret(ns, key), w.authority(ns), w.object(ns))
	n := until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
		return says(n, v1alpha1.ToolNamespaceReady, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonAvailable)
	})
	if *n.Status.ToolCount != 0 || len(n.Status.Tools) != 0 {
		t.Errorf("%+v", n.Status)
	}
	if tools, err := toolsOf(t, connections, ns); err != nil || len(tools) != 0 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}
