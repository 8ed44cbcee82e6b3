package files

import (
	"context"
	"io/fs"
	"os"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// remove answers files.delete.
func (p *Provider) remove(ctx context.Context, c *call) (any, error) {
	var in plane.DeleteInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	info, err := c.tree.lstat(c.path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		c.tree.mu.Lock()
		defer c.tree.mu.Unlock()
	} else {
		defer c.tree.writing(c.path)()
	}
	dir, name, err := c.tree.parent(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	now, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case now.IsDir() && info.IsDir():
		return p.removeFolder(ctx, c, dir, name, &in)
	case now.IsDir():
		return nil, conflict() // it became a folder while we waited
	}
	return p.removeFile(ctx, c, dir, name, now, &in)
}

func (p *Provider) removeFile(ctx context.Context, c *call, dir *os.Root, name string, now fs.FileInfo, in *plane.DeleteInput) (any, error) {
	if in.ExpectedVersion != "" {
		f, info, err := regular(dir, name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		if err := p.expect(ctx, f, info, in.ExpectedVersion); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := dir.Remove(name); err != nil {
		return nil, err
	}
	out := plane.DeleteOutput{Path: c.path}
	if now.Mode().IsRegular() {
		out.Deleted = 1
	}
	return out, p.removed(c, dir)
}

func (p *Provider) removeFolder(ctx context.Context, c *call, dir *os.Root, name string, in *plane.DeleteInput) (any, error) {
	if in.ExpectedVersion != "" {
		return nil, fail(plane.CodeInvalidInput, "A folder has no version to expect.")
	}
	folder, err := child(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, err := readNames(ctx, folder)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 && !in.Recursive {
		return nil, fail(plane.CodeNotEmpty, "The folder is not empty; recursive deletes what is below it, too.")
	}
	out := plane.DeleteOutput{Path: c.path}
	if err := walk(ctx, folder, c.path, func(leaf) error {
		if out.Deleted++; out.Deleted > p.opts.MaxFiles {
			return fail(plane.CodeTooMany, "The folder holds more than %d files.", p.opts.MaxFiles)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	// It is gone at once; taking it apart may take long and may fail.
	gone := temporaryName()
	if err := dir.Rename(name, gone); err != nil {
		return nil, err
	}
	if err := dir.RemoveAll(gone); err != nil {
		p.opts.Log.Error("Deleted folder could not be taken apart", "world", c.tree.world, "error", err)
	}
	return out, p.removed(c, dir)
}

// removed ends a delete.
func (p *Provider) removed(c *call, dir *os.Root) error {
	c.tree.changed(c.path)
	if err := p.setMetadata(c.tree, c.path, nil); err != nil {
		return err
	}
	return p.sync(dir)
}
