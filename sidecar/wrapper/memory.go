package wrapper

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// cgroupRoot is where a container sees its own control group.
const cgroupRoot = "/sys/fs/cgroup"

// maxCgroupFile is the most bytes of a control group's file that are looked at.
const maxCgroupFile = 4096

// memoryFiles say how many processes of the container the system has ended because the
// container had used all its memory: with version 2 and with version 1 of control groups.
var memoryFiles = []string{"memory.events", "memory/memory.oom_control"}

// memoryKills is that number, or 0 where it cannot be known.
func memoryKills(root string) int64 {
	for _, name := range memoryFiles {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			return killsIn(raw[:min(len(raw), maxCgroupFile)])
		}
	}
	return 0
}

// killsIn finds the line "oom_kill N".
func killsIn(raw []byte) int64 {
	for line := range bytes.Lines(raw) {
		name, value, found := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		if !found || string(name) != "oom_kill" {
			continue
		}
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
