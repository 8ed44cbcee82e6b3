package chart

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

const (
	root      = "../.."
	chartPath = root + "/charts/sharedos"
	release   = "sharedos"
	namespace = "sharedos-system"
)

// helmBinary answers the helm to test with, built at most once.
var helmBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("HELM"); path != "" {
		return path, nil
	}
	path, err := filepath.Abs(filepath.Join(root, ".cache", "bin", "helm"))
	if err != nil {
		return "", fmt.Errorf("resolve helm: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", path, "helm.sh/helm/v4/cmd/helm")
	cmd.Dir = filepath.Join(root, "tools", "helm")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, output)
	}
	return path, nil
})

// helm runs one helm command and answers its standard output.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := helmBinary()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	// Nothing of the person who runs the tests may change what is rendered.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", args[0], err, stderr.String())
	}
	return stdout.String(), nil
}

// render answers the chart's objects for the values, given as YAML.
func render(t *testing.T, values string) objects {
	t.Helper()
	text, err := tryRender(t, release, values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func tryRender(t *testing.T, release, values string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return helm(t, "template", release, chartPath, "--namespace", namespace, "--values", file)
}

// objects are what a chart renders to.
type objects []runtime.Object

// scheme knows every type that may be rendered, except those of other operators.
var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(s), apiextensionsv1.AddToScheme(s))
	return s, err
})

// decode reads every document into its Go type; a field the type does not have, or
// one that is there twice, fails the test.
func decode(t *testing.T, text string) objects {
	t.Helper()
	s, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true, Strict: true})
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var all objects
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("split documents: %v", err)
		}
		if blank(document) {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) && bytes.Contains(document, []byte("apiVersion: monitoring.coreos.com/v1")) {
			u := &unstructured.Unstructured{}
			_, _, err = strict.Decode(document, nil, u)
			object = u
		}
		if err != nil {
			t.Errorf("decode: %v\n%s", err, document)
			continue
		}
		all = append(all, object)
	}
}

// blank says whether a document has only comments.
func blank(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// find answers the object of type T with that name.
func find[T runtime.Object](t *testing.T, all objects, name string) T {
	t.Helper()
	var found []T
	for _, object := range all {
		typed, ok := object.(T)
		if !ok {
			continue
		}
		if accessor(t, object).GetName() == name {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		var zero T
		t.Fatalf("%d objects %T are named %q, want 1", len(found), zero, name)
	}
	return found[0]
}

// list answers every object of type T.
func list[T runtime.Object](all objects) []T {
	var found []T
	for _, object := range all {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func accessor(t *testing.T, object runtime.Object) interface {
	GetName() string
	GetNamespace() string
	GetLabels() map[string]string
	GetAnnotations() map[string]string
} {
	t.Helper()
	a, err := meta.Accessor(object)
	if err != nil {
		t.Fatalf("access metadata: %v", err)
	}
	return a
}

// names answers "Kind/name" of every object.
func names(t *testing.T, all objects) []string {
	t.Helper()
	var result []string
	for _, object := range all {
		result = append(result, object.GetObjectKind().GroupVersionKind().Kind+"/"+accessor(t, object).GetName())
	}
	return result
}
