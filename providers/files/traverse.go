package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

// leaf is a regular file that a walk came to. dir is open during the visit only.
type leaf struct {
	dir  *os.Root
	name string
	path contract.Path
}

// descend opens the folder at segments below root. The caller closes it.
func descend(root *os.Root, segments []string) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for _, segment := range segments {
		next, err := child(dir, segment)
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// walk visits the regular files below dir, which is the folder at path, by name.
// Names that no path can express are left out, and so is what vanished meanwhile.
// It follows no links.
func walk(ctx context.Context, dir *os.Root, path contract.Path, visit func(leaf) error) error {
	entries, err := readEntries(ctx, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		below := join(path, entry.Name())
		switch {
		case entry.Type().IsRegular():
			err = visit(leaf{dir, entry.Name(), below})
		case entry.IsDir() && len(below) < contract.MaxPathSegments:
			err = into(dir, entry.Name(), func(sub *os.Root) error { return walk(ctx, sub, below, visit) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// into opens a folder for the time of use. One that vanished is passed over.
func into(dir *os.Root, name string, use func(sub *os.Root) error) error {
	sub, err := child(dir, name)
	if missing(err) || errors.Is(err, nofollow.ErrMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	return use(sub)
}

// readEntries returns the members of a folder that a path can express, by name.
func readEntries(ctx context.Context, dir *os.Root) ([]fs.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return isReserved(e.Name()) || !addressable(e.Name()) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// join appends a segment to a copy of path.
func join(path contract.Path, segment string) contract.Path {
	return append(slices.Clip(path), segment)
}
