package durable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

const (
	headName      = "HEAD"
	lockName      = "LOCK"
	segmentPrefix = "audit-"
	segmentSuffix = ".jsonl"
)

// segmentName names the segment whose first record has the number. The width keeps
// names in order.
func segmentName(first int64) string {
	return fmt.Sprintf("%s%020d%s", segmentPrefix, first, segmentSuffix)
}

// segment is one file of the log.
type segment struct {
	path  string
	first int64
}

// segments lists the files of a log in order.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	var list []segment
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), segmentPrefix)
		if !ok {
			continue
		}
		if digits, ok = strings.CutSuffix(digits, segmentSuffix); !ok {
			continue
		}
		first, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list audit log: %q is not a segment's name", entry.Name())
		}
		list = append(list, segment{filepath.Join(dir, entry.Name()), first})
	}
	slices.SortFunc(list, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	return list, nil
}

// headSize pads HEAD so that every write of it has the same length and replaces the
// one before it whole.
const headSize = 128

// readHead returns the last acknowledged position; a log without HEAD has none.
func readHead(dir string) (position, error) {
	data, err := os.ReadFile(filepath.Join(dir, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return start(), nil
	}
	if err != nil {
		return position{}, fmt.Errorf("read head: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return start(), nil // created, never written
	}
	var head position
	if err := strictjson.Unmarshal(data, &head, strictjson.Options{}); err != nil {
		return position{}, fmt.Errorf("read head: %w", err)
	}
	return head, nil
}

// encodeHead writes a position at HEAD's fixed size.
func encodeHead(at position) []byte {
	data := fmt.Appendf(nil, `{"hash":"%s","seq":%d}`, at.Hash, at.Seq)
	for len(data) < headSize-1 {
		data = append(data, ' ')
	}
	return append(data, '\n')
}

// file is what the log needs of an open segment; tests replace it to fail.
type file interface {
	io.Writer
	io.Closer
	Sync() error
}
