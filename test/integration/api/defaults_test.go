package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// TestNothingIsDefaulted creates the smallest object of each kind and makes sure
// that it reads back as it was written: GitOps sees no drift, and no authority
// comes from nowhere.
func TestNothingIsDefaulted(t *testing.T) {
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	for _, kind := range kinds() {
		object := build(t, kind.base, "{}", namespace)
		want := object.DeepCopy().Object["spec"]
		create(ctx, t, object)
		if diff := cmp.Diff(want, object.Object["spec"]); diff != "" {
			t.Errorf("%s: the server changed the spec (-want +got):\n%s", object.GetKind(), diff)
		}
		if status, ok := object.Object["status"]; ok {
			t.Errorf("%s: the server made up a status: %v", object.GetKind(), status)
		}
	}
}

// TestZeroValuesAreRefused makes sure that a Go value that nobody filled in is no object.
func TestZeroValuesAreRefused(t *testing.T) {
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "zero"}
	for _, object := range []client.Object{
		&v1alpha1.Principal{ObjectMeta: meta},
		&v1alpha1.Grant{ObjectMeta: meta},
		&v1alpha1.Grant{ObjectMeta: meta, Spec: v1alpha1.GrantSpec{Issuer: "a", Subject: "b", Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: "files"}, // A nil path is not the root.
			Actions:  []v1alpha1.Action{v1alpha1.ActionAny}, Scope: v1alpha1.ScopeDescendants,
		}}}},
		&v1alpha1.ToolNamespace{ObjectMeta: meta},
		&v1alpha1.Harness{ObjectMeta: meta},
		&v1alpha1.Turn{ObjectMeta: meta},
	} {
		if err := server.client.Create(ctx, object, client.DryRunAll); err == nil {
			t.Errorf("%T: accepted", object)
		}
	}
}

// TestGoTypesRoundTrip writes objects with the Go types and reads them back.
func TestGoTypesRoundTrip(t *testing.T) {
	ctx := t.Context()
	meta := metav1.ObjectMeta{Namespace: newNamespace(ctx, t), Name: "typed"}
	uses := int64(9007199254740991)
	want := &v1alpha1.Grant{ObjectMeta: meta, Spec: v1alpha1.GrantSpec{
		Issuer: "alice", Subject: "alice-assistant",
		Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{}},
			Actions:  []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeExact,
		}},
		Constraints: &v1alpha1.GrantConstraints{ExpiresAt: "2026-09-30T17:00:00.123456789+02:00", MaxUses: &uses},
	}}
	turn := &v1alpha1.Turn{ObjectMeta: meta, Spec: v1alpha1.TurnSpec{
		Principal: "alice-assistant", Message: v1alpha1.TurnMessage{Text: "hello"}, Tools: []v1alpha1.ToolName{},
	}}
	for _, object := range []client.Object{want.DeepCopy(), turn.DeepCopy()} {
		if err := server.client.Create(ctx, object, strict); err != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	got := &v1alpha1.Grant{}
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("Grant (-want +got):\n%s", diff)
	}
	gotTurn := &v1alpha1.Turn{}
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(turn), gotTurn); err != nil {
		t.Fatal(err)
	}
	// An empty list of tools asks for none; absent would ask for all.
	if diff := cmp.Diff(turn.Spec, gotTurn.Spec); diff != "" {
		t.Errorf("Turn (-want +got):\n%s", diff)
	}
}
