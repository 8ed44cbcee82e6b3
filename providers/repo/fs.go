package repo

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-billy/v5"

	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

// rooted is the library's file system: a folder it cannot leave and in which it
// follows no link. Reading operations get one that refuses to write.
type rooted struct {
	ctx      context.Context //nolint:containedctx // the library's interface has no other way to be cancelled
	root     *os.Root
	prefix   string // of every name, without a slash at its ends
	writable bool
	git      bool // the .git folder, where some files are written at once
}

var _ billy.Filesystem = (*rooted)(nil)

// clean makes a name relative to the root. Whatever climbs out ends at the top.
func (r *rooted) clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+r.prefix+path.Clean("/"+name)), "/")
}

// at opens the folder that holds name and runs use with it and the last segment,
// which is "." for the top.
func (r *rooted) at(op, name string, use func(dir *os.Root, base string) error) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	cleaned := r.clean(name)
	if cleaned == "" {
		return use(r.root, ".")
	}
	segments := strings.Split(cleaned, "/")
	last := len(segments) - 1
	dir, err := nofollow.Descend(r.root, segments[:last])
	if err == nil {
		err = use(dir, segments[last])
		_ = dir.Close()
	}
	if errors.Is(err, nofollow.ErrNotDirectory) || errors.Is(err, nofollow.ErrNotFile) {
		// To the library a link is as good as nothing.
		err = &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return err
}

func (r *rooted) mayWrite() error {
	if !r.writable {
		return billy.ErrReadOnly
	}
	return r.ctx.Err()
}

// Create implements [billy.Basic].
func (r *rooted) Create(name string) (billy.File, error) {
	return r.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Open implements [billy.Basic].
func (r *rooted) Open(name string) (billy.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements [billy.Basic].
func (r *rooted) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := r.makeParent(name); err != nil {
			return nil, err
		}
	}
	var out billy.File
	err := r.at("open", name, func(dir *os.Root, base string) error {
		if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) == 0 {
			f, info, err := nofollow.File(dir, base)
			if err != nil {
				return err
			}
			if err := r.admit(f, info); err != nil {
				_ = f.Close()
				return err
			}
			out = &file{File: f, name: name, ctx: r.ctx}
			return nil
		}
		var err error
		out, err = r.openToWrite(dir, name, base, flag, perm)
		return err
	})
	return out, err
}

func (r *rooted) openToWrite(dir *os.Root, name, base string, flag int, perm os.FileMode) (billy.File, error) {
	if err := r.mayWrite(); err != nil {
		return nil, err
	}
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if r.git && flag&os.O_TRUNC != 0 {
		return r.replaceOnClose(dir, name, base, perm)
	}
	f, err := dir.OpenFile(base, flag, perm)
	if err != nil {
		return nil, err
	}
	return &file{File: f, name: name, ctx: r.ctx}, nil
}

// replaceOnClose writes beside the file and takes its place when it is closed, so
// that a crash leaves the old one or the new one.
func (r *rooted) replaceOnClose(dir *os.Root, name, base string, perm os.FileMode) (billy.File, error) {
	own, err := dir.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	temporary := base + ".sharedos-" + rand.Text()
	f, err := own.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		_ = own.Close()
		return nil, err
	}
	return &replacing{file: &file{File: f, name: name, ctx: r.ctx}, dir: own, temporary: temporary, base: base}, nil
}

// makeParent makes the folders of a name, as the library expects of whatever creates.
func (r *rooted) makeParent(name string) error { return r.MkdirAll(path.Dir(name), 0o777) }

// Stat implements [billy.Basic]. It does not follow links either.
func (r *rooted) Stat(name string) (os.FileInfo, error) { return r.Lstat(name) }

// Lstat implements [billy.Symlink].
func (r *rooted) Lstat(name string) (info os.FileInfo, err error) {
	err = r.at("lstat", name, func(dir *os.Root, base string) error {
		info, err = dir.Lstat(base)
		return err
	})
	return info, err
}

// Readlink implements [billy.Symlink].
func (r *rooted) Readlink(name string) (target string, err error) {
	err = r.at("readlink", name, func(dir *os.Root, base string) error {
		target, err = dir.Readlink(base)
		return err
	})
	return target, err
}

// Symlink implements [billy.Symlink]. Nothing here makes links.
func (r *rooted) Symlink(string, string) error { return billy.ErrNotSupported }

// Rename implements [billy.Basic], inside one tree and through no link.
func (r *rooted) Rename(from, to string) error {
	if err := r.mayWrite(); err != nil {
		return err
	}
	if err := r.makeParent(to); err != nil {
		return err
	}
	for _, name := range []string{from, to} { // both folders are reached without a link
		if err := r.at("rename", name, func(*os.Root, string) error { return nil }); err != nil {
			return err
		}
	}
	return r.root.Rename(r.clean(from), r.clean(to))
}

// Remove implements [billy.Basic].
func (r *rooted) Remove(name string) error {
	if err := r.mayWrite(); err != nil {
		return err
	}
	return r.at("remove", name, func(dir *os.Root, base string) error { return dir.Remove(base) })
}

// Join implements [billy.Basic].
func (r *rooted) Join(elem ...string) string { return path.Join(elem...) }

// TempFile implements [billy.TempFile].
func (r *rooted) TempFile(dir, prefix string) (billy.File, error) {
	name := path.Join(dir, prefix+rand.Text())
	return r.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadDir implements [billy.Dir].
func (r *rooted) ReadDir(name string) (out []os.FileInfo, err error) {
	err = r.at("readdir", name, func(dir *os.Root, base string) error {
		folder := dir
		if base != "." {
			if folder, err = nofollow.Dir(dir, base); err != nil {
				return err
			}
			defer func() { _ = folder.Close() }()
		}
		entries, err := fs.ReadDir(folder.FS(), ".")
		for _, entry := range entries {
			if info, err := folder.Lstat(entry.Name()); err == nil {
				out = append(out, info)
			}
		}
		return err
	})
	return out, err
}

// MkdirAll implements [billy.Dir].
func (r *rooted) MkdirAll(name string, perm os.FileMode) error {
	if err := r.mayWrite(); err != nil {
		return err
	}
	made := ""
	for segment := range strings.SplitSeq(r.clean(name), "/") {
		if segment == "" {
			continue
		}
		made = path.Join(made, segment)
		top := &rooted{ctx: r.ctx, root: r.root, writable: true}
		err := top.at("mkdir", made, func(dir *os.Root, base string) error { return dir.Mkdir(base, perm) })
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Chroot implements [billy.Chroot].
func (r *rooted) Chroot(name string) (billy.Filesystem, error) {
	sub := *r
	sub.prefix = r.clean(name)
	sub.git = false
	return &sub, nil
}

// Root implements [billy.Chroot].
func (r *rooted) Root() string { return "/" + r.prefix }
