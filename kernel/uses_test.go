package kernel_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestBoundedUseIsNeverExceeded has 64 callers spend one grant at once, a thousand
// times over: exactly its maxUses calls run.
func TestBoundedUseIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const callers, rounds = 64, 1000
	w := kerneltest.New()
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	w.Options.Audit = discard{}
	k := w.Kernel(t)
	for round := range rounds {
		uses := int64(round % (callers + 6)) // also more than callers, and one
		if uses == 0 {
			uses = 1
		}
		id := fmt.Sprintf("g%d", round)
		w.Grants.Set(readGrant(id).MaxUses(uses).Obj())
		turn, err := k.OpenTurn(t.Context(), w.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turn.Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ran, exhausted atomic.Int64
		var begin sync.WaitGroup
		begin.Add(1)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				begin.Wait()
				r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`))
				switch {
				case r.Status == "succeeded":
					ran.Add(1)
				case r.Error.Code == "grant_exhausted":
					exhausted.Add(1)
				default:
					t.Errorf("round %d: %+v", round, r.Error)
				}
			})
		}
		begin.Done()
		all.Wait()
		want := min(uses, callers)
		if ran.Load() != want || exhausted.Load() != callers-want || w.Uses.Spent(id) != want {
			t.Fatalf("round %d with %d uses: %d ran, %d were refused, %d uses are spent", round, uses, ran.Load(), exhausted.Load(), w.Uses.Spent(id))
		}
	}
}

// TestATurnIsSafeForManyCallers mixes every entry of one turn.
func TestATurnIsSafeForManyCallers(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj(), readGrant("b").MaxUses(3).Obj())
	plane := &kerneltest.Plane{}
	w.Options.Tools = kerneltest.FilesTools(plane)
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
	turn := w.Turn(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if c, err := turn.Catalog(t.Context()); err != nil || !c.Has("files.read") {
				t.Errorf("catalogue: %v", err)
			}
			if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.read", `{"path":["Work"]}`)); r.Status != "succeeded" {
				t.Errorf("call: %+v", r.Error)
			}
			if r := turn.InvokeResource(t.Context(), operation("read", "Work")); r.Status != "succeeded" {
				t.Errorf("resource: %+v", r.Error)
			}
			if d := turn.Authorize(t.Context(), kerneltest.Need("files", "write")); d.ReasonCode != "no_matching_grant" {
				t.Errorf("authorize: %s", d.ReasonCode)
			}
			if r := turn.Reach(t.Context()); r.Status != "computed" {
				t.Errorf("reach: %+v", r)
			}
		})
	}
	all.Wait()
	invoked := 0
	for _, e := range w.Audit.Events() {
		if e.Type == audit.ToolInvoked {
			invoked++
		}
	}
	if invoked != 8 {
		t.Errorf("%d calls are on record, want 8", invoked)
	}
}
