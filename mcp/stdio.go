package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// MaxLine is the longest line of stdio that is read as a message, bytes. A longer
// one is answered as unreadable and skipped.
const MaxLine = 16 << 20

// maxQueued bounds the lines that wait while a call runs, bytes. One line may
// always wait.
const (
	maxQueued = 32 << 20
	// queuedLine is what a line costs beside its bytes.
	queuedLine = 64
)

// ServeStdio answers newline-delimited JSON strictly in the order of its arrival;
// only a cancellation overtakes. It returns when the input has ended or ctx has,
// once everything read is answered; calls are then cancelled, and an r that is an
// [io.Closer] is closed so that a waiting read ends. Any other r keeps a goroutine
// until its read returns.
//
// Its error is the reader's or the writer's; the end of input and of ctx are none.
func ServeStdio(ctx context.Context, server *Server, r io.Reader, w io.Writer) error {
	if server == nil {
		return fmt.Errorf("serve MCP over stdio: %w", ErrNoServer)
	}
	sess, lines := newSession(), newLineQueue()
	go func() { lines.close(readLines(bufio.NewReaderSize(r, 64<<10), sess, lines)) }()
	stop := context.AfterFunc(ctx, func() {
		lines.close(nil)
		if c, ok := r.(io.Closer); ok {
			_ = c.Close() // it is only to end a read
		}
	})
	defer stop()
	for {
		line, ok := lines.next()
		if !ok {
			return lines.err()
		}
		reply := lineReply(ctx, server, sess, line)
		answer := reply.document()
		if answer == nil {
			continue
		}
		if _, err := w.Write(append(answer, '\n')); err != nil {
			lines.close(nil)
			return fmt.Errorf("write answer: %w", err)
		}
	}
}

func lineReply(ctx context.Context, server *Server, sess *session, line []byte) reply {
	if line == nil {
		return reply{outcome: outcomeUnreadable, answers: [][]byte{EncodeError(nil, unreadable("too_long"))}}
	}
	return server.handle(ctx, sess, line)
}

// readLines reads until the end. A nil line stands for one that is too long.
func readLines(r *bufio.Reader, sess *session, lines *lineQueue) error {
	for {
		line, err := readLine(r)
		tooLong := errors.Is(err, errLineTooLong)
		if len(line) > 0 || tooLong {
			cancelEarly(sess, line)
			if !lines.add(line) {
				return nil
			}
		}
		if err != nil && (!tooLong || errors.Is(err, io.EOF)) {
			return err
		}
	}
}

var errLineTooLong = errors.New("line too long")

// readLine reads up to a newline and strips white space around the line. Its error
// may be two: that the line is too long, and the reader's.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > MaxLine+1; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong:
			return nil, errors.Join(errLineTooLong, err)
		default:
			return trimLine(line), err
		}
	}
}

func trimLine(line []byte) []byte {
	isSpace := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for len(line) > 0 && isSpace(line[0]) {
		line = line[1:]
	}
	for len(line) > 0 && isSpace(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line
}

// maxCancellation is the longest line that is looked at for a cancellation before
// its turn.
const maxCancellation = 4 << 10

// cancelEarly lets a cancellation reach the call that is running now. In its turn
// it finds nothing left to cancel.
func cancelEarly(sess *session, line []byte) {
	if len(line) == 0 || len(line) > maxCancellation {
		return
	}
	node, err := strictjson.Parse(line)
	if err != nil {
		return
	}
	if m := classify(&node); m.shape == shapeNotification && m.method == methodCancelled {
		cancelCall(sess, &m)
	}
}

// lineQueue holds lines between their arrival and their turn.
type lineQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	lines   [][]byte
	size    int
	closed  bool
	fault   error
}

func newLineQueue() *lineQueue {
	q := &lineQueue{}
	q.changed.L = &q.mu
	return q
}

// add waits for room; it reports false once the queue is closed.
func (q *lineQueue) add(line []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.lines) > 0 && q.size+queuedLine+len(line) > maxQueued {
		q.changed.Wait()
	}
	if q.closed {
		return false
	}
	q.lines = append(q.lines, line)
	q.size += queuedLine + len(line)
	q.changed.Broadcast()
	return true
}

// next waits for a line; it reports false once the queue is closed and drained.
func (q *lineQueue) next() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.lines) == 0 {
		q.changed.Wait()
	}
	if len(q.lines) == 0 {
		return nil, false
	}
	line := q.lines[0]
	q.lines[0] = nil
	q.lines = q.lines[1:]
	q.size -= queuedLine + len(line)
	q.changed.Broadcast()
	return line, true
}

// close ends the queue; the first cause stays.
func (q *lineQueue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		if err != nil && !errors.Is(err, io.EOF) {
			q.fault = fmt.Errorf("read message: %w", err)
		}
	}
	q.changed.Broadcast()
}

func (q *lineQueue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fault
}
