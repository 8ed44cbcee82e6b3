package kernel_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestTurnsShareWhatIsTheSame: turns hold one authority exactly if nothing about it
// differs, the grants or how they stand in the turn.
func TestTurnsShareWhatIsTheSame(t *testing.T) {
	t.Parallel()
	work := readGrant("work").Purposes("work").Obj()
	other := readGrant("work").Purposes("work").Metadata(`{"generation":2}`).Obj()
	base := kerneltest.New(work).Context()
	for name, c := range map[string]struct {
		change func(*contract.AccessContext)
		grants []contract.Grant
		want   bool
	}{
		"the same":            {func(*contract.AccessContext) {}, []contract.Grant{work}, true},
		"another trace":       {func(ac *contract.AccessContext) { ac.TraceID = "another" }, []contract.Grant{work}, true},
		"another instant":     {func(ac *contract.AccessContext) { ac.Now = contract.At(ac.Now.Add(time.Second)) }, []contract.Grant{work}, true},
		"another purpose":     {func(ac *contract.AccessContext) { ac.Purpose = "play" }, []contract.Grant{work}, false},
		"another owner":       {func(ac *contract.AccessContext) { ac.Owner = contract.Human("somebody") }, []contract.Grant{work}, false},
		"before it was given": {func(ac *contract.AccessContext) { ac.Now = contract.At(work.IssuedAt.Add(-time.Hour)) }, []contract.Grant{work}, false},
		"an edited grant":     {func(*contract.AccessContext) {}, []contract.Grant{other}, false},
		"one grant more":      {func(*contract.AccessContext) {}, []contract.Grant{work, readGrant("more").Obj()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(work)
			k := w.Kernel(t)
			base := base
			base.Purpose = "work"
			first, err := k.OpenTurn(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			w.Grants.Set(c.grants...)
			c.change(&base)
			second, err := k.OpenTurn(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			if got := first.Shares(second); got != c.want {
				t.Errorf("shared %t, want %t", got, c.want)
			}
			if second.AuthorityHash() == "" || second.Grants()[0].ID == "" {
				t.Error("the second turn holds nothing")
			}
		})
	}
}

// TestSharedPlacesAreCopied: what one turn is told of its reach is its own.
func TestSharedPlacesAreCopied(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	w.Options.Tools = []kernel.Tool{probe(nil)}
	k := w.Kernel(t)
	places := func() *kernel.Places {
		turn, err := k.OpenTurn(t.Context(), w.Context())
		if err != nil {
			t.Fatal(err)
		}
		catalogue, err := turn.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return turn.PlacesOf(t.Context(), catalogue)
	}
	first := places()
	if second := places(); first != second {
		t.Error("two turns with the same reach hold two copies")
	}
	before := first.Result()
	mine := first.Result()
	mine.Reach[0].Path[0], mine.Reach[0].Actions[0], mine.Reach[0].Namespace = "Evil", "write", "other"
	if diff := cmp.Diff(before, first.Result()); diff != "" {
		t.Errorf("somebody changed what all share: %s", diff)
	}
	w.Grants.Set(readGrant("b").Descendants("files", []string{"Elsewhere"}, "read").Obj())
	if other := places(); other == first {
		t.Error("a turn holds the reach of other grants")
	}
	runtime.KeepAlive(first)
}

// TestSharedAuthorityGoesWithItsTurns: what no turn holds any more is not kept.
func TestSharedAuthorityGoesWithItsTurns(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	k := w.Kernel(t)
	turns := make([]*kernel.Turn, 64)
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() {
			turn, err := k.OpenTurn(t.Context(), w.Context())
			if err != nil {
				t.Error(err)
			}
			turns[i] = turn
		})
	}
	wg.Wait()
	for _, turn := range turns {
		if !turn.Shares(turns[0]) {
			t.Fatal("two turns with the same grants hold two copies")
		}
	}
	runtime.GC()
	if got := k.Shared(); got != 1 {
		t.Errorf("%d values while turns hold one authority", got)
	}
	runtime.KeepAlive(turns)
	clear(turns)
	for deadline := time.Now().Add(30 * time.Second); k.Shared() != 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("an authority that nobody holds is still known")
		}
		runtime.GC()
	}
}
