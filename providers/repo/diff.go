package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	format "github.com/go-git/go-git/v5/plumbing/format/diff"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	plane "github.com/sharedos-dev/operator/planes/repo"
)

const (
	// maxDiffed bounds the sides of one file that are compared line by line, bytes.
	maxDiffed = 1 << 20
	// diffTime bounds the search for a short patch of one file.
	diffTime = 2 * time.Second
)

// diff answers repo.diff.
func (p *Provider) diff(ctx context.Context, o *opened) (any, error) {
	var in plane.DiffInput
	if err := decode(o.op.Input, &in); err != nil {
		return nil, err
	}
	if err := checkPathspec(in.Pathspec, in.Pathspec != nil); err != nil {
		return nil, err
	}
	changes, err := o.worktree.Status()
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	sides, err := o.sides(in.Staged)
	if err != nil {
		return nil, err
	}
	out := plane.DiffOutput{Path: o.op.Resource.Path}
	var patch bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		code := changes[name].Worktree
		if in.Staged {
			code = changes[name].Staging
		}
		if code == git.Unmodified || code == git.Untracked || !matches(name, in.Pathspec) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := sides.patch(name)
		if err != nil {
			return nil, err
		}
		if patch.Len()+len(one) > p.opts.MaxPatch {
			out.Truncated = true
			break
		}
		out.Files++
		patch.WriteString(one)
	}
	out.Patch = patch.String()
	return out, nil
}

// sides are the two states that are compared.
type sides struct {
	*opened
	staged bool
	index  *index.Index
	head   *object.Tree // nil before the first commit; only when staged
}

func (o *opened) sides(staged bool) (*sides, error) {
	s := &sides{opened: o, staged: staged}
	var err error
	if s.index, err = o.repo.Storer.Index(); err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	if !staged {
		return s, nil
	}
	head, err := o.repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read HEAD: %w", err)
	}
	commit, err := o.repo.CommitObject(head.Hash())
	if err != nil {
		return nil, fmt.Errorf("read commit: %w", err)
	}
	if s.head, err = commit.Tree(); err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return s, nil
}

// side is one state of one file. Content is nil when it is too large to compare.
type side struct {
	name    string
	hash    plumbing.Hash
	mode    filemode.FileMode
	content []byte
	large   bool
}

// Hash, Mode and Path implement the format's File.
func (s *side) Hash() plumbing.Hash     { return s.hash }
func (s *side) Mode() filemode.FileMode { return s.mode }
func (s *side) Path() string            { return valid(s.name) }

// patch is the unified diff of one file.
func (s *sides) patch(name string) (string, error) {
	from, err := s.before(name)
	if err != nil {
		return "", err
	}
	to, err := s.after(name)
	if err != nil || (from == nil && to == nil) {
		return "", err
	}
	var out strings.Builder
	if err := format.NewUnifiedEncoder(&out, format.DefaultContextLines).Encode(onePatch{newFilePatch(from, to)}); err != nil {
		return "", fmt.Errorf("write patch: %w", err)
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

func (s *sides) before(name string) (*side, error) {
	if !s.staged {
		return s.inIndex(name)
	}
	if s.head == nil {
		return nil, nil
	}
	entry, err := s.head.FindEntry(name)
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return s.blob(name, entry.Hash, entry.Mode)
}

func (s *sides) after(name string) (*side, error) {
	if s.staged {
		return s.inIndex(name)
	}
	return s.inWorktree(name)
}

func (s *sides) inIndex(name string) (*side, error) {
	entry, err := s.index.Entry(name)
	if errors.Is(err, index.ErrEntryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return s.blob(name, entry.Hash, entry.Mode)
}

func (s *sides) blob(name string, hash plumbing.Hash, mode filemode.FileMode) (*side, error) {
	out := &side{name: name, hash: hash, mode: mode}
	if mode == filemode.Submodule {
		out.content = []byte("Subproject commit " + hash.String() + "\n")
		return out, nil
	}
	blob, err := s.repo.BlobObject(hash)
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if blob.Size > maxDiffed {
		out.large = true
		return out, nil
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	defer func() { _ = r.Close() }()
	return out, out.fill(r)
}

func (s *side) fill(r io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(r, maxDiffed+1))
	if err != nil {
		return fmt.Errorf("read content: %w", err)
	}
	if s.large = len(content) > maxDiffed; !s.large {
		s.content = content
	}
	return nil
}

func (s *sides) inWorktree(name string) (*side, error) {
	info, err := s.fs.Lstat(name)
	if err != nil || info.IsDir() {
		return nil, nil
	}
	mode, err := filemode.NewFromOSFileMode(info.Mode())
	if err != nil {
		return nil, nil
	}
	out := &side{name: name, mode: mode}
	if mode == filemode.Symlink {
		target, err := s.fs.Readlink(name)
		out.content = []byte(target)
		out.hash = plumbing.ComputeHash(plumbing.BlobObject, out.content)
		return out, err
	}
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := out.fill(f); err != nil {
		return nil, err
	}
	out.hash = plumbing.ComputeHash(plumbing.BlobObject, out.content)
	return out, nil
}

// onePatch and filePatch are a patch as the format's encoder wants it.
type onePatch struct{ file *filePatch }

func (p onePatch) FilePatches() []format.FilePatch { return []format.FilePatch{p.file} }
func (p onePatch) Message() string                 { return "" }

type filePatch struct {
	from, to *side
	binary   bool
	chunks   []format.Chunk
}

func newFilePatch(from, to *side) *filePatch {
	p := &filePatch{from: from, to: to}
	var texts [2]string
	for i, s := range []*side{from, to} {
		if s != nil {
			p.binary = p.binary || s.large || !utf8.Valid(s.content) || bytes.IndexByte(s.content, 0) >= 0
			texts[i] = string(s.content)
		}
	}
	if p.binary {
		return p
	}
	for _, d := range diff.DoWithTimeout(texts[0], texts[1], diffTime) {
		kind := format.Equal
		switch d.Type {
		case diffmatchpatch.DiffInsert:
			kind = format.Add
		case diffmatchpatch.DiffDelete:
			kind = format.Delete
		case diffmatchpatch.DiffEqual:
		}
		p.chunks = append(p.chunks, chunk{d.Text, kind})
	}
	return p
}

func (p *filePatch) IsBinary() bool         { return p.binary }
func (p *filePatch) Chunks() []format.Chunk { return p.chunks }

// Files answers untyped nils, which is how the encoder knows a missing side.
func (p *filePatch) Files() (from, to format.File) {
	if p.from != nil {
		from = p.from
	}
	if p.to != nil {
		to = p.to
	}
	return from, to
}

type chunk struct {
	content string
	kind    format.Operation
}

func (c chunk) Content() string        { return c.content }
func (c chunk) Type() format.Operation { return c.kind }
