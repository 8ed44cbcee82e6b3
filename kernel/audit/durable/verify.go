package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxRecord is the longest line that is read, bytes: 4,096 rejected grants with
// ids of 256 characters fit.
const maxRecord = 8 << 20

// maxEvent leaves room for what a record adds to its event.
const maxEvent = maxRecord - 1024

// DamageError names the first record that is not as it was written.
type DamageError struct {
	// Segment is the file; Line counts from 1, and 0 means the file as a whole.
	Segment string
	Line    int
	// Seq is the number the record should have.
	Seq int64
	Err error
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("audit record %d (%s line %d): %v", e.Seq, e.Segment, e.Line, e.Err)
}

// Unwrap returns the fault.
func (e *DamageError) Unwrap() error { return e.Err }

// Faults that concern the log as a whole.
var (
	ErrTruncated    = errors.New("log ends before the last acknowledged record")
	ErrHeadMismatch = errors.New("last acknowledged record is not the one in the log")
	ErrMissing      = errors.New("segment is missing")
)

// Summary is what a verified log holds.
type Summary struct {
	// Records is how many there are.
	Records int64
	// Hash is the last record's; keep it elsewhere to notice a log that was
	// rewritten as a whole.
	Hash string
	// Torn is the number of bytes of an incomplete, never acknowledged record at
	// the end; opening the log removes them.
	Torn int64
}

// Verify reads a whole log and checks every record against the one before it and
// the end against HEAD. The first record that was altered, removed, added or moved
// is named by a [*DamageError].
func Verify(dir string) (Summary, error) {
	head, err := readHead(dir)
	if err != nil {
		return Summary{}, err
	}
	list, err := segments(dir)
	if err != nil {
		return Summary{}, err
	}
	v := verifier{at: start(), head: head}
	for i, s := range list {
		if err := v.segment(s, i == len(list)-1); err != nil {
			return Summary{}, err
		}
	}
	if err := v.finish(dir); err != nil {
		return Summary{}, err
	}
	return Summary{Records: v.at.Seq + 1, Hash: v.at.Hash, Torn: v.torn}, nil
}

// verifier walks a log.
type verifier struct {
	at   position
	head position
	torn int64
	// whole is how many bytes of the last segment are complete records.
	whole int64
}

// segment checks one file. Only the last one may end in an incomplete record.
func (v *verifier) segment(s segment, last bool) error {
	if s.first != v.at.Seq+1 {
		return &DamageError{Segment: s.path, Seq: v.at.Seq + 1, Err: ErrMissing}
	}
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	v.whole = 0
	in := bufio.NewReaderSize(f, 1<<16)
	for line := 1; ; line++ {
		data, err := readLine(in)
		if err == io.EOF { //nolint:errorlint // returned as it is
			return nil
		}
		damage := &DamageError{Segment: s.path, Line: line, Seq: v.at.Seq + 1, Err: err}
		switch {
		case errors.Is(err, errTorn):
			if !last || v.at.Seq < v.head.Seq {
				return damage
			}
			v.torn = int64(len(data))
			return nil
		case err != nil:
			return damage
		}
		if err := v.record(data); err != nil {
			damage.Err = err
			return damage
		}
	}
}

func (v *verifier) record(data []byte) error {
	at, err := checkRecord(data, v.at)
	if err != nil {
		return err
	}
	if at.Seq == v.head.Seq && at.Hash != v.head.Hash {
		return ErrHeadMismatch
	}
	v.at = at
	v.whole += int64(len(data)) + 1
	return nil
}

func (v *verifier) finish(dir string) error {
	if v.at.Seq < v.head.Seq {
		return &DamageError{Segment: dir, Seq: v.at.Seq + 1, Err: ErrTruncated}
	}
	return nil
}

// readLine returns the next line without its newline; errTorn comes with the bytes
// after the last newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxRecord:
			return nil, errDamaged
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return line, errTorn
		default:
			return nil, err
		}
	}
}
