package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/images/internal/build"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"bake"}, {"push"}, {"push", "--tag", "x"}, {"build", "--unknown"}, {"build", "surplus"}} {
		var stdout, stderr strings.Builder
		err := run(t.Context(), args, &stdout, &stderr)
		if !errors.Is(err, errUsage) {
			t.Errorf("run(%q) = %v, want wrong usage", args, err)
		}
		if stderr.Len() == 0 {
			t.Errorf("run(%q) explained nothing", args)
		}
	}
}

func TestList(t *testing.T) {
	var stdout strings.Builder
	if err := run(t.Context(), []string{"list"}, &stdout, t.Output()); err != nil {
		t.Fatalf("run: %v", err)
	}
	for _, name := range []string{"manager", "bridge-sidecar", "files-provider", "example-harness"} {
		if !strings.Contains(stdout.String(), "sharedos.dev/"+name+"\t") {
			t.Errorf("list lacks %s:\n%s", name, stdout.String())
		}
	}
}

func TestSelected(t *testing.T) {
	all := []build.Spec{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	got, err := (&options{only: "c, a"}).selected(all)
	if err != nil {
		t.Fatalf("selected: %v", err)
	}
	if diff := cmp.Diff([]build.Spec{{Name: "a"}, {Name: "c"}}, got); diff != "" {
		t.Errorf("selected (-want +got):\n%s", diff)
	}
	if _, err := (&options{only: "d"}).selected(all); err == nil {
		t.Error("an unknown name was accepted")
	}
}

func TestSourceDate(t *testing.T) {
	for epoch, want := range map[string]time.Time{
		"":           time.Unix(0, 0).UTC(),
		"1700000000": time.Unix(1_700_000_000, 0).UTC(),
	} {
		if got, err := sourceDate(epoch); err != nil || !got.Equal(want) {
			t.Errorf("sourceDate(%q) = %v, %v; want %v", epoch, got, err, want)
		}
	}
	for _, epoch := range []string{"yesterday", "-1", "1.5"} {
		if got, err := sourceDate(epoch); err == nil {
			t.Errorf("sourceDate(%q) = %v, want an error", epoch, got)
		}
	}
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "images", "internal")
	if err := os.MkdirAll(deep, 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "go.mod"), "module github.com/sharedos-dev/operator\n\ngo 1.26.0\n")
	write(t, filepath.Join(root, "images", "go.mod"), "module github.com/sharedos-dev/operator/images\n")
	if got, err := findRoot(deep); err != nil || got != root {
		t.Errorf("findRoot = %q, %v; want %q past the nested module", got, err, root)
	}
	if got, err := findRoot(t.TempDir()); err == nil {
		t.Errorf("findRoot outside a repository = %q, want an error", got)
	}
}

func TestTable(t *testing.T) {
	report := &table{}
	report.add(
		build.Result{Reference: "sharedos.dev/manager:dev", Platform: "linux/amd64", Bytes: 3 << 20, Digest: "sha256:aa", Unchanged: true},
		build.Result{Reference: "r.example/x:1", Platform: "linux/amd64", Bytes: 1 << 19, Digest: "sha256:bb", Pushed: true},
	)
	var got strings.Builder
	if err := report.print(&got); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"IMAGE                     PLATFORM     SIZE     DIGEST     STATE\n" +
		"sharedos.dev/manager:dev  linux/amd64  3.0 MiB  sha256:aa  unchanged\n" +
		"r.example/x:1             linux/amd64  0.5 MiB  sha256:bb  pushed\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
