package wrapper

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryKills(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       int64
	}{
		"version 2":        {"memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", 2},
		"version 1":        {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", 4},
		"an older version": {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0},
		"nothing in it":    {"memory.events", "", 0},
		"not a number":     {"memory.events", "oom_kill many\n", 0},
		"below nothing":    {"memory.events", "oom_kill -1\n", 0},
		"too long":         {"memory.events", string(bytes.Repeat([]byte("x"), maxCgroupFile)) + "\noom_kill 1\n", 0},
		"no such file":     {"memory.other", "oom_kill 1\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := memoryKills(root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// TestOutOfMemoryIsReported: what the system did while the command ran is told, what it
// did before is not, and a command that went on all the same has not failed by it.
func TestOutOfMemoryIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		before, after, code string
		want                bool
	}{
		"while it ran":          {"oom_kill 0\n", "oom_kill 1\n", "137", true},
		"a process of it":       {"oom_kill 0\n", "oom_kill 1\n", "1", true},
		"before":                {"oom_kill 1\n", "oom_kill 1\n", "137", false},
		"it went on":            {"oom_kill 0\n", "oom_kill 1\n", "0", false},
		"killed by somebody":    {"oom_kill 0\n", "oom_kill 0\n", "137", false},
		"before and once again": {"oom_kill 1\n", "oom_kill 2\n", "137", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "memory.events")
			if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			f := &fakeBridge{}
			Run(t.Context(), Options{
				Args: childArgs("write", file, c.after, c.code), Bridge: f,
				Stdin: os.Stdin, Stderr: os.Stderr, Stdout: &bytes.Buffer{}, cgroup: root,
			})
			if got := f.only(t); got.OOMKilled != c.want {
				t.Errorf("%+v, want out of memory %t", got, c.want)
			}
		})
	}
}
