package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errTooLarge means that one message is over the limit, of bytes or of values.
var errTooLarge = errors.New("message is larger than the limit")

// event is one server-sent event.
type event struct {
	name, id, retry string
	data            []byte
	hasData         bool
}

// events reads server-sent events within a limit, as the HTML standard parses them:
// what it does not know, it passes over.
type events struct {
	r     *bufio.Reader
	limit int
}

// next returns the next event. After errTooLarge the stream goes on with the event
// after the one that was too large.
func (e *events) next() (event, error) {
	var ev event
	var size int
	seen := false
	for {
		line, err := e.line(e.limit - size)
		if errors.Is(err, errTooLarge) {
			if skipped := e.skip(); skipped != nil {
				return event{}, skipped
			}
			return event{}, errTooLarge
		}
		if err != nil && len(line) == 0 {
			return event{}, err // an event that was not finished is none
		}
		size += len(line)
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			if seen {
				return ev, nil
			}
			size = 0
			continue
		}
		seen = ev.field(line) || seen
	}
}

// field takes up one line.
func (ev *event) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "id":
		ev.id = string(value)
	case "retry":
		ev.retry = string(value)
	case "data":
		if ev.hasData {
			ev.data = append(ev.data, '\n')
		}
		ev.data, ev.hasData = append(ev.data, value...), true
	default:
		return false
	}
	return true
}

// line reads a line with its end, of at most limit bytes.
func (e *events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if end := len(line) == 0 && len(bytes.TrimRight(part, "\r\n")) == 0; len(line)+len(part) > limit && !end {
			if err == nil { // the line is over, the event may not be
				return nil, errTooLarge
			}
			return nil, errors.Join(errTooLarge, e.restOfLine(err))
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (e *events) restOfLine(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = e.r.ReadSlice('\n')
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// skip passes over the rest of an event.
func (e *events) skip() error {
	for {
		part, err := e.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = e.restOfLine(err)
			if err != nil {
				return err
			}
			continue
		}
		if err != nil || len(bytes.TrimRight(part, "\r\n")) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// write appends the event in its plainest form; data is one line.
func (ev *event) write(b *bytes.Buffer) {
	for _, f := range [...][2]string{{"event", ev.name}, {"id", ev.id}, {"retry", ev.retry}} {
		if f[1] != "" {
			b.WriteString(f[0] + ": " + f[1] + "\n")
		}
	}
	if ev.hasData {
		b.WriteString("data: ")
		b.Write(ev.data)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}
