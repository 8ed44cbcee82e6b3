package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// restore answers files.snapshot.restore: what the snapshot holds is put in place
// of what is at the path. For a file or folder that happens at once; the members of
// the root are put in place one after another.
func (p *Provider) restore(ctx context.Context, c *call) (any, error) {
	var in plane.SnapshotRestoreInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	unknown := fail(plane.CodeSnapshotNotFound, "There is no such snapshot of this path.")
	if !addressable(in.SnapshotID) || isReserved(in.SnapshotID) {
		return nil, unknown
	}
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	if err := p.expectAt(ctx, c, in.ExpectedVersion); err != nil {
		return nil, err
	}
	folder, err := descend(c.tree.state, snapshotsOf(c.path))
	if missing(err) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	m, err := readManifest(folder, in.SnapshotID, c.path)
	if missing(err) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	kept, err := child(folder, in.SnapshotID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = kept.Close() }()
	return p.restoreFrom(ctx, c, kept, m)
}

// expectAt compares the version of the file at the path with the expected one.
func (p *Provider) expectAt(ctx context.Context, c *call, expected string) error {
	if expected == "" {
		return nil
	}
	f, info, err := c.tree.file(c.path)
	if missing(err) {
		return conflict() // a folder has no version, nothing has none
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return p.expect(ctx, f, info, expected)
}

func (p *Provider) restoreFrom(ctx context.Context, c *call, kept *os.Root, m *manifest) (any, error) {
	clones := &cloner{most: p.opts.MaxFiles, sync: !p.opts.NoSync}
	dir, name := c.tree.root, ""
	if last := len(c.path) - 1; last >= 0 {
		var err error
		if dir, err = p.makeFolders(c.tree.root, c.path[:last]); err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }()
		name = c.path[last]
	}
	fresh := temporaryName()
	defer func() { _ = dir.RemoveAll(fresh) }()
	if err := cloneName(ctx, clones, kept, dataName, dir, fresh); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if name == "" {
		err = swapMembers(ctx, dir, fresh)
	} else {
		err = swap(dir, fresh, name)
	}
	c.tree.changed(c.path)
	if err == nil {
		err = p.restoreMetadata(c, kept)
	}
	if err == nil {
		err = p.sync(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("restore snapshot: %w", err)
	}
	out := plane.SnapshotRestoreOutput{Path: c.path, SnapshotID: m.Snapshot.ID, Files: clones.files}
	if m.Snapshot.Type == plane.TypeFile {
		f, info, err := c.tree.file(c.path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		if out.Version, err = p.versions.of(ctx, f, info); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// swap puts what is called fresh in the place of name. What was there may be left
// under the name fresh.
func swap(dir *os.Root, fresh, name string) error {
	was, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return dir.Rename(fresh, name)
	}
	if err != nil {
		return err
	}
	now, err := dir.Lstat(fresh)
	if err != nil {
		return err
	}
	if !was.IsDir() && !now.IsDir() {
		return dir.Rename(fresh, name)
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if exchange(f, fresh, name) == nil {
		return nil
	}
	gone := temporaryName()
	if err := dir.Rename(name, gone); err != nil {
		return err
	}
	if err := dir.Rename(fresh, name); err != nil {
		return errors.Join(err, dir.Rename(gone, name))
	}
	return dir.RemoveAll(gone)
}

// swapMembers makes the members of the folder called fresh those of dir itself.
func swapMembers(ctx context.Context, dir *os.Root, fresh string) error {
	source, err := child(dir, fresh)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	names, err := readNames(context.WithoutCancel(ctx), dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		gone := temporaryName()
		if err := dir.Rename(name, gone); err != nil {
			return err
		}
		if _, err := source.Lstat(name); err == nil {
			if err := dir.Rename(fresh+"/"+name, name); err != nil {
				return errors.Join(err, dir.Rename(gone, name))
			}
		}
		if err := dir.RemoveAll(gone); err != nil {
			return err
		}
	}
	rest, err := readNames(context.WithoutCancel(ctx), source)
	if err != nil {
		return err
	}
	for _, name := range rest {
		if err := dir.Rename(fresh+"/"+name, name); err != nil {
			return err
		}
	}
	return nil
}

// restoreMetadata brings back what was kept beside the files.
func (p *Provider) restoreMetadata(c *call, kept *os.Root) error {
	last := len(c.path) - 1
	clones := &cloner{most: p.opts.MaxFiles, sync: !p.opts.NoSync}
	if last < 0 {
		if err := c.tree.state.RemoveAll(metadataFolder); err != nil {
			return err
		}
		if err := cloneName(context.Background(), clones, kept, beside, c.tree.state, metadataFolder); !missing(err) {
			return err
		}
		return nil
	}
	if err := p.setMetadata(c.tree, c.path, nil); err != nil {
		return err
	}
	dir, err := p.metadataFolders(c.tree, c.path[:last])
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := cloneName(context.Background(), clones, kept, beside, dir, c.path[last]); !missing(err) {
		return err
	}
	return nil
}
