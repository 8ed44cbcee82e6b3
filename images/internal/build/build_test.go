package build_test

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/sharedos-dev/operator/images/internal/build"
)

var (
	hello = build.Spec{Name: "hello", Module: "hello", Package: ".", Title: "Hello", Description: "Says hello"}
	amd64 = build.Platform{OS: "linux", Arch: "amd64"}
	arm64 = build.Platform{OS: "linux", Arch: "arm64"}
)

// newBuilder works on a fresh copy of the test program, so that two builders of one
// test have different paths.
func newBuilder(t *testing.T, platforms ...build.Platform) *build.Builder {
	t.Helper()
	root := filepath.Join(t.TempDir(), "checkout")
	if err := os.CopyFS(root, os.DirFS("testdata")); err != nil {
		t.Fatalf("copy test program: %v", err)
	}
	return &build.Builder{
		Root:       root,
		Repository: "sharedos.test",
		Platforms:  platforms,
		Version:    "v1.2.3",
		Created:    time.Unix(1_700_000_000, 0).UTC(),
		Log:        t.Output(),
	}
}

func TestImageIsReproducible(t *testing.T) {
	for _, platform := range []build.Platform{amd64, arm64} {
		t.Run(platform.String(), func(t *testing.T) {
			first := digest(t, newBuilder(t), platform)
			second := digest(t, newBuilder(t), platform)
			if first != second {
				t.Errorf("two builds of the same sources differ: %s and %s", first, second)
			}
			changed := newBuilder(t)
			changed.Version = "v1.2.4"
			if other := digest(t, changed, platform); other == first {
				t.Errorf("another version has the same digest %s", other)
			}
		})
	}
}

// The flags of the person who builds must not reach the image.
func TestImageIgnoresGoEnvironment(t *testing.T) {
	want := digest(t, newBuilder(t), amd64)
	t.Setenv("GOFLAGS", "-tags=extra -buildvcs=true")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	if got := digest(t, newBuilder(t), amd64); got != want {
		t.Errorf("digest with other Go settings = %s, want %s", got, want)
	}
}

func digest(t *testing.T, b *build.Builder, platform build.Platform) v1.Hash {
	t.Helper()
	image, err := b.Image(t.Context(), hello, platform)
	if err != nil {
		t.Fatalf("Image: %v", err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatalf("Digest: %v", err)
	}
	return hash
}

func TestImageConfiguration(t *testing.T) {
	image, err := newBuilder(t).Image(t.Context(), hello, arm64)
	if err != nil {
		t.Fatalf("Image: %v", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatalf("ConfigFile: %v", err)
	}
	want := v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/hello"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Hello",
			"org.opencontainers.image.description": "Says hello",
			"org.opencontainers.image.version":     "v1.2.3",
			"org.opencontainers.image.created":     "2023-11-14T22:13:20Z",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.vendor":      "SharedOS",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("platform = %s/%s, want linux/arm64", config.OS, config.Architecture)
	}
}

func TestImageFiles(t *testing.T) {
	image, err := newBuilder(t).Image(t.Context(), hello, build.Platform{OS: "linux", Arch: runtime.GOARCH})
	if err != nil {
		t.Fatalf("Image: %v", err)
	}
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()

	got := map[string]int64{}
	binary := filepath.Join(t.TempDir(), "hello")
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read layer: %v", err)
		}
		got[header.Name] = header.Mode
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is owned by %d:%d, want root so that the program cannot change it", header.Name, header.Uid, header.Gid)
		}
		if !header.ModTime.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s is dated %s", header.Name, header.ModTime)
		}
		if header.Name == "hello" {
			extract(t, r, binary)
		}
	}
	want := map[string]int64{"etc": 0o755, "etc/group": 0o644, "etc/passwd": 0o644, "hello": 0o555}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files and modes (-want +got):\n%s", diff)
	}
	if runtime.GOOS != "linux" {
		return
	}
	output, err := exec.CommandContext(t.Context(), binary).Output()
	if err != nil || string(output) != "hello v1.2.3\n" {
		t.Errorf("running the binary = %q, %v; want the version compiled in", output, err)
	}
}

func extract(t *testing.T, r io.Reader, path string) {
	t.Helper()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read binary: %v", err)
	}
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatalf("write binary: %v", err)
	}
}

