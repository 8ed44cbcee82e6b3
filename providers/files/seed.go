package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxSeedDepth stops at links that lead in circles.
const maxSeedDepth = 64

// Seed copies the files below from into to where nothing is yet, and counts them.
// Links inside from are followed, because a mounted ConfigMap is made of them;
// names that begin with two dots are its machinery and left out.
func Seed(ctx context.Context, from, to string) (int, error) {
	source, err := os.OpenRoot(from)
	if err != nil {
		return 0, fmt.Errorf("open seed: %w", err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenRoot(to)
	if err != nil {
		return 0, fmt.Errorf("open root: %w", err)
	}
	defer func() { _ = target.Close() }()
	return seedFolder(ctx, source, target, ".", 0)
}

func seedFolder(ctx context.Context, source, target *os.Root, folder string, depth int) (int, error) {
	if depth > maxSeedDepth {
		return 0, errors.New("copy seed: folders are nested too deeply")
	}
	entries, err := fs.ReadDir(source.FS(), folder)
	if err != nil {
		return 0, fmt.Errorf("read seed: %w", err)
	}
	copied := 0
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), "..") || isReserved(entry.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return copied, err
		}
		info, err := source.Stat(name)
		if err != nil {
			return copied, fmt.Errorf("read seed: %w", err)
		}
		n := 0
		switch {
		case info.IsDir():
			n, err = seedFolder(ctx, source, target, name, depth+1)
		case info.Mode().IsRegular():
			n, err = seedFile(source, target, name)
		}
		copied += n
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}

func seedFile(source, target *os.Root, name string) (int, error) {
	if _, err := target.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	in, err := source.Open(name)
	if err != nil {
		return 0, fmt.Errorf("read seed: %w", err)
	}
	defer func() { _ = in.Close() }()
	if err := target.MkdirAll(path.Dir(name), 0o775); err != nil {
		return 0, fmt.Errorf("copy seed: %w", err)
	}
	// Written under another name first: half a file must not pass for one that
	// exists already when the next start looks.
	temporary := path.Join(path.Dir(name), reserved+"-seed")
	out, err := target.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o664)
	if err != nil {
		return 0, fmt.Errorf("copy seed: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return 0, fmt.Errorf("copy seed: %w", err)
	}
	if err := target.Rename(temporary, name); err != nil {
		return 0, fmt.Errorf("copy seed: %w", err)
	}
	return 1, nil
}
