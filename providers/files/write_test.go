package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/files"
)

// leftovers are the names in the world's folders that are the provider's own.
func (w *world) leftovers() []string {
	var found []string
	err := filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".sharedos-") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return found
}

func TestCreateReplaceAppendDelete(t *testing.T) {
	w := newWorld(t)
	path := p("Work", "deep", "a.md")
	w.refused("replace", path, `{"content":"x"}`, plane.CodeNotFound)
	w.refused("delete", path, ``, plane.CodeNotFound)

	got := must[plane.WriteOutput](w, "create", path, `{"content":"one","metadata":{"n":12345678901234567890}}`)
	if got.Version != hashOf("one") || !got.Created || got.Size != 3 {
		t.Errorf("create = %+v", got)
	}
	if stat := must[plane.StatOutput](w, "stat", path, ""); string(stat.Metadata) != `{"n":12345678901234567890}` {
		t.Errorf("metadata = %s", stat.Metadata)
	}
	w.refused("create", path, `{"content":"two"}`, plane.CodeAlreadyExists)
	w.refused("create", p("Work"), `{"content":"two"}`, plane.CodeAlreadyExists)
	w.refused("create", append(path, "below"), `{"content":"two"}`, plane.CodeNotADirectory)

	w.refused("replace", path, `{"content":"two","expectedVersion":"x"}`, contract.CodeVersionConflict)
	got = must[plane.WriteOutput](w, "replace", path, `{"content":"two","expectedVersion":"`+hashOf("one")+`"}`)
	if got.Version != hashOf("two") || got.Created {
		t.Errorf("replace = %+v", got)
	}
	w.refused("append", path, `{"content":"x","expectedVersion":"`+hashOf("one")+`"}`, contract.CodeVersionConflict)
	got = must[plane.WriteOutput](w, "append", path, `{"content":"AP8=","encoding":"base64","metadata":{"k":"v"}}`)
	if got.Version != hashOf("two\x00\xff") {
		t.Errorf("append = %+v", got)
	}
	if stat := must[plane.StatOutput](w, "stat", path, ""); string(stat.Metadata) != `{"k":"v"}` {
		t.Errorf("metadata = %s", stat.Metadata)
	}
	w.refused("append", p("Work", "new"), `{"content":"x","expectedVersion":"`+hashOf("")+`"}`, contract.CodeVersionConflict)
	if got := must[plane.WriteOutput](w, "append", p("Work", "new"), `{"content":"x"}`); !got.Created {
		t.Errorf("append to nothing = %+v", got)
	}

	w.refused("delete", path, `{"expectedVersion":"`+hashOf("two")+`"}`, contract.CodeVersionConflict)
	w.refused("delete", p("Work"), ``, plane.CodeNotEmpty)
	w.refused("delete", p("Work"), `{"recursive":true,"expectedVersion":"x"}`, plane.CodeInvalidInput)
	must[plane.DeleteOutput](w, "delete", path, `{"expectedVersion":"`+hashOf("two\x00\xff")+`"}`)
	must[plane.WriteOutput](w, "create", path, `{"content":"again"}`)
	if stat := must[plane.StatOutput](w, "stat", path, ""); len(stat.Metadata) > 0 {
		t.Errorf("metadata of the file before survived: %s", stat.Metadata)
	}
	if got := must[plane.DeleteOutput](w, "delete", p("Work"), `{"recursive":true}`); got.Deleted != 2 {
		t.Errorf("deleted %d files, want 2", got.Deleted)
	}
	w.refused("stat", p("Work"), "", plane.CodeNotFound)
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestWritesAreRefused(t *testing.T) {
	w := newWorld(t, func(o *files.Options) { o.MaxFile = 8 })
	must[plane.WriteOutput](w, "create", p("a"), `{"content":"12345678"}`)
	for _, tc := range []struct {
		action string
		path   contract.Path
		input  string
		code   string
	}{
		{"create", p(), `{"content":""}`, plane.CodeInvalidPath},
		{"delete", p(), `{"recursive":true}`, plane.CodeInvalidPath},
		{"create", p("b"), `{"content":"123456789"}`, plane.CodeTooLarge},
		{"append", p("a"), `{"content":"9"}`, plane.CodeTooLarge},
		{"create", p("b"), `{"content":"!","encoding":"base64"}`, plane.CodeInvalidContent},
		{"create", p("b"), `{"content":"a","encoding":"latin1"}`, plane.CodeInvalidInput},
		{"create", p("b"), `{"content":"a","metadata":[]}`, plane.CodeInvalidInput},
		{"create", p("b"), `{"content":"a","metadata":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, plane.CodeInvalidInput},
		{"create", p("b"), `{"Content":"a"}`, plane.CodeInvalidInput},
		{"create", p("b"), `{"content":"a","expectedVersion":"b"}`, plane.CodeInvalidInput},
		{"create", p(".sharedos", "x"), `{"content":"a"}`, plane.CodeInvalidPath},
		{"create", p("Work", ".sharedos-tmp-x"), `{"content":"a"}`, plane.CodeInvalidPath},
		{"create", p("..", "x"), `{"content":"a"}`, plane.CodeInvalidPath},
		{"chmod", p("a"), `{}`, plane.CodeUnsupported},
	} {
		w.refused(tc.action, tc.path, tc.input, tc.code)
	}
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused create made something: %v", err)
	}
	readOnly := newWorld(t, func(o *files.Options) { o.ReadOnly = true })
	readOnly.put("a", "x")
	for _, action := range []string{"create", "replace", "append", "delete", "snapshot:create", "snapshot:restore"} {
		readOnly.refused(action, p("a"), `{}`, plane.CodeReadOnly)
	}
}

func TestCancelledBeforeItCommits(t *testing.T) {
	w := newWorld(t)
	w.put("a", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for action, input := range map[string]string{
		"replace": `{"content":"new"}`, "append": `{"content":"new"}`, "delete": `{}`, "create": `{"content":"new"}`,
	} {
		path := p("a")
		if action == "create" {
			path = p("b")
		}
		if _, code, err := w.do(ctx, action, path, input); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: code %q, error %v; want cancelled", action, code, err)
		}
	}
	if got := must[plane.ListOutput](w, "list", p(), ""); len(got.Entries) != 1 {
		t.Errorf("entries = %+v", got.Entries)
	}
	if got := must[plane.ReadOutput](w, "read", p("a"), ""); got.Content != "old" {
		t.Errorf("content = %q", got.Content)
	}
}

func TestWritesThroughLinksAreRefused(t *testing.T) {
	w := newWorld(t)
	w.put("Private/secret", "secret")
	w.put("Work/ok", "ok")
	for name, target := range map[string]string{"dir": "../Private", "file": "../Private/secret"} {
		if err := os.Symlink(target, filepath.Join(w.dir, "Work", name)); err != nil {
			t.Fatal(err)
		}
	}
	w.refused("create", p("Work", "dir", "x"), `{"content":"x"}`, plane.CodeNotADirectory)
	w.refused("replace", p("Work", "dir", "secret"), `{"content":"x"}`, plane.CodeNotADirectory)
	w.refused("delete", p("Work", "dir", "secret"), ``, plane.CodeNotADirectory)
	w.refused("replace", p("Work", "file"), `{"content":"x"}`, plane.CodeNotAFile)
	w.refused("append", p("Work", "file"), `{"content":"x"}`, plane.CodeNotAFile)
	w.refused("create", p("Work", "file"), `{"content":"x"}`, plane.CodeAlreadyExists)
	must[plane.DeleteOutput](w, "delete", p("Work", "dir"), ``)
	must[plane.DeleteOutput](w, "delete", p("Work"), `{"recursive":true}`)
	if got := must[plane.ReadOutput](w, "read", p("Private", "secret"), ""); got.Content != "secret" {
		t.Errorf("the link's target is now %q", got.Content)
	}
}

// TestConcurrentWritersLoseNothing: appends all survive whole, of creates and of
// replaces with the same expected version exactly one succeeds, and readers see
// only whole states.
func TestConcurrentWritersLoseNothing(t *testing.T) {
	const writers, rounds = 8, 25
	w := newWorld(t)
	must[plane.WriteOutput](w, "create", p("counter"), `{"content":"0"}`)
	var wg sync.WaitGroup
	won := make([]int, writers)
	for i := range writers {
		wg.Go(func() {
			for round := range rounds {
				line := fmt.Sprintf("%d-%d\n", i, round)
				if _, code, err := w.do(t.Context(), "append", p("log"), `{"content":`+quote(line)+`}`); code != "" || err != nil {
					t.Errorf("append: %s %v", code, err)
				}
				_, code, err := w.do(t.Context(), "create", p("once", fmt.Sprint(round)), `{"content":`+quote(line)+`}`)
				if err != nil || (code != "" && code != plane.CodeAlreadyExists) {
					t.Errorf("create: %s %v", code, err)
				}
				for !w.increment(t) {
					continue
				}
				won[i]++
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			content, code, err := w.do(t.Context(), "read", p("log"), "")
			if err != nil || (code != "" && code != plane.CodeNotFound) {
				t.Errorf("read: %s %v", code, err)
			}
			if code == "" && !strings.Contains(string(content), `\n"`) {
				t.Errorf("a reader saw half a line: %s", content)
			}
		}
	})
	wg.Wait()
	lines := strings.Fields(must[plane.ReadOutput](w, "read", p("log"), "").Content)
	slices.Sort(lines)
	if len(slices.Compact(lines)) != writers*rounds {
		t.Errorf("%d different lines, want %d", len(lines), writers*rounds)
	}
	if got := must[plane.ReadOutput](w, "read", p("counter"), "").Content; got != fmt.Sprint(writers*rounds) {
		t.Errorf("counter = %s, want %d", got, writers*rounds)
	}
	if got := must[plane.ListOutput](w, "list", p("once"), ""); len(got.Entries) != rounds {
		t.Errorf("%d files, want %d", len(got.Entries), rounds)
	}
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// increment adds one to the counter if nobody else did meanwhile.
func (w *world) increment(t *testing.T) bool {
	read := must[plane.ReadOutput](w, "read", p("counter"), "")
	var n int
	if _, err := fmt.Sscan(read.Content, &n); err != nil {
		t.Errorf("counter %q: %v", read.Content, err)
		return true
	}
	input := fmt.Sprintf(`{"content":"%d","expectedVersion":"%s"}`, n+1, read.Version)
	_, code, err := w.do(t.Context(), "replace", p("counter"), input)
	if err != nil || (code != "" && code != contract.CodeVersionConflict) {
		t.Errorf("replace: %s %v", code, err)
		return true
	}
	return code == ""
}

func TestReplaceKeepsThePermissions(t *testing.T) {
	w := newWorld(t)
	w.put("run.sh", "x")
	if err := os.Chmod(filepath.Join(w.dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	must[plane.WriteOutput](w, "replace", p("run.sh"), `{"content":"y"}`)
	info, err := os.Stat(filepath.Join(w.dir, "run.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(os.FileMode(0o750), info.Mode()); diff != "" {
		t.Error(diff)
	}
}
