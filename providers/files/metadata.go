package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// maxMetadata bounds the metadata of one file, bytes.
const maxMetadata = 16 << 10

// metadataFolder holds, below a world's state, one file per path with metadata, in
// the same folders as the files themselves.
const metadataFolder = "metadata"

func checkMetadata(raw contract.Object) error {
	if len(raw) == 0 {
		return nil
	}
	node, err := strictjson.Parse(raw)
	if err != nil || node.Kind != strictjson.Object || len(raw) > maxMetadata {
		return fail(plane.CodeInvalidInput, "metadata must be a JSON object of at most %d bytes.", maxMetadata)
	}
	return nil
}

// metadata returns what is kept beside the file at path, or nil.
func (p *Provider) metadata(t *tree, path contract.Path) (contract.Object, error) {
	if t.state == nil {
		return nil, nil
	}
	dir, err := descend(t.state, append([]string{metadataFolder}, path[:len(path)-1]...))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, info, err := regular(dir, path[len(path)-1])
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxMetadata))
	if err != nil || checkMetadata(raw) != nil {
		p.opts.Log.Error("Metadata cannot be read", "world", t.world, "size", info.Size(), "error", err)
		return nil, nil
	}
	return bytes.TrimSpace(raw), nil
}

// missing reports that nothing is kept: the folders of the metadata may differ
// from those of the files after changes behind the provider's back.
func missing(err error) bool {
	var failure *kernel.Failure
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &failure)
}

// setMetadata keeps raw beside the file at path; nil removes what is kept at the
// path and below it.
func (p *Provider) setMetadata(t *tree, path contract.Path, raw contract.Object) error {
	last := len(path) - 1
	if len(raw) == 0 {
		dir, err := descend(t.state, append([]string{metadataFolder}, path[:last]...))
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		return dir.RemoveAll(path[last])
	}
	dir, err := p.metadataFolders(t, path[:last])
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Lstat(path[last]); err == nil && info.IsDir() {
		if err := dir.RemoveAll(path[last]); err != nil {
			return err
		}
	}
	s, err := p.stage(context.Background(), dir, 0, bytesOf(raw))
	if err != nil {
		return err
	}
	return s.replace(path[last])
}

// metadataFolders makes the folders, also where the metadata of what was a file is
// in the way.
func (p *Provider) metadataFolders(t *tree, path contract.Path) (*os.Root, error) {
	dir, err := p.makeFolders(t.state, []string{metadataFolder})
	for _, segment := range path {
		if err != nil {
			return nil, err
		}
		if info, lerr := dir.Lstat(segment); lerr == nil && !info.IsDir() {
			_ = dir.Remove(segment)
		}
		var next *os.Root
		next, err = p.makeFolders(dir, []string{segment})
		_ = dir.Close()
		dir = next
	}
	return dir, err
}
