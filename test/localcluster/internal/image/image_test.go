package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "tool")
	if err := os.WriteFile(program, []byte("static program"), 0o700); err != nil {
		t.Fatal(err)
	}
	const ref = "example.test/tool:v1"
	first, second := filepath.Join(dir, "images", "a.tar"), filepath.Join(dir, "b.tar")
	for _, file := range []string{first, second} {
		if err := WriteArchive(file, program, ref); err != nil {
			t.Fatal(err)
		}
	}
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives of one program differ (%v)", err)
	}

	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(first, &tag)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cfg.Config.Entrypoint, []string{"/tool"}) || cfg.Config.User != nobody || cfg.OS != "linux" {
		t.Errorf("config = %+v", cfg.Config)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %d, %v, want 1", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(content)
	header, err := r.Next()
	if err != nil || header.Name != "tool" || header.FileInfo().Mode().Perm() != 0o755 {
		t.Fatalf("first file = %+v, %v", header, err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "static program" {
		t.Errorf("content = %q, %v", got, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("more than one file in the image (%v)", err)
	}
}

func TestWriteArchiveRefusesBadNames(t *testing.T) {
	if err := WriteArchive(filepath.Join(t.TempDir(), "x.tar"), "/bin/true", "Not A Name"); err == nil {
		t.Error("WriteArchive() took a name that is none")
	}
}
