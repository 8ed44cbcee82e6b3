package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// gcPercent trades a little work for a small heap: calls are rare and short, and
	// there is a sidecar in every pod.
	gcPercent = 40
	// memoryLimit keeps garbage of large answers from staying: it is soft, and above
	// what an idle sidecar uses.
	memoryLimit = 24 << 20
	cgroupLimit = "/sys/fs/cgroup/memory.max"
)

// limitMemory sets the collector up, unless the environment already does.
func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		raw, _ := os.ReadFile(cgroupLimit) // no such file is no limit
		debug.SetMemoryLimit(softLimit(string(raw)))
	}
}

// softLimit is the smaller of ours and nine tenths of the container's, bytes.
func softLimit(container string) int64 {
	hard, err := strconv.ParseInt(strings.TrimSpace(container), 10, 64)
	if err != nil || hard <= 0 {
		return memoryLimit
	}
	return min(memoryLimit, hard/10*9)
}