func TestSaveWritesOnlyWhatChanged(t *testing.T) {
	b := newBuilder(t, amd64)
	dir := t.TempDir()
	save := func() build.Result {
		t.Helper()
		results, err := b.Save(t.Context(), hello, dir, "dev")
		if err != nil {
			t.Fatalf("Save: %v", err)
		}
		if len(results) != 1 {
			t.Fatalf("Save answered %d results, want 1", len(results))
		}
		return results[0]
	}

	first := save()
	if first.Unchanged || first.Reference != "sharedos.test/hello:dev" || first.Bytes == 0 {
		t.Errorf("first save = %+v", first)
	}
	tag, err := name.NewTag(first.Reference)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.ImageFromPath(filepath.Join(dir, "hello.tar"), &tag); err != nil {
		t.Errorf("archive does not hold its tag: %v", err)
	}
	if second := save(); !second.Unchanged || second.Digest != first.Digest {
		t.Errorf("second save = %+v, want unchanged with digest %s", second, first.Digest)
	}
	if err := os.WriteFile(first.Path, []byte("half an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := save(); third.Unchanged {
		t.Error("a broken archive was left in place")
	}
	b.Version = "v2"
	if fourth := save(); fourth.Unchanged || fourth.Digest == first.Digest {
		t.Errorf("save of another version = %+v, want it written", fourth)
	}
	leftover, err := filepath.Glob(filepath.Join(dir, "*.new"))
	if err != nil || len(leftover) > 0 {
		t.Errorf("temporary files left: %v, %v", leftover, err)
	}
}

func TestSaveSeveralPlatforms(t *testing.T) {
	dir := t.TempDir()
	results, err := newBuilder(t, amd64, arm64).Save(t.Context(), hello, dir, "dev")
	if err != nil {
		t.Fatalf("Save: %v", err)
	}
	var got []string
	for _, result := range results {
		got = append(got, result.Platform+" "+filepath.Base(result.Path))
	}
	want := []string{"linux/amd64 hello-amd64.tar", "linux/arm64 hello-arm64.tar"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	prefix := strings.TrimPrefix(server.URL, "http://") + "/team"

	for _, test := range []struct {
		name      string
		platforms []build.Platform
	}{
		{"image", []build.Platform{amd64}},
		{"index", []build.Platform{amd64, arm64}},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := newBuilder(t, test.platforms...).Push(t.Context(), hello, prefix, test.name)
			if err != nil {
				t.Fatalf("Push: %v", err)
			}
			ref, err := name.ParseReference(prefix + "/hello:" + test.name)
			if err != nil {
				t.Fatal(err)
			}
			descriptor, err := remote.Get(ref)
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			if descriptor.Digest.String() != result.Digest {
				t.Errorf("registry holds %s, Push answered %s", descriptor.Digest, result.Digest)
			}
			for _, platform := range test.platforms {
				image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: platform.OS, Architecture: platform.Arch}))
				if err != nil {
					t.Fatalf("pull for %s: %v", platform, err)
				}
				config, err := image.ConfigFile()
				if err != nil {
					t.Fatal(err)
				}
				if config.Architecture != platform.Arch {
					t.Errorf("pulled %s for %s", config.Architecture, platform)
				}
			}
		})
	}
}

func TestCompileFailureNamesTheImage(t *testing.T) {
	b := newBuilder(t, amd64)
	b.Log = io.Discard
	broken := hello
	broken.Package = "./absent"
	_, err := b.Image(t.Context(), broken, amd64)
	if err == nil || !strings.Contains(err.Error(), "compile hello for linux/amd64") {
		t.Errorf("Image of an absent package = %v, want an error that names it", err)
	}
}

func TestParsePlatform(t *testing.T) {
	for _, text := range []string{"", "linux", "amd64", "windows/amd64", "linux/386", "linux/amd64/v3", "Linux/amd64"} {
		if got, err := build.ParsePlatform(text); err == nil {
			t.Errorf("ParsePlatform(%q) = %v, want an error", text, got)
		}
	}
	for _, text := range []string{"linux/amd64", "linux/arm64"} {
		got, err := build.ParsePlatform(text)
		if err != nil || got.String() != text {
			t.Errorf("ParsePlatform(%q) = %v, %v", text, got, err)
		}
	}
}
