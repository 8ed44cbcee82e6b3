package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
)

const patience = 30 * time.Second

// fakeSidecar is ready when told so.
type fakeSidecar struct {
	mu       sync.Mutex
	status   Status
	moved    chan struct{}
	waiting  chan struct{}
	gone     chan struct{}
	reported []bridge.Outcome
	report   func(ctx context.Context, o bridge.Outcome) error
}

func newFake() *fakeSidecar {
	return &fakeSidecar{status: Status{State: StateStarting}, moved: make(chan struct{}),
		waiting: make(chan struct{}, 16), gone: make(chan struct{}, 16)}
}

func (f *fakeSidecar) set(s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = s
	close(f.moved)
}

func (f *fakeSidecar) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *fakeSidecar) Wait(ctx context.Context) Status {
	f.waiting <- struct{}{}
	select {
	case <-f.moved:
	case <-ctx.Done():
		f.gone <- struct{}{}
	}
	return f.Status()
}

func (f *fakeSidecar) Report(ctx context.Context, o bridge.Outcome) error {
	f.mu.Lock()
	f.reported = append(f.reported, o)
	f.mu.Unlock()
	if f.report != nil {
		return f.report(ctx, o)
	}
	return nil
}

// socketPath is short enough for a Unix socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") //nolint:usetesting // TempDir's path holds the test's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "control.sock")
}

// serve answers on a socket until stop, which returns what Serve did.
func serve(t *testing.T, path string, h Handler, grace time.Duration) (stop func() error) {
	t.Helper()
	listener, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, h, grace) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("does not end")
		}
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return stop
}

func TestWaitEndsWhenTheBridgeIsReady(t *testing.T) {
	path, f := socketPath(t), newFake()
	serve(t, path, f, patience)
	c := &Client{Path: path}
	if got, err := c.Status(t.Context()); err != nil || got.State != StateStarting {
		t.Errorf("status = %+v, %v", got, err)
	}
	done := make(chan error, 1)
	go func() { done <- c.WaitReady(t.Context()) }()
	<-f.waiting
	select {
	case err := <-done:
		t.Fatalf("returned before the bridge was ready: %v", err)
	default:
	}
	f.set(Status{State: StateReady, Initialized: true})
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := c.Status(t.Context()); err != nil || got != (Status{State: StateReady, Initialized: true}) {
		t.Errorf("status = %+v, %v", got, err)
	}
}

func TestWaitOutlivesASidecarThatIsStartedAgain(t *testing.T) {
	path := socketPath(t)
	failed := newFake()
	failed.set(Status{State: StateFailed, Message: "no kernel"})
	stop := serve(t, path, failed, patience)
	var pauses int
	c := &Client{Path: path, Pause: func(ctx context.Context) error {
		pauses++
		if pauses == 2 {
			if err := stop(); err != nil { // from now on nobody listens
				t.Error(err)
			}
		}
		if pauses == 4 {
			ready := newFake()
			ready.set(Status{State: StateReady})
			serve(t, path, ready, patience) //nolint:contextcheck // it has one of its own
		}
		return ctx.Err()
	}}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Error(err)
	}
	if pauses != 4 {
		t.Errorf("%d pauses, want 4", pauses)
	}
}

func TestWaitSaysWhyItEnded(t *testing.T) {
	path, f := socketPath(t), newFake()
	f.set(Status{State: StateFailed, Message: "no kernel"})
	serve(t, path, f, patience)
	stop := errors.New("too late")
	c := &Client{Path: path, Pause: func(context.Context) error { return stop }}
	var notReady *NotReadyError
	err := c.WaitReady(t.Context())
	if !errors.Is(err, stop) || !errors.As(err, &notReady) || notReady.Status.Message != "no kernel" {
		t.Errorf("error = %v", err)
	}
}

func TestAWaitIsGivenUpWithItsClient(t *testing.T) {
	path, f := socketPath(t), newFake()
	serve(t, path, f, patience)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&Client{Path: path}).WaitReady(ctx) }()
	<-f.waiting
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	<-f.gone
}

