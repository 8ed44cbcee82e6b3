package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sharedos-dev/operator/providers/files"
)

func TestSeedFillsOnlyWhatIsMissing(t *testing.T) {
	seed, root := t.TempDir(), t.TempDir()
	write := func(dir, name, content string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// As the kubelet mounts a ConfigMap.
	write(seed, "..2026/team/Work/a.md", "seed a")
	write(seed, "..2026/team/Work/b.md", "seed b")
	write(root, "team/Work/b.md", "mine")
	for link, target := range map[string]string{"..data": "..2026", "team": "..data/team"} {
		if err := os.Symlink(target, filepath.Join(seed, link)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{1, 0} {
		if got, err := files.Seed(t.Context(), seed, root); err != nil || got != want {
			t.Errorf("seed %d copied %d files, %v; want %d", i, got, err, want)
		}
	}
	for name, want := range map[string]string{"a.md": "seed a", "b.md": "mine"} {
		if got, err := os.ReadFile(filepath.Join(root, "team/Work", name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("root holds %v, %v", entries, err)
	}
}

func TestSeedStaysInside(t *testing.T) {
	seed, root, outside := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(seed, "team")); err != nil {
		t.Fatal(err)
	}
	if n, err := files.Seed(t.Context(), seed, root); err == nil || n != 0 {
		t.Errorf("seed = %d, %v; want an error", n, err)
	}
}
