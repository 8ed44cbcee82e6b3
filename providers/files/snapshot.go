package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// The layout of snapshots below a world's state: one folder per path, named by its
// hash, so that a path never leads to the snapshots of another; in it one folder
// per snapshot with these three.
const (
	snapshotsFolder = "snapshots"
	manifestFile    = "manifest.json"
	dataName        = "data" // a file or a folder, as at the path
	beside          = "metadata"
)

// maxSnapshots bounds the snapshots of one path.
const maxSnapshots = 1000

// manifest describes a snapshot.
type manifest struct {
	Path     contract.Path  `json:"path"`
	Snapshot plane.Snapshot `json:"snapshot"`
}

func snapshotsOf(path contract.Path) []string {
	sum := sha256.Sum256([]byte(strings.Join(path, "/")))
	return []string{snapshotsFolder, hex.EncodeToString(sum[:])}
}

// snapshot answers files.snapshot.create. Writers wait, so that it is one state.
func (p *Provider) snapshot(ctx context.Context, c *call) (any, error) {
	var in plane.SnapshotCreateInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Label != "" {
		if err := textOf("label", in.Label, plane.MaxLabel); err != nil {
			return nil, err
		}
	}
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	info, err := c.tree.lstat(c.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fail(plane.CodeNotAFile, "What is at this path is neither a file nor a folder.")
	}
	folder, err := p.makeFolders(c.tree.state, snapshotsOf(c.path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, err := readNames(ctx, folder)
	if err != nil {
		return nil, err
	}
	if len(names) >= maxSnapshots {
		return nil, fail(plane.CodeTooMany, "There are %d snapshots of this path already.", maxSnapshots)
	}
	made, err := p.fillSnapshot(ctx, c, folder, plane.Snapshot{
		ID: "snapshot-" + rand.Text(), Label: in.Label, Type: typeOf(info.Mode()), CreatedAt: contract.At(p.opts.Clock()),
	})
	if err != nil {
		return nil, err
	}
	return plane.SnapshotCreateOutput{Path: c.path, Snapshot: made}, nil
}

// fillSnapshot makes the snapshot under a temporary name and names it when it is whole.
func (p *Provider) fillSnapshot(ctx context.Context, c *call, folder *os.Root, s plane.Snapshot) (_ plane.Snapshot, err error) {
	name := temporaryName()
	if err := folder.Mkdir(name, 0o775); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			_ = folder.RemoveAll(name)
		}
	}()
	dir, err := child(folder, name)
	if err != nil {
		return s, err
	}
	defer func() { _ = dir.Close() }()
	data := &cloner{most: p.opts.MaxFiles, sync: !p.opts.NoSync}
	if err := p.cloneAt(ctx, data, c.tree.root, c.path, dir, dataName); err != nil {
		return s, err
	}
	kept := &cloner{most: p.opts.MaxFiles, sync: !p.opts.NoSync}
	from := append(contract.Path{metadataFolder}, c.path...)
	if err := p.cloneAt(ctx, kept, c.tree.state, from, dir, beside); err != nil && !missing(err) {
		return s, err
	}
	s.Files, s.Bytes = data.files, data.bytes
	raw, err := json.Marshal(manifest{c.path, s})
	if err != nil {
		return s, fmt.Errorf("encode manifest: %w", err)
	}
	m, err := p.stage(ctx, dir, 0, bytesOf(raw))
	if err != nil {
		return s, err
	}
	if err := m.replace(manifestFile); err != nil {
		return s, err
	}
	if err := p.sync(dir); err != nil {
		return s, err
	}
	if err := folder.Rename(name, s.ID); err != nil {
		return s, err
	}
	return s, p.sync(folder)
}

// cloneAt copies the file or folder at path below root to a new name in to.
func (p *Provider) cloneAt(ctx context.Context, c *cloner, root *os.Root, path contract.Path, to *os.Root, target string) error {
	if len(path) == 0 {
		if err := to.Mkdir(target, 0o775); err != nil {
			return err
		}
		return into(to, target, func(sub *os.Root) error { return c.tree(ctx, root, sub) })
	}
	last := len(path) - 1
	dir, err := descend(root, path[:last])
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return cloneName(ctx, c, dir, path[last], to, target)
}

// cloneName copies what is called name in from to a new name in to.
func cloneName(ctx context.Context, c *cloner, from *os.Root, name string, to *os.Root, target string) error {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		source, err := child(from, name)
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		if err := to.Mkdir(target, 0o775); err != nil {
			return err
		}
		return into(to, target, func(sub *os.Root) error { return c.tree(ctx, source, sub) })
	}
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	dir, err := to.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return c.file(ctx, pair{from, source, name}, pair{to, dir, target})
}

// snapshots answers files.snapshot.list.
func (p *Provider) snapshots(ctx context.Context, c *call) (any, error) {
	var in plane.SnapshotListInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := limited(&in.Limit, plane.DefaultSnapshotLimit, plane.MaxSnapshotLimit); err != nil {
		return nil, err
	}
	out := plane.SnapshotListOutput{Path: c.path, Snapshots: []plane.Snapshot{}}
	if c.tree.state == nil {
		return out, nil
	}
	folder, err := descend(c.tree.state, snapshotsOf(c.path))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, err := readNames(ctx, folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		m, err := readManifest(folder, name, c.path)
		if err != nil {
			p.opts.Log.Error("Snapshot cannot be read", "world", c.tree.world, "snapshot", name, "error", err)
			continue
		}
		out.Snapshots = append(out.Snapshots, m.Snapshot)
	}
	slices.SortFunc(out.Snapshots, func(a, b plane.Snapshot) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	if len(out.Snapshots) > in.Limit {
		out.Snapshots, out.Truncated = out.Snapshots[:in.Limit], true
	}
	return out, nil
}

// readManifest reads the manifest of a snapshot of path.
func readManifest(folder *os.Root, id string, path contract.Path) (*manifest, error) {
	dir, err := child(folder, id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, _, err := regular(dir, manifestFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if !slices.Equal(m.Path, path) || m.Snapshot.ID != id {
		return nil, errors.New("read manifest: it describes another snapshot")
	}
	return &m, nil
}
