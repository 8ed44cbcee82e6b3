package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// reflink makes to share the content of from, so that a later change of one does
// not show in the other. Not every file system can.
func reflink(from, to *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// link gives the file called name in from a second name in to, without following
// a link.
func link(from *os.File, name string, to *os.File, target string) error {
	return unix.Linkat(int(from.Fd()), name, int(to.Fd()), target, 0)
}

// exchange swaps two names of one folder at once.
func exchange(dir *os.File, a, b string) error {
	fd := int(dir.Fd())
	return unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
}
