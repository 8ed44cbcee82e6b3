package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// UnmountBelow unmounts everything mounted at or below the folders, the
// deepest first.
func UnmountBelow(dirs ...string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, point := range mountsBelow(string(data), dirs) {
		err := syscall.Unmount(point, 0)
		if errors.Is(err, syscall.EBUSY) {
			// Its users were ended; what is left lets go soon.
			err = syscall.Unmount(point, syscall.MNT_DETACH)
		}
		if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow picks the mount points at or below dirs, last mounted first:
// later mounts can only lie on top of earlier ones.
func mountsBelow(mountinfo string, dirs []string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		for _, dir := range dirs {
			if point == dir || strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
				points = append(points, point)
				break
			}
		}
	}
	slices.Reverse(points)
	return points
}

// unescape undoes how mountinfo writes blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// RemoveCgroups removes the empty groups of pods that the kubelet left. A
// group with a process in it cannot be removed, so nothing alive is touched.
func RemoveCgroups() {
	const group = "kubepods"
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + group) // version 1
	roots = append(roots, "/sys/fs/cgroup/"+group)         // version 2
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			_ = syscall.Rmdir(dir)
		}
	}
}
