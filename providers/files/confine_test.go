package files_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// actions with an input that would succeed somewhere.
var actions = []struct{ action, input string }{
	{"list", `{}`}, {"stat", `{}`}, {"read", `{}`},
	{"create", `{"content":"mine"}`}, {"replace", `{"content":"mine"}`}, {"append", `{"content":"mine"}`},
	{"delete", `{}`}, {"delete", `{"recursive":true}`},
	{"grep", `{"pattern":"e"}`}, {"snapshot:create", `{}`}, {"snapshot:list", `{}`},
}

// maze is a tree with every kind of link out of Work, beside a tree that must stay
// untouched and unseen.
func maze(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb)
	outside := tb.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("secret outside"), 0o600); err != nil {
		tb.Fatal(err)
	}
	w.put("Private/file", "secret inside")
	w.put("Private/dir/file", "secret inside")
	w.put("Work/file", "fine")
	w.put("Work/dir/file", "fine")
	for i, target := range []string{
		outside, "../Private", "../Private/file", filepath.Join(outside, "file"), "..", "../..", "/", "link0", "link8",
		"/proc/self/root", "/proc/self/cwd", w.dir, filepath.Join(w.dir, "Private"),
	} {
		for _, folder := range []string{"Work", "Work/dir"} {
			if err := os.Symlink(target, filepath.Join(w.dir, folder, fmt.Sprintf("link%d", i))); err != nil {
				tb.Fatal(err)
			}
		}
	}
	tb.Cleanup(func() {
		for name, want := range map[string]string{
			filepath.Join(outside, "file"):           "secret outside",
			filepath.Join(w.dir, "Private/file"):     "secret inside",
			filepath.Join(w.dir, "Private/dir/file"): "secret inside",
		} {
			if got, err := os.ReadFile(name); err != nil || string(got) != want {
				tb.Errorf("%s is now %q, %v", name, got, err)
			}
		}
		for _, dir := range []string{outside, filepath.Join(w.dir, "Private")} {
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > 2 {
				tb.Errorf("%s holds %v, %v", dir, entries, err)
			}
		}
	})
	return w
}

// attempt runs one action on a path below Work and checks that nothing of the
// secrets comes back.
func (w *world) attempt(action, input string, path contract.Path) {
	w.tb.Helper()
	out, _, err := w.do(w.tb.Context(), action, path, input)
	if strings.Contains(string(out), "secret") {
		w.tb.Errorf("%s %q answered %s", action, path, out)
	}
	if err != nil {
		w.tb.Logf("%s %q: %v", action, path, err)
	}
}

// TestConfinement drives random paths below Work through every action.
func TestConfinement(t *testing.T) {
	w := maze(t)
	names := []string{"file", "dir", "new", "..", ".", "", "/", "Private", "../Private", `..\Private`, "file\x00", "Work", "proc", "%2e%2e"}
	for i := range 13 {
		names = append(names, fmt.Sprintf("link%d", i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		path := p("Work")
		for range 1 + random.IntN(4) {
			path = append(path, names[random.IntN(len(names))])
		}
		a := actions[random.IntN(len(actions))]
		w.attempt(a.action, a.input, path)
	}
}

// FuzzPath lets the fuzzer write the segments.
func FuzzPath(f *testing.F) {
	f.Add("file", "..", uint8(0))
	f.Add("link1", "file", uint8(3))
	f.Add("dir/../../Private", "file", uint8(6))
	f.Fuzz(func(t *testing.T, first, second string, n uint8) {
		a := actions[int(n)%len(actions)]
		maze(t).attempt(a.action, a.input, p("Work", first, second))
	})
}
