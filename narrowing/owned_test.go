package narrowing

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

func entry(manager, fields string, change ...func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
	for _, c := range change {
		c(&e)
	}
	return e
}

func TestOwned(t *testing.T) {
	const ours = `{"f:spec":{"f:disabledToolNamespaces":{".":{},"v:\"repo\"":{},"v:\"files\"":{}},"f:harness":{}}}`
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    []string
		fails   bool
	}{
		"nothing":              {want: []string{}},
		"ours":                 {entries: []metav1.ManagedFieldsEntry{entry(FieldOwner, ours)}, want: []string{"files", "repo"}},
		"another's":            {entries: []metav1.ManagedFieldsEntry{entry("git", ours)}, want: []string{}},
		"not applied":          {entries: []metav1.ManagedFieldsEntry{entry(FieldOwner, ours, func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationUpdate })}, want: []string{}},
		"of a subresource":     {entries: []metav1.ManagedFieldsEntry{entry(FieldOwner, ours, func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" })}, want: []string{}},
		"what is not JSON":     {entries: []metav1.ManagedFieldsEntry{entry(FieldOwner, `{`)}, fails: true},
		"a value that is none": {entries: []metav1.ManagedFieldsEntry{entry(FieldOwner, `{"f:spec":{"f:disabledToolNamespaces":{"v:x":{}}}}`)}, fails: true},
	} {
		got, err := owned(&v1alpha1.Principal{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}})
		if (err != nil) != c.fails || !c.fails && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
}

func TestApply(t *testing.T) {
	var namespaces []v1alpha1.ToolNamespace
	for _, name := range []string{"files", "repo", "crm"} {
		namespaces = append(namespaces, v1alpha1.ToolNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	mine := []string{"files", "gone"}
	got := apply(mine, namespaces, contract.ToolNamespaceUpdate{Enable: []string{"files", "void"}, Disable: []string{"repo", "crm", "none"}})
	if want := []string{"crm", "gone", "repo"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.Equal(mine, []string{"files", "gone"}) {
		t.Errorf("the entries that were read changed: %v", mine)
	}
}
