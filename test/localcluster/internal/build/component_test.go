package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKeyFollowsEveryInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", "package main")
	base := Component{Name: "tool", Version: "v1.0.0", Dir: dir}
	key := func(c Component) string {
		t.Helper()
		k, err := c.Key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(base)
	if !strings.HasPrefix(first, "tool-v1.0.0-") {
		t.Errorf("Key() = %q, want name and version in front", first)
	}
	if again := key(base); again != first {
		t.Errorf("Key() changed from %q to %q with nothing changed", first, again)
	}
	write("README.md", "words")
	write("main_test.go", "package main")
	if got := key(base); got != first {
		t.Error("Key() follows files that are not built")
	}
	flagged := base
	flagged.LDFlags = "-X a=b"
	if key(flagged) == first {
		t.Error("Key() ignores linker flags")
	}
	write("go.sum", "x")
	if key(base) == first {
		t.Error("Key() ignores go.sum")
	}
}

func TestKeyOfMissingFolder(t *testing.T) {
	c := Component{Name: "tool", Version: "v1", Dir: filepath.Join(t.TempDir(), "none")}
	if _, err := c.Key(); err == nil {
		t.Error("Key() of a missing folder succeeded")
	}
}

func TestRequiredVersion(t *testing.T) {
	tests := []struct{ name, gomod, want string }{
		{name: "single line", gomod: "module a\nrequire example.com/m v1.2.3\n", want: "v1.2.3"},
		{name: "block", gomod: "require (\n\texample.com/other v9.9.9\n\texample.com/m v1.2.3 // indirect\n)\n", want: "v1.2.3"},
		{name: "replace is not a requirement", gomod: "replace example.com/m => example.com/m v9.0.0\n"},
		{name: "longer path", gomod: "require example.com/m/v2 v2.0.0\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(tt.gomod), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := requiredVersion(dir, "example.com/m")
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("requiredVersion() = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestPinnedModulesAreFound(t *testing.T) {
	source := filepath.Join("..", "..")
	k, err := Kubernetes(source)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(k.LDFlags, "gitVersion="+k.Version+" ") || !strings.Contains(k.LDFlags, "gitMajor=1 ") {
		t.Errorf("LDFlags = %q, want the version %s in them", k.LDFlags, k.Version)
	}
	if _, err := Etcd(source); err != nil {
		t.Error(err)
	}
}

func TestPrograms(t *testing.T) {
	want := []string{"containerd", "containerd-shim-runc-v2", "ctr"}
	if got := Containerd().programs(); !slices.Equal(got, want) {
		t.Errorf("programs() = %q, want %q", got, want)
	}
	linked := Component{Name: "a", Dir: "x", Links: []string{"b"}}
	if got := linked.programs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("programs() = %q, want the program and its link", got)
	}
}

func TestCompleteNeedsEveryProgram(t *testing.T) {
	dir := t.TempDir()
	c := Component{Name: "a", Dir: "x", Links: []string{"b"}}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if complete(dir, c) {
		t.Error("complete() without the link")
	}
	if err := os.Symlink("a", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if !complete(dir, c) {
		t.Error("complete() is false with every program there")
	}
}
