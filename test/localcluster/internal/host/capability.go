package host

import (
	"os"
	"strconv"
	"strings"
)

// capSysResource is the number of CAP_SYS_RESOURCE.
const capSysResource = 24

// CanLowerOOMScore says whether a child of this process may get a lower
// out-of-memory score than it has. Even root may lack that in a sandbox.
func CanLowerOOMScore() bool {
	data, err := os.ReadFile("/proc/self/status")
	return err == nil && hasCapability(string(data), "CapBnd", capSysResource) && hasCapability(string(data), "CapEff", capSysResource)
}

func hasCapability(status, set string, number uint) bool {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, set+":"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return err == nil && bits&(1<<number) != 0
		}
	}
	return false
}

// CgroupVersion is 2 on a machine with only the unified hierarchy, else 1.
func CgroupVersion() int {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return 2
	}
	return 1
}
