package durable

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/sharedos-dev/operator/kernel/audit"
)

// Entry is one record of a log.
type Entry struct {
	// Seq is its number, from 0.
	Seq   int64
	Event audit.Event
}

// Events reads a log in order, each record verified against the one before it. At the
// first that is not as it was written it yields a [*DamageError] and stops; an
// incomplete record at the end of the log, which was never acknowledged, is left out.
// The log may be in use meanwhile.
func Events(dir string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		list, err := segments(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		at := start()
		for i, s := range list {
			if s.first != at.Seq+1 {
				yield(Entry{}, &DamageError{Segment: s.path, Seq: at.Seq + 1, Err: ErrMissing})
				return
			}
			if !readSegment(s, i == len(list)-1, &at, yield) {
				return
			}
		}
	}
}

// readSegment reports whether to go on.
func readSegment(s segment, last bool, at *position, yield func(Entry, error) bool) bool {
	f, err := os.Open(s.path)
	if err != nil {
		yield(Entry{}, fmt.Errorf("open segment: %w", err))
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	in := bufio.NewReaderSize(f, 1<<16)
	for line := 1; ; line++ {
		data, err := readLine(in)
		if errors.Is(err, io.EOF) || (last && errors.Is(err, errTorn)) {
			return true
		}
		var entry Entry
		if err == nil {
			entry, err = readRecord(data, at)
		}
		if err != nil {
			yield(Entry{}, &DamageError{Segment: s.path, Line: line, Seq: at.Seq + 1, Err: err})
			return false
		}
		if !yield(entry, nil) {
			return false
		}
	}
}

func readRecord(line []byte, at *position) (Entry, error) {
	next, err := checkRecord(line, *at)
	if err != nil {
		return Entry{}, err
	}
	var record struct {
		Event audit.Event `json:"event"`
	}
	if err := json.Unmarshal(line, &record); err != nil {
		return Entry{}, errDamaged
	}
	*at = next
	return Entry{Seq: next.Seq, Event: record.Event}, nil
}
