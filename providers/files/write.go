package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// createInput, replaceInput and appendInput are what each action takes of a
// [plane.WriteInput].
type createInput struct {
	Content  string          `json:"content"`
	Encoding string          `json:"encoding,omitempty"`
	Metadata contract.Object `json:"metadata,omitempty"`
}

type replaceInput struct {
	Content         string `json:"content"`
	Encoding        string `json:"encoding,omitempty"`
	ExpectedVersion string `json:"expectedVersion,omitempty"`
}

// create answers files.create.
func (p *Provider) create(ctx context.Context, c *call) (any, error) {
	var in createInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	content, err := contentOf(&plane.WriteInput{Content: in.Content, Encoding: in.Encoding})
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(in.Metadata); err != nil {
		return nil, err
	}
	defer c.tree.writing(c.path)()
	return p.createLocked(ctx, c, content, in.Metadata)
}

func (p *Provider) createLocked(ctx context.Context, c *call, content []byte, metadata contract.Object) (any, error) {
	last := len(c.path) - 1
	dir, err := p.makeFolders(c.tree.root, c.path[:last])
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if _, err := dir.Lstat(c.path[last]); err == nil {
		return nil, fail(plane.CodeAlreadyExists, "There is something at this path already.")
	}
	s, err := p.stage(ctx, dir, 0, bytesOf(content))
	if err != nil {
		return nil, err
	}
	if err := s.create(c.path[last]); err != nil {
		return nil, err
	}
	// What was kept beside an earlier file of this name goes, too.
	if err := p.setMetadata(c.tree, c.path, metadata); err != nil {
		return nil, err
	}
	return p.written(c, s, true)
}

// replace answers files.replace.
func (p *Provider) replace(ctx context.Context, c *call) (any, error) {
	var in replaceInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	content, err := contentOf(&plane.WriteInput{Content: in.Content, Encoding: in.Encoding})
	if err != nil {
		return nil, err
	}
	defer c.tree.writing(c.path)()
	dir, name, err := c.tree.parent(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	old, info, err := regular(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = old.Close() }()
	if err := p.expect(ctx, old, info, in.ExpectedVersion); err != nil {
		return nil, err
	}
	s, err := p.stage(ctx, dir, info.Mode(), bytesOf(content))
	if err != nil {
		return nil, err
	}
	if err := s.replace(name); err != nil {
		return nil, err
	}
	return p.written(c, s, false)
}

// append answers files.append.
func (p *Provider) append(ctx context.Context, c *call) (any, error) {
	var in plane.WriteInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	content, err := contentOf(&in)
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(in.Metadata); err != nil {
		return nil, err
	}
	defer c.tree.writing(c.path)()
	dir, name, err := c.tree.parent(c.path)
	if err == nil {
		defer func() { _ = dir.Close() }()
		var old *os.File
		var info fs.FileInfo
		if old, info, err = regular(dir, name); err == nil {
			defer func() { _ = old.Close() }()
			return p.appendTo(ctx, c, dir, old, info, &in, content)
		}
	}
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case in.ExpectedVersion != "":
		return nil, conflict()
	}
	return p.createLocked(ctx, c, content, in.Metadata)
}

func (p *Provider) appendTo(ctx context.Context, c *call, dir *os.Root, old *os.File, info fs.FileInfo, in *plane.WriteInput, content []byte) (any, error) {
	if err := p.expect(ctx, old, info, in.ExpectedVersion); err != nil {
		return nil, err
	}
	s, err := p.stage(ctx, dir, info.Mode(), func(w io.Writer) error {
		if _, err := io.Copy(w, contextReader{ctx, io.NewSectionReader(old, 0, info.Size())}); err != nil {
			return err
		}
		return bytesOf(content)(w)
	})
	if err != nil {
		return nil, err
	}
	if err := s.replace(c.path[len(c.path)-1]); err != nil {
		return nil, err
	}
	if len(in.Metadata) > 0 {
		if err := p.setMetadata(c.tree, c.path, in.Metadata); err != nil {
			return nil, err
		}
	}
	return p.written(c, s, false)
}

// expect compares a file's version with the expected one, if there is one.
func (p *Provider) expect(ctx context.Context, f *os.File, info fs.FileInfo, expected string) error {
	if expected == "" {
		return nil
	}
	version, err := p.versions.of(ctx, f, info)
	if err != nil {
		return err
	}
	if version != expected {
		return conflict()
	}
	return nil
}

func bytesOf(content []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// written ends a write that is in place: it is durable once this returns.
func (p *Provider) written(c *call, s *staged, created bool) (any, error) {
	c.tree.changed(c.path)
	if err := p.sync(s.dir); err != nil {
		return nil, err
	}
	return plane.WriteOutput{
		Path: c.path, Size: s.info.Size(), Version: s.version, ModifiedAt: contract.At(s.info.ModTime()), Created: created,
	}, nil
}