func TestReport(t *testing.T) {
	path, f := socketPath(t), newFake()
	serve(t, path, f, patience)
	c := &Client{Path: path}
	want := bridge.Outcome{Started: true, ExitCode: 137, Output: make([]byte, bridge.MaxOutputBytes), OutputSize: bridge.MaxOutputBytes + 7, OutputSHA256: "abc"}
	if err := c.Report(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if len(f.reported) != 1 || !reflect.DeepEqual(f.reported[0], want) {
		t.Errorf("%d reports, of %d bytes", len(f.reported), len(f.reported[0].Output))
	}
	f.report = func(context.Context, bridge.Outcome) error { return errors.New("the kernel will not") }
	var refused *RefusedError
	if err := c.Report(t.Context(), bridge.Outcome{}); !errors.As(err, &refused) || refused.Message != "the kernel will not" {
		t.Errorf("error = %v", err)
	}
}

// A wrapper that is killed while it waits has said what it had to say.
func TestAReportGoesOnWithoutItsClient(t *testing.T) {
	path, f := socketPath(t), newFake()
	arrived, finished, proceed := make(chan struct{}), make(chan error, 1), make(chan struct{})
	f.report = func(ctx context.Context, _ bridge.Outcome) error {
		close(arrived)
		<-proceed
		finished <- ctx.Err()
		return nil
	}
	stop := serve(t, path, f, patience)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := (&Client{Path: path}).Report(ctx, bridge.Outcome{}); err == nil {
			t.Error("the report was acknowledged to nobody")
		}
	}()
	<-arrived
	cancel()
	<-gone
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }() // and with the pod going as well
	for _, err := os.Stat(path); err == nil; _, err = os.Stat(path) {
		runtime.Gosched() // the socket goes once Serve's context has ended
	}
	close(proceed)
	if err := <-finished; err != nil {
		t.Errorf("the report was given up: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestTheGraceOfReportsEnds(t *testing.T) {
	path, f := socketPath(t), newFake()
	arrived := make(chan struct{})
	f.report = func(ctx context.Context, _ bridge.Outcome) error {
		close(arrived)
		<-ctx.Done()
		return ctx.Err()
	}
	stop := serve(t, path, f, time.Millisecond)
	go func() {
		_ = (&Client{Path: path, Pause: func(context.Context) error { return errors.New("enough") }}).Report(t.Context(), bridge.Outcome{})
	}()
	<-arrived
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	path, f := socketPath(t), newFake()
	serve(t, path, f, patience)
	outcome := func(o string) string { return `{"op":"outcome","outcome":` + o + `}` }
	for name, line := range map[string]string{
		"empty":            ``,
		"not JSON":         `hello`,
		"unknown":          `{"op":"exec"}`,
		"unknown field":    `{"op":"status","more":1}`,
		"twice":            `{"op":"status","op":"wait"}`,
		"other case":       `{"Op":"status"}`,
		"stray outcome":    `{"op":"wait","outcome":{"started":true,"exitCode":0,"initialized":false,"outputSize":0}}`,
		"no outcome":       `{"op":"outcome"}`,
		"exit code":        outcome(`{"started":true,"exitCode":256,"initialized":false,"outputSize":0}`),
		"size":             outcome(`{"started":true,"exitCode":0,"initialized":false,"output":"YWE=","outputSize":1}`),
		"message too long": outcome(`{"started":false,"exitCode":1,"initialized":false,"outputSize":0,"message":"` + strings.Repeat("m", maxOutcomeMessage+1) + `"}`),
		"line too long":    strings.Repeat(" ", maxRequest+1),
	} {
		t.Run(name, func(t *testing.T) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(t.Context(), "unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // a test
			go func() { _, _ = conn.Write([]byte(line + "\n")) }()
			raw, err := readLine(conn, maxResponse)
			if err != nil {
				t.Fatal(err)
			}
			var r response
			if err := json.Unmarshal(raw, &r); err != nil || r.Error == "" || r.Status.State != StateStarting {
				t.Errorf("answer = %s, %v", raw, err)
			}
		})
	}
	if len(f.reported) > 0 || len(f.waiting) > 0 {
		t.Error("something was done all the same")
	}
}

func TestManyAtOnce(t *testing.T) {
	path, f := socketPath(t), newFake()
	serve(t, path, f, patience)
	var asked sync.WaitGroup
	for range 4 * maxConnections {
		asked.Go(func() {
			if _, err := (&Client{Path: path}).Status(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"op":"status"}`, `{"op":"wait"}`, `{"op":"outcome","outcome":{"started":true,"exitCode":3,"initialized":true,"output":"aGk=","outputSize":2}}`,
		`{"op":"outcome","outcome":null}`, `{"op":1}`, `[]`, `{}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			return
		}
		if (r.Op == OpOutcome) != (r.Outcome != nil) {
			t.Fatalf("%s carries outcome %v", r.Op, r.Outcome)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseRequest(again)
		if err != nil {
			t.Fatalf("%s is not read back: %v", again, err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("read back (-first +second):\n%s", diff)
		}
	})
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("abc\ndef"), 10)
	f.Add([]byte("\n"), 1)
	f.Add([]byte(strings.Repeat("a", 5000)+"\n"), 5001)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		line, err := readLine(strings.NewReader(string(data)), limit)
		want, _, found := strings.Cut(string(data), "\n")
		switch {
		case err == nil && (!found || string(line) != want || len(line)+1 > limit):
			t.Fatalf("line %q of %q within %d", line, data, limit)
		case err != nil && found && len(want)+1 <= limit:
			t.Fatalf("line %q within %d was refused: %v", want, limit, err)
		}
	})
}
