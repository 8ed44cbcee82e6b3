package validation_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/validation"
)

const namespace = "ns"

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func principal(name, id string) *v1alpha1.Principal {
	return &v1alpha1.Principal{
		TypeMeta:   metav1.TypeMeta{APIVersion: "sharedos.dev/v1alpha1", Kind: "Principal"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, id)},
	}
}

func grant(name string, issuer, subject v1alpha1.ObjectName, change ...func(*v1alpha1.GrantSpec)) *v1alpha1.Grant {
	g := &v1alpha1.Grant{
		TypeMeta:   metav1.TypeMeta{APIVersion: "sharedos.dev/v1alpha1", Kind: "Grant"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: v1alpha1.GrantSpec{Issuer: issuer, Subject: subject, Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{"Work"}},
			Actions:  []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeDescendants,
		}}},
	}
	for _, c := range change {
		c(&g.Spec)
	}
	return g
}

func request(t *testing.T, o client.Object) admission.Request {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Name: o.GetName(), Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
}

func TestDerivedGrants(t *testing.T) {
	s := scheme(t)
	delegable := func(g *v1alpha1.GrantSpec) {
		g.Constraints = &v1alpha1.GrantConstraints{DelegationDepth: new(int64(1))}
	}
	under := func(parent v1alpha1.ObjectName) func(*v1alpha1.GrantSpec) {
		return func(g *v1alpha1.GrantSpec) { g.ParentGrant = parent }
	}
	reader := fake.NewClientBuilder().WithScheme(s).WithObjects(
		principal("a", "a"), principal("b", "b"), principal("c", "c"),
		grant("parent", "a", "b", delegable), grant("closed", "a", "b"),
		grant("loop", "b", "c", under("child")),
	).Build()
	handler := &validation.Grants{Reader: reader, Decoder: admission.NewDecoder(s), Clock: func() time.Time { return noon }}
	for name, c := range map[string]struct {
		grant *v1alpha1.Grant
		says  string // empty: allowed
	}{
		"no parent":      {grant("child", "b", "c"), ""},
		"derived":        {grant("child", "b", "c", under("parent")), ""},
		"not delegable":  {grant("child", "b", "c", under("closed")), "parent_not_delegable"},
		"another issuer": {grant("child", "a", "c", under("parent")), "issuer_not_parent_subject"},
		"no such parent": {grant("child", "b", "c", under("none")), "spec.parentGrant: Not found"},
		"a cycle":        {grant("child", "b", "c", under("loop")), "chain_cycle"},
		"wider": {grant("child", "b", "c", under("parent"), func(g *v1alpha1.GrantSpec) {
			g.Capabilities[0].Resource.Path = []v1alpha1.PathSegment{}
		}), "capability_not_within_parent"},
		"revoking always works": {grant("child", "b", "c", under("none"), func(g *v1alpha1.GrantSpec) { g.Revoked = true }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := handler.Handle(t.Context(), request(t, c.grant))
			message := ""
			if got.Result != nil {
				message = got.Result.Message
			}
			if got.Allowed != (c.says == "") || !strings.Contains(message, c.says) {
				t.Errorf("allowed %t: %s; want %q", got.Allowed, message, c.says)
			}
		})
	}
}

func TestDuplicateAddresses(t *testing.T) {
	s := scheme(t)
	reader := fake.NewClientBuilder().WithScheme(s).WithObjects(principal("first", "same")).Build()
	handler := &validation.Principals{Reader: reader, Decoder: admission.NewDecoder(s)}
	if got := handler.Handle(t.Context(), request(t, principal("second", "same"))); got.Allowed || !strings.Contains(got.Result.Message, "spec.address") {
		t.Errorf("a second Principal of one address: %+v", got)
	}
	for _, p := range []*v1alpha1.Principal{principal("second", "other"), principal("first", "same")} {
		if got := handler.Handle(t.Context(), request(t, p)); !got.Allowed {
			t.Errorf("%s: %+v", p.Name, got.Result)
		}
	}
}
