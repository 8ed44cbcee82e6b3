package files_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// contents are the files that can be seen on disk, by name, and links by target.
func (w *world) contents() map[string]string {
	w.tb.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, entry os.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".sharedos"):
			return filepath.SkipDir
		case entry.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[name] = "-> " + target
			return err
		case entry.Type().IsRegular():
			raw, err := os.ReadFile(path)
			out[name] = string(raw)
			return err
		}
		return nil
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return out
}

func TestSnapshotAndRestore(t *testing.T) {
	for name, path := range map[string]contract.Path{"folder": p("Work"), "nested folder": p("Work", "sub"), "file": p("Work", "a"), "root": p()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			must[plane.WriteOutput](w, "create", p("Work", "a"), `{"content":"a1","metadata":{"v":1}}`)
			must[plane.WriteOutput](w, "create", p("Work", "sub", "b"), `{"content":"b1","metadata":{"v":1}}`)
			w.put("Other/c", "c1")
			w.put("Work/ odd", "odd")
			if err := os.Symlink("/nowhere", filepath.Join(w.dir, "Work/sub/link")); err != nil {
				t.Fatal(err)
			}
			before := w.contents()

			made := must[plane.SnapshotCreateOutput](w, "snapshot:create", path, `{"label":"first"}`).Snapshot
			must[plane.WriteOutput](w, "replace", p("Work", "a"), `{"content":"a2"}`)
			must[plane.WriteOutput](w, "append", p("Work", "sub", "b"), `{"content":"+","metadata":{"v":2}}`)
			must[plane.WriteOutput](w, "create", p("Work", "sub", "new"), `{"content":"new"}`)
			must[plane.WriteOutput](w, "replace", p("Other", "c"), `{"content":"c2"}`)
			between := w.contents()

			list := must[plane.SnapshotListOutput](w, "snapshot:list", path, "")
			if diff := cmp.Diff([]plane.Snapshot{made}, list.Snapshots); diff != "" {
				t.Errorf("snapshots (-want +got):\n%s", diff)
			}
			out := must[plane.SnapshotRestoreOutput](w, "snapshot:restore", path, `{"snapshotId":"`+made.ID+`"}`)
			if out.Files != made.Files || (made.Type == plane.TypeFile) != (out.Version == hashOf("a1")) {
				t.Errorf("restored %+v of %+v", out, made)
			}
			want := maps.Clone(between)
			maps.DeleteFunc(want, func(name, _ string) bool { return below(name, path) })
			for name, content := range before {
				if below(name, path) {
					want[name] = content
				}
			}
			if diff := cmp.Diff(want, w.contents()); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if below("Work/sub/b", path) {
				if stat := must[plane.StatOutput](w, "stat", p("Work", "sub", "b"), ""); string(stat.Metadata) != `{"v":1}` {
					t.Errorf("metadata = %s", stat.Metadata)
				}
			}
			// A snapshot outlives its own restoring, and a change after that.
			must[plane.DeleteOutput](w, "delete", p("Work"), `{"recursive":true}`)
			must[plane.SnapshotRestoreOutput](w, "snapshot:restore", path, `{"snapshotId":"`+made.ID+`"}`)
			got := w.contents()
			maps.DeleteFunc(got, func(name, _ string) bool { return !below(name, path) })
			maps.DeleteFunc(before, func(name, _ string) bool { return !below(name, path) })
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("files after the second restore (-want +got):\n%s", diff)
			}
			if left := w.leftovers(); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

func below(name string, path contract.Path) bool {
	segments := strings.Split(name, "/")
	return len(segments) >= len(path) && slices.Equal(segments[:len(path)], path)
}

func TestSnapshotsOfOtherPathsAreOutOfReach(t *testing.T) {
	w := newWorld(t)
	w.put("Work/a", "a")
	w.put("Private/a", "secret")
	id := must[plane.SnapshotCreateOutput](w, "snapshot:create", p("Private"), "").Snapshot.ID
	for _, path := range []contract.Path{p("Work"), p(), p("Private", "a"), p("Work", "a")} {
		if list := must[plane.SnapshotListOutput](w, "snapshot:list", path, ""); len(list.Snapshots) != 0 {
			t.Errorf("%v lists %v", path, list.Snapshots)
		}
		w.refused("snapshot:restore", path, `{"snapshotId":"`+id+`"}`, plane.CodeSnapshotNotFound)
	}
	for _, forged := range []string{"../x/" + id, "..", ".sharedos-tmp-x", "", strings.Repeat("x", 300)} {
		w.refused("snapshot:restore", p("Work"), `{"snapshotId":`+quote(forged)+`}`, plane.CodeSnapshotNotFound)
	}
	w.refused("snapshot:create", p("Nothing"), ``, plane.CodeNotFound)
}

func TestRestoreExpectsAVersion(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	id := must[plane.SnapshotCreateOutput](w, "snapshot:create", p("a"), "").Snapshot.ID
	must[plane.WriteOutput](w, "replace", p("a"), `{"content":"two"}`)
	w.refused("snapshot:restore", p("a"), `{"snapshotId":"`+id+`","expectedVersion":"`+hashOf("one")+`"}`, contract.CodeVersionConflict)
	must[plane.SnapshotRestoreOutput](w, "snapshot:restore", p("a"), `{"snapshotId":"`+id+`","expectedVersion":"`+hashOf("two")+`"}`)
	must[plane.DeleteOutput](w, "delete", p("a"), ``)
	w.refused("snapshot:restore", p("a"), `{"snapshotId":"`+id+`","expectedVersion":"`+hashOf("one")+`"}`, contract.CodeVersionConflict)
	// A folder where the file was.
	must[plane.WriteOutput](w, "create", p("a", "b"), `{"content":"b"}`)
	must[plane.SnapshotRestoreOutput](w, "snapshot:restore", p("a"), `{"snapshotId":"`+id+`"}`)
	if diff := cmp.Diff(map[string]string{"a": "one"}, w.contents()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestSnapshotListIsLimited(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	for range 3 {
		must[plane.SnapshotCreateOutput](w, "snapshot:create", p("a"), "")
	}
	list := must[plane.SnapshotListOutput](w, "snapshot:list", p("a"), `{"limit":2}`)
	if len(list.Snapshots) != 2 || !list.Truncated || list.Snapshots[0].CreatedAt.Before(list.Snapshots[1].CreatedAt.Time) {
		t.Errorf("list = %+v", list)
	}
}

// TestSnapshotIsOneState: what is made while writers are busy holds whole files and
// comes back with as many as it says.
func TestSnapshotIsOneState(t *testing.T) {
	w := newWorld(t)
	w.put("Work/n", "0")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 20 {
				if _, code, err := w.do(t.Context(), "create", p("Work", fmt.Sprintf("%d-%d", i, round)), `{"content":"whole"}`); code != "" || err != nil {
					t.Errorf("create: %s %v", code, err)
				}
			}
		})
	}
	var ids []plane.Snapshot
	for range 5 {
		ids = append(ids, must[plane.SnapshotCreateOutput](w, "snapshot:create", p("Work"), "").Snapshot)
	}
	wg.Wait()
	for _, s := range ids {
		must[plane.SnapshotRestoreOutput](w, "snapshot:restore", p("Work"), `{"snapshotId":"`+s.ID+`"}`)
		got := w.contents()
		for name, content := range got {
			if content != "whole" && name != "Work/n" {
				t.Errorf("%s = %q", name, content)
			}
		}
		if len(got) != s.Files {
			t.Errorf("%d files restored of %d", len(got), s.Files)
		}
	}
}
