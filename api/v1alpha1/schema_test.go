package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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
	var found []string
	fault := func(text string) { found = append(found, path+": "+text) }
	has := func(keys ...string) bool {
		for _, key := range keys {
			if _, ok := node[key]; ok {
				return true
			}
		}
		return false
	}
	if has("default") {
		fault("has a default")
	}
	switch node["type"] {
	case "string":
		if !has("maxLength", "enum") && node["format"] != "date-time" {
			fault("string without maxLength")
		}
	case "integer":
		if !has("minimum") {
			fault("integer without minimum")
		}
	case "array":
		if !has("maxItems") {
			fault("list without maxItems")
		}
		if !has("x-kubernetes-list-type") {
			fault("list without a list type")
		}
		found = append(found, faults(path+"[]", node["items"].(map[string]any))...)
	case "object":
		if values, ok := node["additionalProperties"].(map[string]any); ok {
			if !has("maxProperties") {
				fault("map without maxProperties")
			}
			if !has("x-kubernetes-map-type") {
				fault("map without a map type")
			}
			found = append(found, faults(path+"{}", values)...)
		}
		properties, _ := node["properties"].(map[string]any)
		for name, property := range properties {
			found = append(found, faults(path+"."+name, property.(map[string]any))...)
		}
	case "boolean":
	default:
		fault("no type")
	}
	return found
}
