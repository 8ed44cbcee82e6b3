package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ruleCase is one object to create: the kind's base with a patch over it.
type ruleCase struct {
	name string
	// patch is YAML that is merged over the base: null removes, lists replace.
	patch string
	// want is a part of the refusal, empty when the object must be accepted.
	want string
}

// updateCase is one object to create and then to change.
type updateCase struct {
	name   string
	before string // patch over the base
	after  string // patch over what was created
	want   string // as in ruleCase
}

// decode parses one YAML object.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("parse YAML: %v\n%s", err, text)
	}
	// The API's own JSON numbers are int64 where they can be.
	return runtime.DeepCopyJSON(normalise(object).(map[string]any))
}

// encode writes an object as YAML in one line, which is JSON.
func encode(t *testing.T, object map[string]any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("write JSON: %v", err)
	}
	return string(data)
}

// normalise turns whole float64 into int64, as the API machinery wants them.
func normalise(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = normalise(item)
		}
	case []any:
		for i, item := range value {
			value[i] = normalise(item)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// merge puts a patch over an object, as a JSON merge patch does.
func merge(object, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			below, ok := object[key].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			object[key] = merge(below, value)
		default:
			object[key] = value
		}
	}
	return object
}

// build returns the base with a patch over it, in a namespace.
func build(t *testing.T, base, patch, namespace string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: merge(decode(t, base), decode(t, patch))}
	object.SetNamespace(namespace)
	return object
}

// strict makes an unknown field in a test an error instead of a silent pass.
var strict = client.FieldValidation(metav1.FieldValidationStrict)

// testCreates creates every case's object as a dry run.
func testCreates(t *testing.T, base string, cases []ruleCase) {
	t.Helper()
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	if err := server.client.Create(ctx, build(t, base, "{}", namespace), client.DryRunAll, strict); err != nil {
		t.Fatalf("the base is refused: %v", err)
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			check(t, server.client.Create(ctx, build(t, base, test.patch, namespace), client.DryRunAll, strict), test.want)
		})
	}
}

// testUpdates creates every case's object and updates it.
func testUpdates(t *testing.T, base string, cases []updateCase) {
	t.Helper()
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			object := build(t, base, test.before, namespace)
			create(ctx, t, object)
			merge(object.Object, decode(t, test.after))
			check(t, server.client.Update(ctx, object, strict), test.want)
		})
	}
}

// create makes an object for one test and deletes it afterwards.
func create(ctx context.Context, t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := server.client.Create(ctx, object, strict); err != nil {
		t.Fatalf("create %s: %v", object.GetKind(), err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := server.client.Delete(context.WithoutCancel(ctx), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %s: %v", object.GetKind(), err)
		}
	})
}

// check compares an answer of the API server with what a case wants.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want a refusal with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused for another reason:\n%v\nwant %q", err, want)
	}
}

// repeat writes a YAML list of n items.
func repeat(n int, item string) string {
	return "[" + strings.Repeat(item+", ", n-1) + item + "]"
}

// items writes a YAML list of n items from a format with the item's number in it.
func items(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(list, ", ") + "]"
}
