package files_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/files"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.put("Work/b.md", "bb")
	w.put("Work/a/deep.md", "d")
	w.put("Work/ leading space", "x")
	w.put("Work/.sharedos-tmp-1", "x")
	w.put(".sharedos/meta/x", "x")
	if err := os.Symlink("b.md", filepath.Join(w.dir, "Work", "link")); err != nil {
		t.Fatal(err)
	}
	two := int64(2)
	want := plane.ListOutput{Path: p("Work"), Omitted: 1, Entries: []plane.Entry{
		{Name: "a", Type: plane.TypeDirectory}, {Name: "b.md", Type: plane.TypeFile, Size: &two}, {Name: "link", Type: plane.TypeSymlink},
	}}
	got := must[plane.ListOutput](w, "list", p("Work"), "")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(plane.Entry{}, "ModifiedAt")); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if root := must[plane.ListOutput](w, "list", p(), ""); len(root.Entries) != 1 || root.Entries[0].Name != "Work" {
		t.Errorf("root = %+v, want Work only", root.Entries)
	}
	w.refused("list", p("Work", "b.md"), "", plane.CodeNotADirectory)
	w.refused("list", p("Nothing"), "", plane.CodeNotFound)
	w.refused("list", p("Work"), `{"x":1}`, plane.CodeInvalidInput)
	w.refused("list", p(".sharedos"), "", plane.CodeInvalidPath)
	w.refused("list", p(".ShareDOS"), "", plane.CodeInvalidPath)
}

func TestListIsBounded(t *testing.T) {
	w := newWorld(t, func(o *files.Options) { o.MaxEntries = 3 })
	for _, name := range []string{"d", "b", "a", "c"} {
		w.put(name, name)
	}
	got := must[plane.ListOutput](w, "list", p(), "")
	var names []string
	for _, e := range got.Entries {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || !got.Truncated {
		t.Errorf("truncated = %v, names (-want +got):\n%s", got.Truncated, diff)
	}
}

func TestReadAndStat(t *testing.T) {
	w := newWorld(t)
	w.refused("read", p("Work"), "", plane.CodeNotFound)
	for name, content := range map[string]string{
		"text":    "When does \"Atlas\" ship?\n\tC:\\x \x01 ü 🚢   </script>",
		"empty":   "",
		"invalid": "ab\xffcd",
		"zero":    "ab\x00cd",
		"long":    strings.Repeat("0123456789abcde\n", 1000),
	} {
		w.put("Work/"+name, content)
		got := must[plane.ReadOutput](w, "read", p("Work", name), "")
		text := got.Content
		if got.Encoding == plane.EncodingBase64 {
			raw, err := base64.StdEncoding.DecodeString(got.Content)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		wantEncoding := plane.EncodingUTF8
		if name == "invalid" || name == "zero" {
			wantEncoding = plane.EncodingBase64
		}
		if text != content || got.Encoding != wantEncoding || got.Version != hashOf(content) || got.Size != int64(len(content)) {
			t.Errorf("%s: read = %+v", name, got)
		}
		stat := must[plane.StatOutput](w, "stat", p("Work", name), "")
		if stat.Version != got.Version || *stat.Size != got.Size || !stat.ModifiedAt.Equal(got.ModifiedAt.Time) {
			t.Errorf("%s: stat = %+v", name, stat)
		}
	}
	w.refused("read", p("Work"), "", plane.CodeNotAFile)
	w.refused("read", p(), "", plane.CodeNotAFile)
	w.refused("read", p("Work", "text", "deeper"), "", plane.CodeNotADirectory)
	w.refused("read", p("Work", strings.Repeat("ü", 200)), "", plane.CodeInvalidPath)
	if stat := must[plane.StatOutput](w, "stat", p(), ""); stat.Type != plane.TypeDirectory || stat.Version != "" {
		t.Errorf("stat of root = %+v", stat)
	}
}

func TestReadIsBounded(t *testing.T) {
	w := newWorld(t, func(o *files.Options) { o.MaxRead = 4 })
	w.put("four", "1234")
	w.put("five", "12345")
	must[plane.ReadOutput](w, "read", p("four"), "")
	w.refused("read", p("five"), "", plane.CodeTooLarge)
}

func TestVersionFollowsContentChangedInPlace(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(w.dir, "a"), old, old); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"one", "two", "six"} {
		// Same size and, in the end, the same modification time.
		w.put("a", content)
		if err := os.Chtimes(filepath.Join(w.dir, "a"), old, old); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := must[plane.StatOutput](w, "stat", p("a"), ""); got.Version != hashOf(content) {
				t.Errorf("version of %q is that of something else", content)
			}
		}
	}
}

func TestWorldsAreApart(t *testing.T) {
	w := newWorld(t, func(o *files.Options) { o.World = "" })
	w.put("team-atlas/a", "atlas")
	w.put("other/a", "other")
	if got := must[plane.ReadOutput](w, "read", p("a"), ""); got.Content != "atlas" {
		t.Errorf("content = %q", got.Content)
	}
	for _, name := range []string{".sharedos", "..", ".", "a/b", "", ".git"} {
		op := w.operation("list", p(), "{}")
		op.Context.NamespaceID = name
		if _, err := w.provider.Invoke(t.Context(), op); err == nil {
			t.Errorf("world %q was served", name)
		}
	}
	one := newWorld(t)
	op := one.operation("list", p(), "{}")
	op.Context.NamespaceID = "other"
	if _, err := one.provider.Invoke(t.Context(), op); err == nil {
		t.Error("another world was served")
	}
}

func TestLinksAndDevicesAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put("Private/secret", "secret")
	w.put("Work/ok", "ok")
	for name, target := range map[string]string{
		"abs": outside, "absfile": filepath.Join(outside, "secret"), "up": "../Private", "upfile": "../Private/secret",
		"self": ".", "loop": "loop", "out": "../../" + filepath.Base(outside), "dangling": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(w.dir, "Work", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(w.dir, "Work", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []contract.Path{
		p("Work", "abs", "secret"), p("Work", "up", "secret"), p("Work", "self", "ok"), p("Work", "out", "secret"), p("Work", "loop", "ok"),
	} {
		w.refused("read", path, "", plane.CodeNotADirectory)
		w.refused("stat", path, "", plane.CodeNotADirectory)
		w.refused("list", path[:2], "", plane.CodeNotADirectory)
	}
	for _, name := range []string{"absfile", "upfile", "dangling", "pipe", "self"} {
		w.refused("read", p("Work", name), "", plane.CodeNotAFile)
	}
}

func TestReadOnlyMakesNothing(t *testing.T) {
	w := newWorld(t, func(o *files.Options) { o.World, o.ReadOnly = "", true })
	w.refused("list", p(), "", plane.CodeNotFound)
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) != 0 {
		t.Errorf("root holds %v, %v", entries, err)
	}
}

// FuzzJSONText: the fast writer means what encoding/json reads.
func FuzzJSONText(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte("a\"b\\c\nd\x00e\x1f\x7f ü\xff12345678"))
	f.Fuzz(func(t *testing.T, content []byte) {
		w := newWorld(t)
		w.put("a", string(content))
		raw, code, err := w.do(t.Context(), "read", p("a"), "")
		if err != nil || code != "" {
			t.Fatal(code, err)
		}
		var got plane.ReadOutput
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("not JSON: %v", err)
		}
		if got.Encoding == plane.EncodingUTF8 && got.Content != string(content) {
			t.Errorf("content %q came as %q", content, got.Content)
		}
	})
}
