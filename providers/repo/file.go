package repo

import (
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errTooLarge is the error of what would not fit into memory.
var errTooLarge = errors.New("too large")

const (
	// maxMetadataFile bounds a file of .git that is read whole, bytes.
	maxMetadataFile = 64 << 20
	// suspicious is the size from which a loose object is inflated before it is
	// trusted: below it cannot inflate to more than maxInflated by much.
	suspicious = 64 << 10
	// maxInflated bounds what an object of that size inflates to, bytes.
	maxInflated = 128 << 20
)

// file is an open file as the library wants it.
type file struct {
	*os.File
	name string
	ctx  context.Context //nolint:containedctx // the library's interface has no other way to be cancelled
}

// Name implements [billy.File].
func (f *file) Name() string { return f.name }

// Read implements [io.Reader] and stops when the caller gave up.
func (f *file) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// Lock implements [billy.File]; index.lock keeps others away.
func (f *file) Lock() error { return nil }

// Unlock implements [billy.File].
func (f *file) Unlock() error { return nil }

// replacing is a file that takes another one's place when it is closed whole.
type replacing struct {
	*file
	dir             *os.Root
	temporary, base string
	failed          bool
}

// Write implements [io.Writer].
func (f *replacing) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.failed = f.failed || err != nil
	return n, err
}

// Close implements [io.Closer]. An operation that was given up changes nothing.
func (f *replacing) Close() error {
	defer func() { _ = f.dir.Close() }()
	err := errors.Join(f.ctx.Err(), f.File.Sync(), f.File.Close())
	if err == nil && !f.failed {
		if err = f.dir.Rename(f.temporary, f.base); err == nil {
			return nil
		}
	}
	_ = f.dir.Remove(f.temporary)
	return err
}

// admit refuses a file of .git that would take too much memory. Files of the
// working tree are read as streams, packs in parts.
func (r *rooted) admit(f *os.File, info fs.FileInfo) error {
	if !r.git {
		return nil
	}
	if info.Size() > maxMetadataFile && !isPack(info.Name()) {
		return fmt.Errorf("open %s: %w", info.Name(), errTooLarge)
	}
	if info.Size() < suspicious || !isObject(info.Name()) {
		return nil
	}
	z, err := zlib.NewReader(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return nil //nolint:nilerr // not an object: the library will say so
	}
	n, err := io.Copy(io.Discard, io.LimitReader(&stoppable{z, r.ctx}, maxInflated+1))
	if err == nil && n > maxInflated {
		err = errTooLarge
	}
	return err
}

// stoppable is a reader that stops when the caller gave up.
type stoppable struct {
	io.Reader
	ctx context.Context //nolint:containedctx // an io.Reader has no other way to be cancelled
}

// Read implements [io.Reader].
func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

func isPack(name string) bool { return len(name) > 5 && name[len(name)-5:] == ".pack" }

// isObject reports that a name is that of a loose object: the rest of its hash.
func isObject(name string) bool {
	if len(name) != 38 {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
