package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The copies in the chart and the rendered manifests are what the sync script would
// make now. It runs on a copy of both folders.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	binary, err := helmBinary()
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	for _, folder := range []string{"charts", "config"} {
		if err := os.CopyFS(filepath.Join(copied, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(copied, "charts/sharedos/hack/sync.sh"))
	cmd.Env = append(os.Environ(), "HELM="+binary)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sync: %v\n%s", err, output)
	}
	for _, folder := range []string{"charts/sharedos/files", "config"} {
		have := contents(t, filepath.Join(root, folder))
		want := contents(t, filepath.Join(copied, folder))
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s is stale, run `make manifests` (-want +have):\n%s", folder, diff)
		}
	}
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// `kubectl apply -k config/default` sends what `helm install` sends, and the
// namespace.
func TestKustomizeEqualsHelm(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", "default"))
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	fromKustomize := names(t, decode(t, string(text)))
	fromHelm := append(names(t, render(t, "")), "Namespace/"+namespace)
	slices.Sort(fromKustomize)
	slices.Sort(fromHelm)
	if diff := cmp.Diff(fromHelm, fromKustomize); diff != "" {
		t.Errorf("objects (-helm +kustomize):\n%s", diff)
	}
}
