package main

import (
	"context"
	"runtime/debug"
	"testing"
)

// TestPercentFor: a full heap is collected more eagerly, and the limit between the two is
// not crossed with every collection.
func TestPercentFor(t *testing.T) {
	for name, c := range map[string]struct {
		live    uint64
		before  int
		percent int
	}{
		"idle":                   {20 << 20, gcPercent, gcPercent},
		"full":                   {fullHeap, gcPercent, gcPercentFull},
		"fuller":                 {4 * fullHeap, gcPercentFull, gcPercentFull},
		"almost full":            {fullHeap - 1, gcPercent, gcPercent},
		"almost full, and was":   {fullHeap - 1, gcPercentFull, gcPercentFull},
		"emptied":                {fullHeap/8*7 - 1, gcPercentFull, gcPercent},
		"no collection happened": {0, gcPercent, gcPercent},
	} {
		if got := percentFor(c.live, c.before); got != c.percent {
			t.Errorf("%s: %d, want %d", name, got, c.percent)
		}
	}
}

// TestLimitGarbage: the environment decides if it says anything, and nothing goes on
// after the end.
func TestLimitGarbage(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	debug.SetGCPercent(77)
	t.Setenv("GOGC", "77")
	<-limitGarbage(t.Context())
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("GOGC is set, and the percentage becomes %d", got)
	}
	t.Setenv("GOGC", "")
	ctx, end := context.WithCancel(t.Context())
	done := limitGarbage(ctx)
	end()
	<-done
	if got := debug.SetGCPercent(77); got != gcPercent {
		t.Errorf("the percentage is %d, want %d", got, gcPercent)
	}
}
