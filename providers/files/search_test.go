package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/files/fulltext"
)

// searching is a world with a full-text index. The result runs its scans until it
// is called; the trees are filled before.
func searching(tb testing.TB, fill func(w *world), change ...func(*files.Options)) *world {
	tb.Helper()
	w := newWorld(tb, append(change, func(o *files.Options) {
		o.OpenIndex = fulltext.Open
		fill(&world{tb: tb, dir: o.Root})
	})...)
	ctx, cancel := context.WithCancel(tb.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.provider.Run(ctx) })
	tb.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

// hits are the paths that a search finds, best first.
func (w *world) hits(path contract.Path, query string) []string {
	w.tb.Helper()
	out := []string{}
	for _, hit := range must[plane.SearchOutput](w, "search", path, `{"query":`+quote(query)+`}`).Hits {
		out = append(out, filepath.Join(hit.Path...))
	}
	return out
}

func (w *world) found(path contract.Path, query string, want ...string) {
	w.tb.Helper()
	if diff := cmp.Diff(append([]string{}, want...), w.hits(path, query)); diff != "" {
		w.tb.Errorf("search %v %q (-want +got):\n%s", path, query, diff)
	}
}

func TestSearchRanksAndShows(t *testing.T) {
	w := searching(t, func(w *world) {
		w.put("Work/atlas/plan.md", "Intro\nWhen will Atlas ship?\nAtlas ships 2026-09-30.\n")
		w.put("Work/other.md", "A long text about many things, of which the atlas is one, and there is more to say about shoes and cabbages and kings.\n")
		w.put("Work/atlas/bin", "atlas\x00ship")
		w.put("Work2/secret.md", "Atlas ships secretly")
		w.put("Private/secret.md", "Atlas ships secretly")
	})
	got := must[plane.SearchOutput](w, "search", p("Work"), `{"query":"ATLAS shipping date?"}`)
	want := plane.SearchOutput{Path: p("Work"), Total: 3, Hits: []plane.SearchHit{
		{Path: p("Work", "atlas", "plan.md"), Line: 2, Text: "When will Atlas ship?\nAtlas ships 2026-09-30."},
	}}
	if len(got.Hits) != 3 {
		t.Fatalf("hits = %+v", got)
	}
	got.Hits = got.Hits[:1]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("search (-want +got):\n%s", diff)
	}
	w.found(p("Work", "other.md"), "atlas", "Work/other.md")
	w.found(p("Work"), "secretly")
	w.found(p("Wor"+"k2"), "secretly", "Work2/secret.md")
	w.refused("search", p("Nothing"), `{"query":"atlas"}`, plane.CodeNotFound)
	w.refused("search", p("Work"), `{"query":""}`, plane.CodeInvalidInput)
	w.refused("search", p("Work"), `{"query":"a","limit":101}`, plane.CodeInvalidInput)
	if got := must[plane.SearchOutput](w, "search", p(), `{"query":"atlas","limit":1}`); len(got.Hits) != 1 || got.Total != 5 {
		t.Errorf("limited search = %+v", got)
	}
}

func TestSearchSeesEveryChangeAtOnce(t *testing.T) {
	w := searching(t, func(w *world) { w.put("Work/old", "zebra") })
	w.found(p(), "zebra", "Work/old")
	must[plane.WriteOutput](w, "create", p("Work", "sub", "new"), `{"content":"giraffe"}`)
	w.found(p(), "giraffe", "Work/sub/new")
	must[plane.WriteOutput](w, "replace", p("Work", "old"), `{"content":"walrus"}`)
	w.found(p(), "zebra")
	w.found(p(), "walrus", "Work/old")
	id := must[plane.SnapshotCreateOutput](w, "snapshot:create", p("Work"), "").Snapshot.ID
	must[plane.WriteOutput](w, "append", p("Work", "old"), `{"content":" narwhal"}`)
	w.found(p(), "narwhal", "Work/old")
	must[plane.DeleteOutput](w, "delete", p("Work"), `{"recursive":true}`)
	w.found(p(), "walrus")
	w.found(p(), "giraffe")
	must[plane.SnapshotRestoreOutput](w, "snapshot:restore", p("Work"), `{"snapshotId":"`+id+`"}`)
	w.found(p(), "walrus", "Work/old")
	w.found(p(), "narwhal")
	w.found(p(), "giraffe", "Work/sub/new")
	must[plane.DeleteOutput](w, "delete", p("Work", "old"), ``)
	w.found(p(), "walrus")
}

func TestSearchIndexOutlivesTheProvider(t *testing.T) {
	dir := t.TempDir()
	at := func(o *files.Options) { o.Root = dir }
	t.Run("first", func(t *testing.T) {
		w := searching(t, func(w *world) { w.put("kept", "zebra"); w.put("gone", "zebra"); w.put("changed", "zebra") }, at)
		if got := w.hits(p(), "zebra"); len(got) != 3 {
			t.Errorf("hits = %v", got)
		}
	})
	t.Run("changed while away", func(t *testing.T) {
		w := searching(t, func(w *world) {
			w.put("changed", "walrus now")
			w.put("new", "zebra new")
			if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
				t.Fatal(err)
			}
		}, at)
		w.found(p(), "walrus", "changed")
		if got := w.hits(p(), "zebra"); len(got) != 2 {
			t.Errorf("hits = %v, want kept and new", got)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		w := searching(t, func(*world) {
			if err := os.WriteFile(filepath.Join(dir, ".sharedos/team-atlas/index/index_meta.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, at)
		w.found(p(), "walrus", "changed")
	})
}

func TestSearchBesideWriters(t *testing.T) {
	w := searching(t, func(w *world) { w.put("seed", "seed") })
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 10 {
				name := fmt.Sprintf("w%dr%d", i, round)
				if _, code, err := w.do(t.Context(), "create", p(name), `{"content":"unique`+name+` common"}`); code != "" || err != nil {
					t.Errorf("create: %s %v", code, err)
				}
				out, code, err := w.do(t.Context(), "search", p(), `{"query":"unique`+name+`"}`)
				if code != "" || err != nil {
					t.Errorf("search: %s %v", code, err)
					continue
				}
				if hits := decode[plane.SearchOutput](t, out).Hits; len(hits) != 1 || hits[0].Path[0] != name {
					t.Errorf("%s is not found after it was written: %v", name, hits)
				}
			}
		})
	}
	wg.Wait()
	if got := must[plane.SearchOutput](w, "search", p(), `{"query":"common","limit":100}`); got.Total != 40 || len(got.Hits) != 40 {
		t.Errorf("%d of %d found, want 40", len(got.Hits), got.Total)
	}
}

func TestWithoutAnIndex(t *testing.T) {
	w := newWorld(t)
	w.refused("search", p(), `{"query":"a"}`, plane.CodeUnsupported)
}

func TestWhatACrashLeftIsSwept(t *testing.T) {
	w := searching(t, func(w *world) {
		for _, name := range []string{"Work/.sharedos-tmp-old", ".sharedos-tmp-old/a", "Work/.sharedos-tmp-new"} {
			w.put(name, "x")
		}
		old := w.old()
		for _, name := range []string{"Work/.sharedos-tmp-old", ".sharedos-tmp-old"} {
			if err := os.Chtimes(filepath.Join(w.dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		w.put("a", "zebra")
	})
	w.found(p(), "zebra", "a") // the first scan is over
	want := []string{filepath.Join(w.dir, "Work/.sharedos-tmp-new")}
	if diff := cmp.Diff(want, w.leftovers()); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}
