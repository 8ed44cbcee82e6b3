// Package nofollow opens files and folders below an [os.Root] one name at a time
// and through no symbolic link, not even one that stays inside: what is opened is
// the very inode that was looked at.
package nofollow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Errors of an entry that is something else, a symbolic link included.
var (
	ErrNotDirectory = errors.New("not a folder")
	ErrNotFile      = errors.New("not a file")
	// ErrMoved is the error of an entry that others kept replacing.
	ErrMoved = errors.New("entry changed while it was opened")
)

// attempts is how often an entry is opened that others keep replacing.
const attempts = 64

// Dir opens the folder called name in parent.
func Dir(parent *os.Root, name string) (*os.Root, error) {
	for range attempts {
		seen, err := parent.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !seen.IsDir() {
			return nil, ErrNotDirectory
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
	return nil, ErrMoved
}

// File opens the file called name in parent for reading and describes it.
func File(parent *os.Root, name string) (*os.File, fs.FileInfo, error) {
	for range attempts {
		seen, err := parent.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if !seen.Mode().IsRegular() {
			return nil, nil, ErrNotFile
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
	return nil, nil, ErrMoved
}

// Descend opens the folder at names below root. The caller closes it.
func Descend(root *os.Root, names []string) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		next, err := Dir(dir, name)
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}
