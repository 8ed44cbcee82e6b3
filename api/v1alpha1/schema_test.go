package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// maxCRDSize is what client-side apply can keep in its annotation.
const maxCRDSize = 256 << 10

// readCRDs returns the generated CRDs by file name.
func readCRDs(t *testing.T) map[string]map[string]any {
	t.Helper()
	paths, err := filepath.Glob("../../config/crd/sharedos.dev_*.yaml")
	if err != nil || len(paths) != 5 {
		t.Fatalf("want the 5 CRDs, found %v (%v); run make manifests", paths, err)
	}
	crds := map[string]map[string]any{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		crds[filepath.Base(path)] = crd
	}
	return crds
}

func TestCRDsFitIntoAnAnnotation(t *testing.T) {
	for name, crd := range readCRDs(t) {
		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, len(data))
		if len(data) >= maxCRDSize {
			t.Errorf("%s has %d bytes, client-side apply takes less than %d", name, len(data), maxCRDSize)
		}
	}
}

// TestSchemasAreBounded keeps the promises of the package comment for every
// field of every kind: no unbounded value, no default, and a merge strategy.
func TestSchemasAreBounded(t *testing.T) {
	for name, crd := range readCRDs(t) {
		versions := crd["spec"].(map[string]any)["versions"].([]any)
		for _, version := range versions {
			schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			properties := schema["properties"].(map[string]any)
			for _, field := range []string{"spec", "status"} {
				for _, fault := range faults(field, properties[field].(map[string]any)) {
					t.Errorf("%s: %s", name, fault)
				}
			}
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"text": map[string]any{"type": "string", "default": "x"},
		"list": map[string]any{"type": "array", "items": map[string]any{"type": "string", "maxLength": 1.0}},
		"map":  map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "boolean"}},
		"int":  map[string]any{"type": "integer"},
		"any":  map[string]any{},
	}}
	if got := faults("spec", schema); len(got) != 8 {
		t.Errorf("found %d faults, want 8: %q", len(got), got)
	}
}

// faults returns what a schema node and those below it fail to promise.
func faults(path string, node map[string]any) []string {
	found := ownFaults(path, node)
	for name, property := range below(node, "properties") {
		found = append(found, faults(path+"."+name, property.(map[string]any))...)
	}
	if items := below(node, "items"); items != nil {
		found = append(found, faults(path+"[]", items)...)
	}
	if values := below(node, "additionalProperties"); values != nil {
		found = append(found, faults(path+"{}", values)...)
	}
	return found
}

// below returns the object under a key of a schema node, or nil.
func below(node map[string]any, key string) map[string]any {
	value, _ := node[key].(map[string]any)
	return value
}

// ownFaults returns what one schema node fails to promise.
func ownFaults(path string, node map[string]any) []string {
	var required []string // Each of these keys, with its alternatives split by "|".
	switch node["type"] {
	case "string":
		required = []string{"maxLength|enum"}
		if node["format"] == "date-time" {
			required = nil
		}
	case "integer":
		required = []string{"minimum"}
	case "array":
		required = []string{"maxItems", "x-kubernetes-list-type"}
	case "object":
		if below(node, "additionalProperties") != nil {
			required = []string{"maxProperties", "x-kubernetes-map-type"}
		}
	case "boolean":
	default:
		required = []string{"type"}
	}
	var found []string
	if _, ok := node["default"]; ok {
		found = append(found, path+": has a default")
	}
	for _, keys := range required {
		if !slices.ContainsFunc(strings.Split(keys, "|"), func(key string) bool { _, ok := node[key]; return ok }) {
			found = append(found, path+": lacks "+keys)
		}
	}
	return found
}
