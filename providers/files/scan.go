package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

const (
	// window is how much of a file is looked at once; it stays in
	// processor's cache. A longer line is searched in pieces.
	window = 256 << 10
	// sniff is how much of a file's beginning decides that it is binary.
	sniff = 8 << 10
	// maxLine bounds the bytes shown of one line.
	maxLine = 2 << 10
	// maxContext bounds how far around a match its context is looked for, bytes.
	maxContext = 64 << 10
)

// scanner searches one file after another.
type scanner struct {
	m             matcher
	before, after int
	buf           []byte
}

func newScanner(m matcher, in *plane.GrepInput) *scanner {
	return &scanner{m: m, before: in.ContextBefore, after: in.ContextAfter, buf: make([]byte, window)}
}

// scan searches one file. What is binary, gone, or cannot be read is skipped.
func (s *scanner) scan(ctx context.Context, dir *os.Root, name string, path contract.Path) (found []plane.GrepMatch, skipped int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	f, _, err := regular(dir, name)
	if err != nil {
		return nil, 1, nil
	}
	defer func() { _ = f.Close() }()
	v := &view{scanner: s, f: f, path: path}
	if err := v.run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		return nil, 1, nil
	}
	return v.found, 0, nil
}

var errBinary = errors.New("file is binary")

// view is one file on its way through the window.
type view struct {
	*scanner
	f     *os.File
	path  contract.Path
	found []plane.GrepMatch

	offset int64 // of the window in the file
	line   int64 // line breaks before the window
	last   int64 // the line of the last match
}

func (v *view) run(ctx context.Context) error {
	kept := 0 // bytes at the window's beginning that the last round left
	for first := true; ; first = false {
		n, err := io.ReadFull(v.f, v.buf[kept:])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("read file: %w", err)
		}
		data := v.buf[:kept+n]
		if first && bytes.IndexByte(data[:min(len(data), sniff)], 0) >= 0 {
			return errBinary
		}
		// Whole lines only, except at the end and in a line longer than the window.
		whole, keep := len(data), 0
		if !last {
			if cut := bytes.LastIndexByte(data, '\n') + 1; cut > 0 {
				whole, keep = cut, len(data)-cut
			} else {
				keep = min(v.m.overlap(), len(data)-1)
			}
		}
		if err := v.search(data[:whole]); err != nil {
			return err
		}
		if last || len(v.found) > maxMatches {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		v.line += int64(bytes.Count(data[:whole], []byte{'\n'}))
		v.offset += int64(len(data) - keep)
		kept = copy(v.buf, data[len(data)-keep:])
	}
}

// search finds the matching lines of one window.
func (v *view) search(data []byte) error {
	counted, line := 0, v.line+1
	for at := 0; at < len(data); {
		hit := v.m.find(data[at:])
		if hit < 0 {
			return nil
		}
		hit += at
		start := bytes.LastIndexByte(data[:hit], '\n') + 1
		end := indexFrom(data, '\n', hit)
		line += int64(bytes.Count(data[counted:start], []byte{'\n'}))
		counted = start
		if line != v.last { // else a further piece of a long line
			v.last = line
			if err := v.add(data[start:end], line, v.offset+int64(start)); err != nil {
				return err
			}
			if len(v.found) > maxMatches {
				return nil
			}
		}
		at = end + 1
	}
	return nil
}

func (v *view) add(text []byte, line, start int64) error {
	m := plane.GrepMatch{Path: v.path, Line: line}
	m.Text, m.Cut = shown(text)
	var err error
	if v.before > 0 {
		if m.Before, err = v.linesBefore(start); err != nil {
			return err
		}
	}
	if v.after > 0 {
		if m.After, err = v.linesAfter(start + int64(len(text)) + 1); err != nil {
			return err
		}
	}
	v.found = append(v.found, m)
	return nil
}

func (v *view) linesBefore(end int64) ([]string, error) {
	from := max(0, end-maxContext)
	b, err := v.around(from, end-from)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // the first may be cut
	}
	return shownAll(lines[max(0, len(lines)-v.before):]), nil
}

func (v *view) linesAfter(start int64) ([]string, error) {
	b, err := v.around(start, maxContext)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	lines := bytes.SplitN(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"), v.after+1)
	return shownAll(lines[:min(v.after, len(lines))]), nil
}

// around reads a part of the file without moving in it.
func (v *view) around(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := v.f.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return b[:got], nil
}

func shownAll(lines [][]byte) []string {
	out := make([]string, len(lines))
	for i := range lines {
		out[i], _ = shown(lines[i])
	}
	return out
}

// shown is a line as it is answered: valid UTF-8 of a bounded length.
func shown(line []byte) (text string, cut bool) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > maxLine {
		line, cut = line[:maxLine], true
	}
	return strings.ToValidUTF8(string(line), "\uFFFD"), cut
}
