package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
)

// maxDeferral is how long a deferred event waits for a Record to share its commit. A
// turn that calls one tool after the other has one fsync for each call this way, and none
// that competes with the answer for the processor.
const maxDeferral = 5 * time.Millisecond

// Options configure a [Log]. The zero value works.
type Options struct {
	// SegmentBytes is the size past which a new segment begins; 64 MiB by default.
	SegmentBytes int64
	// MaxPending is how many bytes may wait for a commit before Record waits too;
	// 16 MiB by default.
	MaxPending int
	// OnFail, when set, is told once that the log has failed and takes no more.
	OnFail func(err error)
}

// Log is a durable [audit.Sink]. It is safe for concurrent use by one process; a
// lock keeps a second one out.
type Log struct {
	dir  string
	opts Options
	lock *os.File
	open func(path string) (file, error)

	mu      sync.Mutex
	wake    sync.Cond // the committer waits for work, writers for room
	pending *batch
	err     error // the log has failed or is closed
	closing bool
	stopped chan struct{}

	// What follows belongs to the committer alone.
	at      position
	segment file
	size    int64
	head    *os.File
	lines   []byte
	scratch []byte
}

// batch is the records of one commit.
type batch struct {
	events [][]byte
	bytes  int
	due    bool // somebody waits for it, or it has waited for maxDeferral
	done   chan struct{}
	err    error
}

// Errors of a [Log].
var (
	ErrClosed = errors.New("audit log is closed")
	ErrFailed = errors.New("audit log has failed")
	ErrLocked = errors.New("audit log is in use by another process")
	// ErrTooLarge refuses one event that the verifier would not read back; the log
	// goes on.
	ErrTooLarge = errors.New("audit event is too large")
)

// Open opens or creates the log in dir, verifies all of it, and removes an
// incomplete record that a crash left at the end. A log with any other damage is
// not opened: its error is a [*DamageError].
func Open(dir string, opts Options) (*Log, error) {
	if opts.SegmentBytes <= 0 {
		opts.SegmentBytes = 64 << 20
	}
	if opts.MaxPending <= 0 {
		opts.MaxPending = 16 << 20
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the operator names the folder
		return nil, fmt.Errorf("create audit directory: %w", err)
	}
	l := &Log{dir: dir, opts: opts, pending: newBatch(), stopped: make(chan struct{}), open: openSegment}
	l.wake.L = &l.mu
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	go l.run()
	return l, nil
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// openSegment opens a segment for appending.
func openSegment(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// recover takes the lock, verifies the log and positions it at its end.
func (l *Log) recover() error {
	var err error
	if l.lock, err = lock(filepath.Join(l.dir, lockName)); err != nil {
		return err
	}
	list, err := segments(l.dir)
	if err != nil {
		return err
	}
	v := verifier{at: start()}
	if v.head, err = readHead(l.dir); err != nil {
		return err
	}
	for i, s := range list {
		if err := v.segment(s, i == len(list)-1); err != nil {
			return err
		}
	}
	if err := v.finish(l.dir); err != nil {
		return err
	}
	l.at = v.at
	return l.resume(list, &v)
}

// resume cuts off an incomplete record and opens the files for writing.
func (l *Log) resume(list []segment, v *verifier) error {
	path := filepath.Join(l.dir, segmentName(l.at.Seq+1))
	if len(list) > 0 {
		path = list[len(list)-1].path
		if v.torn > 0 {
			if err := os.Truncate(path, v.whole); err != nil {
				return fmt.Errorf("remove incomplete record: %w", err)
			}
		}
		l.size = v.whole
	}
	var err error
	if l.segment, err = l.open(path); err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if l.head, err = os.OpenFile(filepath.Join(l.dir, headName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("open head: %w", err)
	}
	// What recovery kept beyond HEAD is acknowledged from now on.
	if err := errors.Join(l.segment.Sync(), l.writeHead(), l.head.Sync(), syncDir(l.dir)); err != nil {
		return fmt.Errorf("sync recovered log: %w", err)
	}
	return nil
}

// Record implements [audit.Sink]: it returns nil once the event is on disk.
func (l *Log) Record(ctx context.Context, e audit.Event) error {
	b, err := l.enqueue(&e, true)
	if err != nil {
		return err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("wait for audit commit: %w", ctx.Err())
	}
}

// Defer implements [audit.Deferrer]: the event goes into the next commit, which is that
// of the next Record or comes 5 ms later. Any Record that returns nil later vouches for it.
func (l *Log) Defer(_ context.Context, e audit.Event) error {
	_, err := l.enqueue(&e, false)
	return err
}

func (l *Log) enqueue(e *audit.Event, awaited bool) (*batch, error) {
	data, err := e.AppendJSON(make([]byte, 0, 768))
	if err != nil {
		return nil, err
	}
	if len(data) > maxEvent {
		return nil, ErrTooLarge
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.pending.bytes > l.opts.MaxPending {
		l.wake.Wait()
	}
	if l.err != nil {
		return nil, l.err
	}
	b := l.pending
	b.events = append(b.events, data)
	b.bytes += len(data)
	switch {
	case b.due: // the committer knows
	case awaited || b.bytes > l.opts.MaxPending:
		l.due(b)
	case len(b.events) == 1:
		time.AfterFunc(maxDeferral, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.due(b)
		})
	}
	return b, nil
}

// due lets the committer take b if it has not yet. The caller holds the lock.
func (l *Log) due(b *batch) {
	b.due = true
	if b == l.pending {
		l.wake.Broadcast()
	}
}

// Close commits what is pending and closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closing = true
	l.wake.Broadcast()
	l.mu.Unlock()
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	return l.err
}
