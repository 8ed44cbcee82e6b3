package main

import (
	"os"
	"runtime/debug"
)

// gcPercent keeps the heap small when many turns are live: their sessions stay, and
// calls make little garbage.
const gcPercent = 50

// limitGarbage sets the collector up, unless the environment already does.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
