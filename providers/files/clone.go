package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// cloner copies trees as cheaply as the file system can: by sharing content, else
// by a second name (a hard link, safe because the provider replaces files and never
// changes them in place), else byte by byte.
type cloner struct {
	most  int // files
	sync  bool
	files int
	bytes int64
	// plain remembers that this file system cannot share content.
	plain bool
}

// tree copies what is below from into to. It follows no links and copies them as
// what they are; names of the provider's own are left out.
func (c *cloner) tree(ctx context.Context, from, to *os.Root) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := to.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	entries, err := source.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if isReserved(name) {
			continue
		}
		switch {
		case entry.IsDir():
			err = c.folder(ctx, from, name, to)
		case entry.Type().IsRegular():
			err = c.file(ctx, pair{from, source, name}, pair{to, target, name})
		case entry.Type()&fs.ModeSymlink != 0:
			var points string
			if points, err = from.Readlink(name); err == nil {
				err = to.Symlink(points, name)
			}
		}
		if err != nil {
			return err
		}
	}
	if c.sync {
		return target.Sync()
	}
	return nil
}

func (c *cloner) folder(ctx context.Context, from *os.Root, name string, to *os.Root) error {
	if err := to.Mkdir(name, 0o775); err != nil {
		return err
	}
	source, err := child(from, name)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := child(to, name)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	return c.tree(ctx, source, target)
}

// pair is a name in an open folder.
type pair struct {
	root *os.Root
	dir  *os.File // the same folder
	name string
}

// file copies one file to a name that does not exist.
func (c *cloner) file(ctx context.Context, from, to pair) error {
	source, info, err := regular(from.root, from.name)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	c.files++
	c.bytes += info.Size()
	if c.files > c.most {
		return fail(plane.CodeTooMany, "There are more than %d files.", c.most)
	}
	if c.plain && link(from.dir, from.name, to.dir, to.name) == nil {
		if now, err := to.root.Lstat(to.name); err == nil && os.SameFile(info, now) {
			return nil
		}
		if err := to.root.Remove(to.name); err != nil { // another file took the name meanwhile
			return err
		}
	}
	target, err := to.root.OpenFile(to.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	err = c.content(ctx, source, target)
	if errors.Is(err, errPlain) {
		// From here on links are tried first; this file, too.
		if err = errors.Join(target.Close(), to.root.Remove(to.name)); err != nil {
			return err
		}
		c.files, c.bytes = c.files-1, c.bytes-info.Size()
		return c.file(ctx, from, to)
	}
	if err == nil && c.sync {
		err = target.Sync()
	}
	if err = errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copy file: %w", err)
	}
	return to.root.Chtimes(to.name, info.ModTime(), info.ModTime())
}

var errPlain = errors.New("file system cannot share content")

func (c *cloner) content(ctx context.Context, source, target *os.File) error {
	if !c.plain {
		if reflink(source, target) == nil {
			return nil
		}
		c.plain = true
		return errPlain
	}
	_, err := io.Copy(target, contextReader{ctx, source})
	return err
}
