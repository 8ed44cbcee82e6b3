package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// errMoved is the error of a name that changed while it was opened.
var errMoved = errors.New("entry changed while it was opened")

// attempts is how often an entry is opened that others keep replacing.
const attempts = 64

// child opens the folder called name in parent. It is the folder that was looked
// at, reached through no symbolic link: what a racing change put in its place is
// another inode, which is looked at anew.
func child(parent *os.Root, name string) (*os.Root, error) {
	for range attempts {
		seen, err := parent.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !seen.IsDir() {
			return nil, fail(plane.CodeNotADirectory, "A part of the path is not a folder.")
		}
		dir, err := parent.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		now, err := dir.Stat(".")
		if err == nil && os.SameFile(seen, now) {
			return dir, nil
		}
		_ = dir.Close()
		if err != nil {
			return nil, fmt.Errorf("open folder: %w", err)
		}
	}
	return nil, fmt.Errorf("open folder: %w", errMoved)
}

// regular opens the file called name in parent for reading, under the same promise.
func regular(parent *os.Root, name string) (*os.File, fs.FileInfo, error) {
	for range attempts {
		seen, err := parent.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if !seen.Mode().IsRegular() {
			return nil, nil, fail(plane.CodeNotAFile, "What is at this path is not a file.")
		}
		// Not blocking: a pipe that took the file's place must not hold us up.
		f, err := parent.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, nil, err
		}
		now, err := f.Stat()
		if err == nil && os.SameFile(seen, now) {
			return f, now, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("open file: %w", err)
		}
	}
	return nil, nil, fmt.Errorf("open file: %w", errMoved)
}

// folder opens the folder at path below t's root. The caller closes it.
func (t *tree) folder(path contract.Path) (*os.Root, error) { return descend(t.root, path) }

// parent opens the folder that holds path, which is not the root. The caller
// closes it.
func (t *tree) parent(path contract.Path) (dir *os.Root, name string, err error) {
	last := len(path) - 1
	dir, err = t.folder(path[:last])
	return dir, path[last], err
}

// lstat describes what is at path without following a link.
func (t *tree) lstat(path contract.Path) (fs.FileInfo, error) {
	if len(path) == 0 {
		return t.root.Stat(".")
	}
	dir, name, err := t.parent(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.Lstat(name)
}

// file opens the file at path for reading.
func (t *tree) file(path contract.Path) (*os.File, fs.FileInfo, error) {
	if len(path) == 0 {
		return nil, nil, fail(plane.CodeNotAFile, "What is at this path is not a file.")
	}
	dir, name, err := t.parent(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }()
	return regular(dir, name)
}

// typeOf names the type of an entry.
func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return plane.TypeFile
	case mode.IsDir():
		return plane.TypeDirectory
	case mode&fs.ModeSymlink != 0:
		return plane.TypeSymlink
	default:
		return plane.TypeOther
	}
}
