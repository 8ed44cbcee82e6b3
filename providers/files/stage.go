package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// temporary begins the names of files that are not in place yet, or any more.
const temporary = reserved + "-tmp-"

func temporaryName() string { return temporary + rand.Text() }

// staged is a file with its content written, under a temporary name beside its target.
type staged struct {
	dir     *os.Root
	name    string
	info    fs.FileInfo
	version string
}

// stage writes a file in dir with what fill writes. A failed one leaves nothing.
func (p *Provider) stage(ctx context.Context, dir *os.Root, mode fs.FileMode, fill func(w io.Writer) error) (_ *staged, err error) {
	s := &staged{dir: dir, name: temporaryName()}
	f, err := dir.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o664)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			s.drop()
		}
	}()
	h := sha256.New()
	if err := fill(&limitedWriter{w: io.MultiWriter(f, h), left: p.opts.MaxFile, most: p.opts.MaxFile}); err != nil {
		return nil, err
	}
	sum := sumOf(h)
	s.version = hex.EncodeToString(sum[:])
	if mode != 0 {
		if err := f.Chmod(mode.Perm()); err != nil {
			return nil, err
		}
	}
	if !p.opts.NoSync {
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	if s.info, err = f.Stat(); err != nil {
		return nil, err
	}
	return s, ctx.Err()
}

// drop removes the temporary name.
func (s *staged) drop() { _ = s.dir.Remove(s.name) }

// replace puts the file in the place of whatever file is called name.
func (s *staged) replace(name string) error {
	err := s.dir.Rename(s.name, name)
	if err != nil {
		s.drop()
	}
	return err
}

// create puts the file where nothing is yet, which the file system decides.
func (s *staged) create(name string) error {
	err := s.dir.Link(s.name, name)
	switch {
	case err == nil:
		s.drop()
		return nil
	case errors.Is(err, fs.ErrExist):
		s.drop()
		return fail(plane.CodeAlreadyExists, "There is something at this path already.")
	case !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.ENOSYS):
		s.drop()
		return err
	}
	// A file system without hard links: the provider is its only writer.
	if _, err := s.dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		s.drop()
		if err == nil {
			err = fail(plane.CodeAlreadyExists, "There is something at this path already.")
		}
		return err
	}
	return s.replace(name)
}

// limitedWriter refuses more than a file may hold.
type limitedWriter struct {
	w          io.Writer
	left, most int64
}

// Write implements [io.Writer].
func (l *limitedWriter) Write(b []byte) (int, error) {
	if int64(len(b)) > l.left {
		return 0, fail(plane.CodeTooLarge, "A file may hold at most %d bytes.", l.most)
	}
	n, err := l.w.Write(b)
	l.left -= int64(n)
	return n, err
}

// sync makes the names in dir durable.
func (p *Provider) sync(dir *os.Root) error {
	if p.opts.NoSync {
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeFolders opens the folder at segments below root and makes what is missing of
// it. The caller closes it.
func (p *Provider) makeFolders(root *os.Root, segments []string) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for _, segment := range segments {
		next, err := child(dir, segment)
		if errors.Is(err, fs.ErrNotExist) {
			if err = dir.Mkdir(segment, 0o775); err == nil || errors.Is(err, fs.ErrExist) {
				if err = p.sync(dir); err == nil {
					next, err = child(dir, segment)
				}
			}
		}
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}
