package files

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

// Bounds of one answer of files.grep.
const (
	maxMatches   = 1000
	maxGrepBytes = 1 << 20
	// valueWeight is what a text counts beside its bytes: an answer of empty lines must
	// not hold more values than a document may.
	valueWeight = 9
)

// grep answers files.grep.
func (p *Provider) grep(ctx context.Context, c *call) (any, error) {
	var in plane.GrepInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := textOf("pattern", in.Pattern, plane.MaxQuery); err != nil {
		return nil, err
	}
	if min(in.ContextBefore, in.ContextAfter) < 0 || max(in.ContextBefore, in.ContextAfter) > plane.MaxContextLines {
		return nil, fail(plane.CodeInvalidInput, "contextBefore and contextAfter must be 0 to %d.", plane.MaxContextLines)
	}
	m, err := newMatcher(&in)
	if err != nil {
		return nil, err
	}
	out := &answer{GrepOutput: &plane.GrepOutput{Path: c.path, Matches: []plane.GrepMatch{}}}
	info, err := c.tree.lstat(c.path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		dir, err := c.tree.folder(c.path)
		if err != nil {
			return nil, err
		}
		err = grepBelow(ctx, newFolder(dir), c.path, m, &in, out)
		return out.GrepOutput, err
	}
	dir, name, err := c.tree.parent(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if !info.Mode().IsRegular() {
		return nil, fail(plane.CodeNotAFile, "What is at this path is not a file.")
	}
	s := newScanner(m, &in)
	found, skipped, err := s.scan(ctx, dir, name, c.path)
	if err != nil {
		return nil, err
	}
	out.collect(&batch{found: found, searched: 1 - skipped, skipped: skipped})
	return out.GrepOutput, nil
}

// folder is an open folder that is closed when the last one that uses it is done.
type folder struct {
	dir  *os.Root
	uses atomic.Int64
}

// newFolder is a folder in use by its maker.
func newFolder(dir *os.Root) *folder {
	f := &folder{dir: dir}
	f.uses.Store(1)
	return f
}

func (f *folder) done() {
	if f.uses.Add(-1) == 0 {
		_ = f.dir.Close()
	}
}

// batch is a run of files of one folder, and what was found in them.
type batch struct {
	seq   int
	in    *folder
	path  contract.Path
	names []string

	found             []plane.GrepMatch
	searched, skipped int
	err               error
}

// batchFiles is how many files go to a worker at once.
const batchFiles = 32

// grepBelow searches all files below a folder, on several processors, and collects
// what is found in the order of a walk. It closes the folder.
func grepBelow(ctx context.Context, root *folder, path contract.Path, m matcher, in *plane.GrepInput, out *answer) error {
	ctx, cancel := context.WithCancel(ctx)
	workers := max(1, min(runtime.GOMAXPROCS(0), 8))
	todo, done := make(chan *batch, 4*workers), make(chan *batch, 4*workers)
	var walking error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(todo)
		walking = (&grepWalk{todo: todo}).folder(ctx, root, path)
	})
	for range workers {
		wg.Go(func() {
			s := newScanner(m, in)
			for b := range todo {
				s.batch(ctx, b)
				done <- b
			}
		})
	}
	go func() { wg.Wait(); close(done) }()

	waiting := make(map[int]*batch)
	var failed error
	for next, full := 0, false; ; {
		b, ok := <-done
		if !ok {
			break
		}
		for waiting[b.seq] = b; waiting[next] != nil; next++ {
			ready := waiting[next]
			delete(waiting, next)
			if full || failed != nil {
				continue
			}
			if failed = ready.err; failed != nil {
				cancel()
			} else if full = out.collect(ready); full {
				cancel() // what is still under way only has to be drained
			}
		}
	}
	cancel()
	switch {
	case failed != nil:
		return failed
	case out.Truncated && errors.Is(walking, context.Canceled):
		return nil
	default:
		return walking
	}
}

// answer is an output that fills up.
type answer struct {
	*plane.GrepOutput
	size int
}

// collect adds a batch's findings and reports whether the answer is full.
func (a *answer) collect(b *batch) (full bool) {
	a.FilesSearched += b.searched
	a.FilesSkipped += b.skipped
	for i := range b.found {
		a.size += weigh(&b.found[i])
		if len(a.Matches) == maxMatches || a.size > maxGrepBytes {
			a.Truncated = true
			return true
		}
		a.Matches = append(a.Matches, b.found[i])
	}
	return false
}

// weigh is about how many bytes of an answer a match takes.
func weigh(m *plane.GrepMatch) int {
	n := 64 + len(m.Text)
	for _, segment := range m.Path {
		n += len(segment) + valueWeight
	}
	for _, line := range m.Before {
		n += len(line) + valueWeight
	}
	for _, line := range m.After {
		n += len(line) + valueWeight
	}
	return n
}

// grepWalk hands out the files of a tree in batches, in the order of their paths.
type grepWalk struct {
	todo chan<- *batch
	seq  int
}

// folder hands out what is below f and closes it when all of it is done.
func (w *grepWalk) folder(ctx context.Context, f *folder, path contract.Path) error {
	defer f.done()
	entries, err := readEntries(ctx, f.dir)
	if err != nil {
		return err
	}
	var names []string
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		b := &batch{seq: w.seq, in: f, path: path, names: names}
		f.uses.Add(1)
		select {
		case w.todo <- b:
			w.seq++
			names = nil
			return nil
		case <-ctx.Done():
			f.done()
			return ctx.Err()
		}
	}
	for _, entry := range entries {
		switch {
		case entry.Type().IsRegular():
			if names = append(names, entry.Name()); len(names) == batchFiles {
				err = flush()
			}
		case entry.IsDir() && len(path)+1 < contract.MaxPathSegments:
			if err = flush(); err != nil {
				return err
			}
			err = w.enter(ctx, f, entry.Name(), join(path, entry.Name()))
		}
		if err != nil {
			return err
		}
	}
	return flush()
}

func (w *grepWalk) enter(ctx context.Context, f *folder, name string, path contract.Path) error {
	sub, err := child(f.dir, name)
	if missing(err) || errors.Is(err, nofollow.ErrMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.folder(ctx, newFolder(sub), path)
}

// batch searches the files of a batch and gives its folder back.
func (s *scanner) batch(ctx context.Context, b *batch) {
	defer b.in.done()
	for _, name := range b.names {
		found, skipped, err := s.scan(ctx, b.in.dir, name, join(b.path, name))
		if err != nil {
			b.err = err
			return
		}
		b.found = append(b.found, found...)
		b.skipped += skipped
		b.searched += 1 - skipped
		if len(b.found) > maxMatches {
			return // the answer cannot take more
		}
	}
}
