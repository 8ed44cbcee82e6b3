package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

const (
	// maxIndexed bounds how much of a file's beginning is searched by words, bytes.
	maxIndexed = 1 << 20
	// A batch of the index holds so many files or bytes.
	batchDocuments = 256
	batchBytes     = 8 << 20
)

// indexer keeps one world's index current. What the provider itself changes is
// marked at once and indexed before the next search; everything else is found by
// scanning the tree.
type indexer struct {
	tree  *tree
	index Index

	// lock is held by the one that writes the index; a channel, so that waiting for
	// it can be given up.
	lock chan struct{}
	// scanned is closed when the index first agreed with the tree.
	scanned chan struct{}

	mu     sync.Mutex
	dirty  map[string]struct{} // paths that changed, files or folders
	taken  bool                // a flush took dirty and has not ended
	stamps map[string]string   // what the index holds
}

func newIndexer(t *tree, index Index) *indexer {
	return &indexer{
		tree: t, index: index, lock: make(chan struct{}, 1), scanned: make(chan struct{}),
		dirty: make(map[string]struct{}), stamps: make(map[string]string),
	}
}

// mark says that the file or folder at path is not what it was.
func (x *indexer) mark(path contract.Path) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dirty[idOf(path)] = struct{}{}
}

func (x *indexer) acquire(ctx context.Context) error {
	select {
	case x.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *indexer) release() { <-x.lock }

// load reads what the index holds, once, before the first scan.
func (x *indexer) load(ctx context.Context) error {
	return x.index.Stamps(ctx, func(path contract.Path, stamp string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stamps[idOf(path)] = stamp
	})
}

// scan compares the tree with the index and brings what differs into the index, in
// batches that let searches in between.
func (x *indexer) scan(ctx context.Context) error {
	differ, err := x.differences(ctx, contract.Path{})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(differ, batchDocuments) {
		if err := x.acquire(ctx); err != nil {
			return err
		}
		err := x.apply(ctx, batch)
		x.release()
		if err != nil {
			return err
		}
	}
	select {
	case <-x.scanned:
	default:
		close(x.scanned)
	}
	return nil
}

// flush indexes what was marked. The caller holds the lock.
func (x *indexer) flush(ctx context.Context) error {
	x.mu.Lock()
	marked := x.dirty
	x.dirty, x.taken = make(map[string]struct{}), true
	x.mu.Unlock()
	var changed []string
	var err error
	for id := range marked {
		var differ []string
		if differ, err = x.differences(ctx, pathOf(id)); err != nil {
			break
		}
		changed = append(changed, differ...)
	}
	for batch := range slices.Chunk(changed, batchDocuments) {
		if err == nil {
			err = x.apply(ctx, batch)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.taken = false
	if err != nil { // they are still to be done
		for id := range marked {
			x.dirty[id] = struct{}{}
		}
	}
	return err
}

// differences returns the files at or below path that the index does not hold as
// they are, and those it holds that are gone.
func (x *indexer) differences(ctx context.Context, path contract.Path) ([]string, error) {
	now, err := x.present(ctx, path)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var differ []string
	for id, stamp := range now {
		if x.stamps[id] != stamp {
			differ = append(differ, id)
		}
	}
	at := idOf(path)
	if _, exact := x.stamps[at]; exact && len(now) <= 1 {
		// The common case, a file, without looking at all others.
		if _, there := now[at]; !there {
			differ = append(differ, at)
		}
		slices.Sort(differ)
		return differ, nil
	}
	if _, file := now[at]; file {
		return differ, nil // new; should a folder have been here, a scan will tell
	}
	for id := range x.stamps {
		if _, there := now[id]; !there && (at == "" || id == at || strings.HasPrefix(id, at+"/")) {
			differ = append(differ, id)
		}
	}
	slices.Sort(differ)
	return differ, nil
}

// present returns the stamps of the files at or below path.
func (x *indexer) present(ctx context.Context, path contract.Path) (map[string]string, error) {
	now := make(map[string]string)
	add := func(l leaf) error {
		if info, err := l.dir.Lstat(l.name); err == nil && info.Mode().IsRegular() {
			now[idOf(l.path)] = stampOf(info)
		}
		return nil
	}
	info, err := x.tree.lstat(path)
	if missing(err) || errors.Is(err, nofollow.ErrMoved) {
		return now, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		now[idOf(path)] = stampOf(info)
		return now, nil
	}
	if !info.IsDir() {
		return now, nil
	}
	dir, err := x.tree.folder(path)
	if missing(err) {
		return now, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return now, walk(ctx, dir, path, add)
}

// apply brings files into the index as they are now. The caller holds the lock.
func (x *indexer) apply(ctx context.Context, ids []string) error {
	var put []Document
	var gone []contract.Path
	size := 0
	flush := func() error {
		if err := x.index.Apply(put, gone); err != nil {
			return err
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		for i := range put {
			x.stamps[idOf(put[i].Path)] = put[i].Stamp
		}
		for _, path := range gone {
			delete(x.stamps, idOf(path))
		}
		put, gone, size = nil, nil, 0
		return nil
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := x.document(pathOf(id))
		if err != nil {
			gone = append(gone, pathOf(id)) // gone or not readable
			continue
		}
		put = append(put, d)
		if size += len(d.Text); size > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (x *indexer) document(path contract.Path) (Document, error) {
	f, info, err := x.tree.file(path)
	if err != nil {
		return Document{}, err
	}
	defer func() { _ = f.Close() }()
	text, err := beginning(f, min(info.Size(), maxIndexed))
	return Document{Path: path, Stamp: stampOf(info), Text: text}, err
}

// beginning returns the text a file begins with; a binary one has none.
func beginning(f *os.File, n int64) (string, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("read file: %w", err)
	}
	b = b[:got]
	if hasZero(b[:min(len(b), sniff)]) {
		return "", nil
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}
