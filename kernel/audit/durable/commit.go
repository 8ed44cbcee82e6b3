package durable

import (
	"errors"
	"fmt"
	"path/filepath"
)

// run commits batch after batch until the log is closed or fails. While one commit
// waits for the disk the next one fills up.
func (l *Log) run() {
	defer close(l.stopped)
	for {
		b := l.take()
		if b == nil {
			l.shut(l.finish())
			return
		}
		err := l.commit(b)
		b.err = err
		close(b.done)
		if err != nil {
			l.shut(err)
			return
		}
	}
}

// take waits for a batch; nil means that the log is to be closed.
func (l *Log) take() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.pending.due && !l.closing {
		l.wake.Wait()
	}
	if len(l.pending.events) == 0 {
		return nil
	}
	b := l.pending
	l.pending = newBatch()
	l.wake.Broadcast()
	return b
}

// commit chains the batch's records and puts them on disk.
func (l *Log) commit(b *batch) error {
	if l.size >= l.opts.SegmentBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	l.lines = l.lines[:0]
	at := l.at
	for _, event := range b.events {
		l.lines, l.scratch = appendRecord(l.lines, l.scratch, event, &at)
	}
	if _, err := l.segment.Write(l.lines); err != nil {
		return fmt.Errorf("%w: write: %w", ErrFailed, err)
	}
	if err := l.segment.Sync(); err != nil {
		return fmt.Errorf("%w: sync: %w", ErrFailed, err)
	}
	l.at = at
	l.size += int64(len(l.lines))
	// HEAD follows the records and is not synced on its own: after a loss of power
	// it may lag behind them, never run ahead.
	if err := l.writeHead(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

func (l *Log) writeHead() error {
	if _, err := l.head.WriteAt(encodeHead(l.at), 0); err != nil {
		return fmt.Errorf("write head: %w", err)
	}
	return nil
}

// rotate begins a new segment. The old one is complete and synced.
func (l *Log) rotate() error {
	next, err := l.open(filepath.Join(l.dir, segmentName(l.at.Seq+1)))
	if err != nil {
		return fmt.Errorf("%w: open segment: %w", ErrFailed, err)
	}
	if err := errors.Join(l.segment.Close(), syncDir(l.dir)); err != nil {
		return errors.Join(fmt.Errorf("%w: rotate: %w", ErrFailed, err), next.Close())
	}
	l.segment, l.size = next, 0
	return nil
}

// shut fails everything that waits and everything to come. A log that could not
// write or sync once is not trusted again: what reached the disk is unknown.
func (l *Log) shut(err error) {
	l.mu.Lock()
	failed := err != nil
	if err == nil {
		err = ErrClosed
	}
	l.err = err
	b := l.pending
	l.pending = newBatch()
	l.wake.Broadcast()
	l.mu.Unlock()
	b.err = err
	close(b.done)
	if failed {
		_ = l.release()
		if l.opts.OnFail != nil {
			l.opts.OnFail(err)
		}
	}
}

// finish closes the files of a log that did not fail.
func (l *Log) finish() error {
	if err := errors.Join(l.head.Sync(), l.release()); err != nil {
		return fmt.Errorf("close audit log: %w", err)
	}
	return nil
}

// release closes whatever is open, which also lets go of the lock.
func (l *Log) release() error {
	var errs []error
	if l.segment != nil {
		errs = append(errs, l.segment.Close())
		l.segment = nil
	}
	if l.head != nil {
		errs = append(errs, l.head.Close())
		l.head = nil
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
		l.lock = nil
	}
	return errors.Join(errs...)
}
