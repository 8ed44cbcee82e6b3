package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// identity tells one state of a file from another without reading it.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

// settled is how long a file must have been left alone before its identity stands
// for its content: within the clock tick of a change another could go unnoticed.
const settled = 2 * time.Second

// maxVersions bounds the remembered versions.
const maxVersions = 1 << 16

// versions remembers the versions of files by their identity.
type versions struct {
	clock func() time.Time
	mu    sync.Mutex
	known map[identity][sha256.Size]byte
}

func newVersions(clock func() time.Time) *versions {
	return &versions{clock: clock, known: make(map[identity][sha256.Size]byte)}
}

func (v *versions) get(info fs.FileInfo) (string, bool) {
	id, ok := identityOf(info)
	if !ok {
		return "", false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	sum, ok := v.known[id]
	return hex.EncodeToString(sum[:]), ok
}

// put remembers what a file whose hashing began after info was taken hashed to.
func (v *versions) put(info fs.FileInfo, sum [sha256.Size]byte) {
	id, ok := identityOf(info)
	if !ok {
		return
	}
	latest := time.Unix(0, max(id.mtime, id.ctime))
	if v.clock().Sub(latest) < settled {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for old := range v.known {
		if len(v.known) < maxVersions {
			break
		}
		delete(v.known, old) // any: it is only a cache
	}
	v.known[id] = sum
}

// of returns the version of an open file that info describes.
func (v *versions) of(ctx context.Context, f *os.File, info fs.FileInfo) (string, error) {
	if version, ok := v.get(info); ok {
		return version, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{ctx, io.NewSectionReader(f, 0, info.Size())}); err != nil {
		return "", fmt.Errorf("hash file: %w", err)
	}
	sum := sumOf(h)
	v.put(info, sum)
	return hex.EncodeToString(sum[:]), nil
}

func sumOf(h hash.Hash) (sum [sha256.Size]byte) {
	h.Sum(sum[:0])
	return sum
}

// contextReader stops reading when the context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // an io.Reader has no other way to be cancelled
	r   io.Reader
}

// Read implements [io.Reader].
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
