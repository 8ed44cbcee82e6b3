package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Memory keeps events in memory, for tests and short-lived programs. The zero
// value is ready to use.
type Memory struct {
	mu sync.Mutex
	// chunks hold the events in order; none is copied again when more arrive.
	chunks [][]Event
	// Fail, when set, is asked before an event is kept; its error is returned.
	Fail func(e Event) error
}

// chunk is how many events [Memory] makes room for at a time.
const chunk = 64

// Record implements [Sink].
func (m *Memory) Record(_ context.Context, e Event) error {
	if m.Fail != nil {
		if err := m.Fail(e); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.chunks) - 1
	if last < 0 || len(m.chunks[last]) == chunk {
		m.chunks = append(m.chunks, make([]Event, 0, chunk))
		last++
	}
	m.chunks[last] = append(m.chunks[last], e)
	return nil
}

// Events returns a copy of what was kept, in order.
func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Concat(m.chunks...)
}

// Reset forgets what was kept.
func (m *Memory) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chunks = nil
}

// Writer writes one event per line of canonical JSON, for standard output.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// NewWriter returns a sink that writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Record implements [Sink].
func (w *Writer) Record(_ context.Context, e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, err := e.AppendJSON(w.buf[:0])
	if err != nil {
		return err
	}
	line = append(line, '\n')
	w.buf = line
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("write audit event: %w", err)
	}
	return nil
}

// Multi records every event in all sinks, in their order, and fails if any fails:
// an event that one of them could not take is not kept.
func Multi(sinks ...Sink) Sink { return multi(slices.Clone(sinks)) }

type multi []Sink

// Record implements [Sink].
func (m multi) Record(ctx context.Context, e Event) error {
	var errs []error
	for _, sink := range m {
		if err := sink.Record(ctx, e); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Defer implements [Deferrer]: sinks that cannot defer record at once.
func (m multi) Defer(ctx context.Context, e Event) error {
	var errs []error
	for _, sink := range m {
		var err error
		if d, ok := sink.(Deferrer); ok {
			err = d.Defer(ctx, e)
		} else {
			err = sink.Record(ctx, e)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
