package files

import (
	"context"
	"io/fs"
	"strconv"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Document is a file as an [Index] knows it.
type Document struct {
	Path contract.Path
	// Stamp changes when the file does.
	Stamp string
	// Text is empty for a file that is not text.
	Text string
}

// Index finds the files of one world by words. Search may run beside Apply; the
// other methods are called one at a time.
type Index interface {
	// Apply replaces and removes documents, and returns when Search sees it.
	Apply(put []Document, remove []contract.Path) error
	// Search returns at most limit paths at or below a path, the most relevant
	// first, and how many there are in all.
	Search(ctx context.Context, below contract.Path, query string, limit int) (found []contract.Path, total int, err error)
	// Stamps visits every document in any order.
	Stamps(ctx context.Context, visit func(path contract.Path, stamp string)) error
	// Close releases the index.
	Close() error
}

// stampOf tells one state of a file from another.
func stampOf(info fs.FileInfo) string {
	id, ok := identityOf(info)
	if !ok {
		id = identity{size: info.Size(), mtime: info.ModTime().UnixNano()}
	}
	var b []byte
	for _, n := range []int64{id.size, id.mtime, id.ctime, int64(id.ino)} { //nolint:gosec // only compared
		b = append(strconv.AppendInt(b, n, 36), '.')
	}
	return string(b)
}

func idOf(path contract.Path) string { return strings.Join(path, "/") }

func pathOf(id string) contract.Path {
	if id == "" {
		return contract.Path{}
	}
	return strings.Split(id, "/")
}
