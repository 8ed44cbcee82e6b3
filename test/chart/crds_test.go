package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// annotationLimit is what all annotations of an object may have together, bytes.
// Client-side apply keeps the whole object in one of them.
const annotationLimit = 256 << 10

// The definitions can be applied in every way, the client's included, and have room to
// grow: none uses more than half of what the annotation may have.
func TestDefinitionsAreSmall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "sharedos.dev_*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kept, err := json.Marshal(&crd)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes in a file, %d bytes as kept by client-side apply", filepath.Base(file), len(raw), len(kept))
		if size := max(len(raw), len(kept)); size > annotationLimit/2 {
			t.Errorf("%s has %d bytes, more than half of %d: shorten descriptions", filepath.Base(file), size, annotationLimit)
		}
	}
}
