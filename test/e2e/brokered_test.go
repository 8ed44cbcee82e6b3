package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

const wikiCredential = "wiki-credential-3f9a61c07d"

// TestBrokeredCredentialNeverNearTheHarness runs an MCP server that asks for a credential
// and a turn that calls it, and records the packets on both sides: the harness's own
// traffic is in the recording, the credential, which reached the server, is in none.
func TestBrokeredCredentialNeverNearTheHarness(t *testing.T) {
	t.Parallel()
	if cluster.Kind != kit.Local {
		t.Skip("packets are recorded on the node, which has to be this machine")
	}
	w := newWorld(t, "brokered")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "wiki", []string{"pages", "atlas"}, "read"))
	server := wikiServer(t, w)
	publishWiki(t, w)

	_, err := w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 8, Calls: []kit.Call{
		{Tool: "wiki.read", Arguments: map[string]any{"page": "atlas"}},
		{Tool: "wiki.read", Arguments: map[string]any{"page": "salaries"}},
	}})
	must(t, err)
	turn, err := w.Until(t.Context(), "t", time.Minute, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	must(t, err)
	pod := podOf(t, w, turn)
	atHarness, atServer := capture(t, pod.Status.PodIP), capture(t, server.Status.PodIP)
	turn, err = w.Finish(t.Context(), "t")
	must(t, err)
	harness, upstream := atHarness(), atServer()

	report, err := kit.ReportOf(turn)
	must(t, err)
	if got := report.Calls[0]; got.IsError || !strings.Contains(got.Text, "the text of atlas") {
		t.Errorf("the granted page: %+v", got)
	}
	if got := report.Calls[1]; got.Status != "denied" || got.Code != "no_matching_grant" {
		t.Errorf("the page without a grant: %+v", got)
	}
	log, err := cluster.Run(t.Context(), "logs", "-n", w.Namespace, server.Name)
	must(t, err)
	if !strings.Contains(log, "authorized call for atlas") || strings.Contains(log, "salaries") {
		t.Errorf("the server's log: %q", log)
	}
	if len(upstream) == 0 || !bytes.Contains(harness, []byte("the text of atlas")) {
		t.Errorf("%d bytes at the server, %d at the harness, without what must be there: the recording proves nothing", len(upstream), len(harness))
	}
	if bytes.Contains(harness, []byte(wikiCredential)) {
		t.Error("the credential passed through the harness pod's network namespace")
	}
	if bytes.Contains(upstream, []byte(wikiCredential)) {
		t.Error("the credential came to the server in clear text")
	}
	for _, object := range []client.Object{pod, turn} {
		raw, err := json.Marshal(object)
		must(t, err)
		if strings.Contains(string(raw), wikiCredential) || strings.Contains(string(raw), "wiki-key") {
			t.Errorf("%T knows the credential or its Secret: %s", object, raw)
		}
	}
	t.Logf("%d bytes recorded at the harness, %d at the server", len(harness), len(upstream))
}

// wikiServer starts the server and waits until it answers.
func wikiServer(t *testing.T, w *kit.World) *corev1.Pod {
	t.Helper()
	labels := map[string]string{"app": "wiki"}
	certificate, key := selfSigned(t, "wiki."+w.Namespace+".svc")
	spec := w.PodSpec()
	spec.ServiceAccountName = ""
	c := &spec.Containers[0]
	c.Name, c.Args = "server", []string{"serve"}
	c.Env = []corev1.EnvVar{{Name: "ADDRESS", Value: ":8443"}}
	for name, from := range map[string]string{"CREDENTIAL": "token", "TLS_CERTIFICATE": corev1.TLSCertKey, "TLS_KEY": corev1.TLSPrivateKeyKey} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "wiki-key"}, Key: from},
		}})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wiki", Labels: labels}, Spec: spec}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wiki-key"}, StringData: map[string]string{
			"token": wikiCredential, corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key,
		}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wiki"}, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 8443}},
		}},
		pod,
	} {
		must(t, cluster.Client.Create(t.Context(), object))
	}
	must(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "", err
	}))
	return pod
}

// selfSigned is the certificate of a server of that name, and its key, in PEM.
func selfSigned(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// publishWiki declares the server's tool as a person would: look at the digest that the
// status shows, then pin it.
func publishWiki(t *testing.T, w *kit.World) {
	t.Helper()
	n := &v1alpha1.ToolNamespace{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wiki"},
		Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true,
			Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Endpoint: v1alpha1.Endpoint{
				Service: &v1alpha1.ServiceReference{Name: "wiki", Port: 8443},
				TLS:     &v1alpha1.TLSConfig{CAFrom: &v1alpha1.CASource{SecretKeyRef: &v1alpha1.KeyReference{Name: "wiki-key", Key: corev1.TLSCertKey}}},
				HeadersFrom: []v1alpha1.HeaderFrom{{
					Name: "Authorization", Prefix: "Bearer ", SecretKeyRef: v1alpha1.KeyReference{Name: "wiki-key", Key: "token"},
				}},
			}}},
			Tools: []v1alpha1.ToolDeclaration{{
				Name: "wiki.read", Upstream: "get-page", ReadWrite: v1alpha1.ToolRead,
				Requirement: v1alpha1.ToolRequirement{Action: "read", Resource: v1alpha1.RequiredResource{
					Namespace: "wiki", Path: "['pages', args.page]", Ceiling: []v1alpha1.PathSegment{"pages"},
				}},
			}},
		},
	}
	must(t, cluster.Client.Create(t.Context(), n))
	until := func(wanted func() bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(n), n)
			return err == nil && wanted(), err
		}); err != nil {
			t.Fatalf("the tool namespace: %v: %+v", err, n.Status)
		}
	}
	tool := func() int {
		return slices.IndexFunc(n.Status.Tools, func(s v1alpha1.ToolStatus) bool { return s.Name == "wiki.read" && s.SchemaDigest != "" })
	}
	until(func() bool { return tool() >= 0 })
	if reason := n.Status.Tools[tool()].Reason; reason != v1alpha1.ToolSchemaNotPinned {
		t.Errorf("a tool without a pin: %s, want %s", reason, v1alpha1.ToolSchemaNotPinned)
	}
	patch := client.MergeFrom(n.DeepCopy())
	n.Spec.Tools[0].SchemaDigest = n.Status.Tools[tool()].SchemaDigest
	must(t, cluster.Client.Patch(t.Context(), n, patch))
	until(func() bool {
		return n.Status.ObservedGeneration == n.Generation && meta.IsStatusConditionTrue(n.Status.Conditions, string(v1alpha1.ToolNamespaceReady)) &&
			tool() >= 0 && n.Status.Tools[tool()].Published
	})
}
