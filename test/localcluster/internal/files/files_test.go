package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteIfChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	write := func(data string) {
		t.Helper()
		if err := WriteIfChanged(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(file, past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}

	write("a")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(past) {
		t.Error("equal content was written again")
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600 also where the content is equal", info.Mode().Perm())
	}

	write("b")
	if data, err := os.ReadFile(file); err != nil || string(data) != "b" {
		t.Errorf("content = %q, %v, want b", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("folder holds %d files, %v, want only the one", len(entries), err)
	}
	if err := WriteIfChanged(filepath.Join(dir, "none", "f"), nil, 0o600); err == nil {
		t.Error("WriteIfChanged() into a missing folder succeeded")
	}
}
