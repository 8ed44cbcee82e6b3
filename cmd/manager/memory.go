package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How eagerly garbage is collected. Calls make little of it, and what stays are the
// sessions of live turns: the more there are, the more room a share of them would take.
const (
	gcPercent     = 50
	gcPercentFull = 25
	// fullHeap is how many live bytes make it full. It is not full any more once an
	// eighth of that is gone.
	fullHeap = 80 << 20

	gcLookEvery = 2 * time.Second
)

// limitGarbage sets the collector up until ctx ends, unless the environment already does.
func limitGarbage(ctx context.Context) (done <-chan struct{}) {
	ended := make(chan struct{})
	if os.Getenv("GOGC") != "" {
		close(ended)
		return ended
	}
	percent := gcPercent
	debug.SetGCPercent(percent)
	go func() {
		defer close(ended)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		look := time.NewTicker(gcLookEvery)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			metrics.Read(live)
			if next := percentFor(live[0].Value.Uint64(), percent); next != percent {
				percent = next
				debug.SetGCPercent(percent)
			}
		}
	}()
	return ended
}

// percentFor is what so many live bytes call for, when it was that percentage so far.
func percentFor(live uint64, percent int) int {
	switch {
	case live >= fullHeap:
		return gcPercentFull
	case live < fullHeap-fullHeap/8:
		return gcPercent
	default:
		return percent
	}
}
