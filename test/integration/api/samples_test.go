package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const samplesPath = root + "/config/samples"

// TestSamplesApplyTwice applies every sample as kubectl apply --server-side does,
// twice, and makes sure that the second time changes nothing and that the server
// added nothing to a spec.
func TestSamplesApplyTwice(t *testing.T) {
	objects := readSamples(t)
	ctx := t.Context()
	versions := map[string]string{}
	for round := range 2 {
		for _, sample := range objects {
			object := sample.DeepCopy()
			if err := apply(ctx, object); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			id := object.GetKind() + "/" + object.GetName()
			if round == 1 && versions[id] != object.GetResourceVersion() {
				t.Errorf("%s changed when it was applied again: %s, then %s", id, versions[id], object.GetResourceVersion())
			}
			versions[id] = object.GetResourceVersion()
			if object.GroupVersionKind().Group != "sharedos.dev" {
				continue
			}
			if diff := cmp.Diff(sample.Object["spec"], object.Object["spec"]); diff != "" {
				t.Errorf("the server changed the spec of %s (-sample +server):\n%s", id, diff)
			}
		}
	}
	if len(versions) != len(objects) {
		t.Errorf("%d samples have %d names: %v", len(objects), len(versions), slices.Sorted(maps.Keys(versions)))
	}
}

// TestSamplesShowEverySource makes sure that there is a sample of each source of
// a ToolNamespace.
func TestSamplesShowEverySource(t *testing.T) {
	seen := map[string]bool{}
	for _, object := range readSamples(t) {
		source, _, err := unstructured.NestedMap(object.Object, "spec", "source")
		if err == nil && object.GetKind() == "ToolNamespace" {
			for kind := range source {
				seen[kind] = true
			}
		}
	}
	if diff := cmp.Diff([]string{"builtin", "mcp", "provider"}, slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// secondRun is applied by hand, after a Grant was edited.
const secondRun = "51-turn-status-report-2.yaml"

// TestKustomizationListsTheSamples makes sure that no numbered file is forgotten,
// but for the one that is for afterwards.
func TestKustomizationListsTheSamples(t *testing.T) {
	data, err := os.ReadFile(samplesPath + "/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(samplesPath + "/[0-9]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		paths[i] = filepath.Base(path)
	}
	if diff := cmp.Diff(paths, append(slices.Clone(kustomization.Resources), secondRun)); diff != "" {
		t.Errorf("resources (-files +kustomization):\n%s", diff)
	}
}

// apply is one server-side apply without force.
func apply(ctx context.Context, object *unstructured.Unstructured) error {
	err := server.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("samples"))
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// readSamples returns the objects of every sample file in the order they are applied in.
func readSamples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	numbered, err := filepath.Glob(samplesPath + "/[0-9]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(samplesPath + "/more/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, path := range slices.Concat(numbered, more) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(data)), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("parse %s: %v", path, err)
			}
			objects = append(objects, object)
		}
	}
	if len(objects) < 12 {
		t.Fatalf("found only %d samples", len(objects))
	}
	return objects
}
