package files

import (
	"errors"
	"io/fs"
	"os"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

// child opens the folder called name in parent through no symbolic link.
func child(parent *os.Root, name string) (*os.Root, error) {
	dir, err := nofollow.Dir(parent, name)
	if errors.Is(err, nofollow.ErrNotDirectory) {
		return nil, fail(plane.CodeNotADirectory, "A part of the path is not a folder.")
	}
	return dir, err
}

// regular opens the file called name in parent for reading, under the same promise.
func regular(parent *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, info, err := nofollow.File(parent, name)
	if errors.Is(err, nofollow.ErrNotFile) {
		return nil, nil, fail(plane.CodeNotAFile, "What is at this path is not a file.")
	}
	return f, info, err
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
