package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// Handler is what a sidecar offers on its socket. It is called concurrently.
type Handler interface {
	// Status is where the sidecar stands now.
	Status() Status
	// Wait returns once the sidecar is no longer starting, or when ctx ends.
	Wait(ctx context.Context) Status
	// Report returns once the kernel has the outcome.
	Report(ctx context.Context, outcome bridge.Outcome) error
}

// Limits of the socket.
const (
	// maxConnections at a time; more wait for their turn.
	maxConnections = 8
	requestTimeout = 10 * time.Second
	answerTimeout  = 10 * time.Second
)

// Listen makes the socket. Every user of the pod may connect: the harness rarely
// runs as the sidecar's user. A socket left by an earlier process is replaced.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for every user of the pod
		return nil, fmt.Errorf("make control directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old control socket: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // connecting needs write permission
		_ = listener.Close()
		return nil, fmt.Errorf("open control socket to the pod: %w", err)
	}
	return listener, nil
}

// Serve answers until ctx ends; then it closes the listener, gives running reports
// the grace, and returns.
func Serve(ctx context.Context, listener net.Listener, handler Handler, grace time.Duration) error {
	reports, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()

	slots := make(chan struct{}, maxConnections)
	var running sync.WaitGroup
	var failure error
	for ctx.Err() == nil && failure == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				failure = fmt.Errorf("accept on control socket: %w", err)
			}
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			answer(ctx, reports, conn, handler)
		})
	}
	_ = listener.Close() // nobody is accepted any more
	timer := time.AfterFunc(grace, abandon)
	defer timer.Stop()
	running.Wait()
	return failure
}

// answer carries one request. A wait ends with ctx or when its client hangs up; a
// report goes on in its own context, whatever becomes of the client.
func answer(ctx, reports context.Context, conn net.Conn, handler Handler) {
	defer conn.Close() //nolint:errcheck // nothing is left to do about it
	stop := context.AfterFunc(reports, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout)) // then the read fails
	line, err := readLine(conn, maxRequest)
	if err != nil {
		reply(conn, response{Status: handler.Status(), Error: err.Error()})
		return
	}
	asked, err := parseRequest(line)
	if err != nil {
		reply(conn, response{Status: handler.Status(), Error: err.Error()})
		return
	}
	_ = conn.SetReadDeadline(time.Time{}) // then the wait ends early
	switch asked.Op {
	case OpWait:
		reply(conn, response{Status: handler.Wait(untilHangUp(ctx, conn))})
	case OpOutcome:
		var out response
		if err := handler.Report(reports, *asked.Outcome); err != nil {
			out.Error = err.Error()
		}
		out.Status = handler.Status()
		reply(conn, out)
	case OpStatus:
		reply(conn, response{Status: handler.Status()})
	}
}

// untilHangUp ends when the other side closes the connection, or says more than it
// may. The reader ends with the connection.
func untilHangUp(ctx context.Context, conn net.Conn) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = conn.Read(make([]byte, 1)) // any end is the end
	}()
	return ctx
}

func reply(conn net.Conn, r response) {
	_ = conn.SetWriteDeadline(time.Now().Add(answerTimeout)) // then the write fails
	_ = writeLine(conn, r)                                   // the client is gone
}
