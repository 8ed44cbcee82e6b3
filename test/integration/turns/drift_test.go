package turns

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// applier is the field manager of a GitOps tool.
const applier = "gitops"

// applyAll applies manifests as a GitOps tool does, without force, and returns what
// the server made of them.
func applyAll(t *testing.T, manifests []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	out := make([]*unstructured.Unstructured, 0, len(manifests))
	for _, m := range manifests {
		o := m.DeepCopy()
		must(t, server.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(applier)))
		must(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(m), o))
		out = append(out, o)
	}
	return out
}

// fieldsOf is what the applier owns of an object.
func fieldsOf(o *unstructured.Unstructured) string {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == applier && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry.FieldsV1.GetRawString()
		}
	}
	return ""
}

// TestApplyingAgainChangesNothing applies all kinds, lets the manager look at them and
// run a turn to its end, and applies them again: the applier loses no field, no spec and
// no generation changes, and nothing conflicts.
func TestApplyingAgainChangesNothing(t *testing.T) {
	start(t)
	w := newWorld(t, "drift")
	w.mayRun()
	uses := int64(5)
	objects := []client.Object{
		&v1alpha1.Principal{ObjectMeta: w.meta("carol"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, "carol")}},
		&v1alpha1.Grant{ObjectMeta: w.meta("bounded"), Spec: v1alpha1.GrantSpec{
			Issuer: "alice", Subject: "carol", Constraints: &v1alpha1.GrantConstraints{MaxUses: &uses},
			Capabilities: []v1alpha1.Capability{{
				Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{"Work"}},
				Actions:  []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeDescendants,
			}},
		}},
		&v1alpha1.ToolNamespace{ObjectMeta: w.meta("messages"), Spec: v1alpha1.ToolNamespaceSpec{
			Source: v1alpha1.ToolSource{Builtin: v1alpha1.BuiltinMessages},
		}},
		&v1alpha1.Harness{ObjectMeta: w.meta("other"), Spec: v1alpha1.HarnessSpec{Type: v1alpha1.HarnessCustom, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: v1alpha1.ContainerHarness, Image: "i", Command: []string{"/agent"}}},
		}}}},
		&v1alpha1.Turn{ObjectMeta: w.meta("t"), Spec: v1alpha1.TurnSpec{Principal: "carol", Harness: "h", Message: v1alpha1.TurnMessage{Text: "go"}}},
	}
	manifests := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must(t, err)
		gvk, err := server.client.GroupVersionKindFor(o)
		must(t, err)
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		delete(u.Object, "status")
		manifests = append(manifests, u)
	}
	first := applyAll(t, manifests)
	w.ended("t") // carol is no agent: the turn is refused, and its status written
	second := applyAll(t, manifests)
	for i, before := range first {
		after := second[i]
		if fieldsOf(before) == "" || fieldsOf(before) != fieldsOf(after) {
			t.Errorf("%s: the applier's fields were %s, are %s", before.GetKind(), fieldsOf(before), fieldsOf(after))
		}
		if before.GetGeneration() != after.GetGeneration() {
			t.Errorf("%s: generation %d, then %d", before.GetKind(), before.GetGeneration(), after.GetGeneration())
		}
		if diff := cmp.Diff(manifests[i].Object["spec"], after.Object["spec"]); diff != "" {
			t.Errorf("%s (-applied +server):\n%s", before.GetKind(), diff)
		}
	}
}
