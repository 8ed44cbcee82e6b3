package wrapper

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// The test binary is the child as well: its first argument says what it does.
const childMark = "wrapped-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func child(what string, args []string) int {
	switch what {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Print("some output")
		return code
	case "die":
		n, _ := strconv.Atoi(args[0])
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		for {
			_ = syscall.Pause()
		}
	case "print":
		size, _ := strconv.Atoi(args[0])
		for size > 0 {
			n := min(size, 10_000)
			_, _ = os.Stdout.Write(bytes.Repeat([]byte{'x'}, n))
			size -= n
		}
		return 0
	case "signals":
		got := make(chan os.Signal, 16)
		signal.Notify(got, Forwarded()...)
		fmt.Println("listening")
		for s := range got {
			fmt.Println(s)
			if s == syscall.SIGTERM {
				return 42
			}
		}
	case "leave": // a process that keeps our standard output open
		left := exec.Command(os.Args[0], childMark, "hang")
		left.Stdout = os.Stdout
		if err := left.Start(); err != nil {
			return 1
		}
		fmt.Print(left.Process.Pid)
		return 7
	case "write": // a file, and end with that code
		if err := os.WriteFile(args[0], []byte(args[1]), 0o600); err != nil {
			return 1
		}
		code, _ := strconv.Atoi(args[2])
		return code
	case "hang":
		for {
			_ = syscall.Pause()
		}
	}
	return 1
}

func childArgs(args ...string) []string { return append([]string{os.Args[0], childMark}, args...) }

// fakeBridge is ready at once unless it has a reason.
type fakeBridge struct {
	ready    func(ctx context.Context) error
	reported []bridge.Outcome
	refuse   error
}

func (f *fakeBridge) WaitReady(ctx context.Context) error {
	if f.ready != nil {
		return f.ready(ctx)
	}
	return nil
}

func (f *fakeBridge) Report(_ context.Context, o bridge.Outcome) error {
	f.reported = append(f.reported, o)
	return f.refuse
}

func (f *fakeBridge) only(t *testing.T) bridge.Outcome {
	t.Helper()
	if len(f.reported) != 1 {
		t.Fatalf("%d reports, want 1", len(f.reported))
	}
	return f.reported[0]
}

func TestExitCodesAndOutput(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "not-executable")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte{0, 1, 2, 3}, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args    []string
		code    int
		started bool
		output  string
	}{
		"success":         {childArgs("exit", "0"), 0, true, "some output"},
		"failure":         {childArgs("exit", "3"), 3, true, "some output"},
		"killed":          {childArgs("die", "9"), 128 + 9, true, ""},
		"terminated":      {childArgs("die", "15"), 128 + 15, true, ""},
		"no such file":    {[]string{filepath.Join(dir, "absent")}, ExitNotFound, false, ""},
		"not in the path": {[]string{"surely-no-such-command"}, ExitNotFound, false, ""},
		"not executable":  {[]string{script}, ExitCannotRun, false, ""},
		"no program":      {[]string{garbage}, ExitCannotRun, false, ""},
		"a directory":     {[]string{dir}, ExitCannotRun, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout bytes.Buffer
			f := &fakeBridge{}
			code := Run(t.Context(), Options{Args: tt.args, Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: &stdout})
			o := f.only(t)
			if code != tt.code || o.ExitCode != tt.code || o.Started != tt.started {
				t.Errorf("exit %d, outcome %+v; want %d, started %t", code, o, tt.code, tt.started)
			}
			if string(o.Output) != tt.output || stdout.String() != tt.output || o.OutputSize != int64(len(tt.output)) {
				t.Errorf("output %q (%d), passed on %q; want %q", o.Output, o.OutputSize, stdout.String(), tt.output)
			}
			if sum := sha256.Sum256([]byte(tt.output)); tt.started && o.OutputSHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("hash %s is not the output's", o.OutputSHA256)
			}
			if (o.Message == "") != tt.started {
				t.Errorf("message = %q", o.Message)
			}
		})
	}
}

func TestLongOutputIsCutAndCounted(t *testing.T) {
	const size = bridge.MaxOutputBytes + 123_457
	f := &fakeBridge{}
	var stdout bytes.Buffer
	if code := Run(t.Context(), Options{Args: childArgs("print", strconv.Itoa(size)), Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: &stdout}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	whole := sha256.Sum256(bytes.Repeat([]byte{'x'}, size))
	o := f.only(t)
	if len(o.Output) != bridge.MaxOutputBytes || o.OutputSize != size || o.OutputSHA256 != hex.EncodeToString(whole[:]) || stdout.Len() != size {
		t.Errorf("kept %d of %d, hash %s, passed on %d", len(o.Output), o.OutputSize, o.OutputSHA256, stdout.Len())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestOutputThatNobodyTakesIsStillCaptured(t *testing.T) {
	f := &fakeBridge{}
	code := Run(t.Context(), Options{Args: childArgs("print", "500000"), Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: brokenPipe{}})
	if o := f.only(t); code != 0 || o.OutputSize != 500000 {
		t.Errorf("exit %d, outcome of %d bytes", code, o.OutputSize)
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	signals := make(chan os.Signal)
	r, w := io.Pipe()
	f := &fakeBridge{}
	done := make(chan int, 1)
	go func() {
		done <- Run(t.Context(), Options{Args: childArgs("signals"), Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: w, Signals: signals})
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("output ended: %v", lines.Err())
		}
		return lines.Text()
	}
	if got := next(); got != "listening" {
		t.Fatalf("child says %q", got)
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		signals <- s
		if got := next(); got != s.String() {
			t.Errorf("child got %q, want %q", got, s)
		}
	}
	if code := <-done; code != 42 || f.only(t).ExitCode != 42 {
		t.Errorf("exit %d, outcome %+v", code, f.reported)
	}
}

func TestNoBridge(t *testing.T) {
	broken := errors.New("hash mismatch")
	for name, tt := range map[string]struct {
		ready   func(ctx context.Context) error
		timeout time.Duration
		want    string
	}{
		"fails": {func(context.Context) error { return broken }, time.Hour, "hash mismatch"},
		"is late": {func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, time.Millisecond, "not ready within 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeBridge{ready: tt.ready}
			code := Run(t.Context(), Options{Args: childArgs("exit", "0"), Bridge: f, WaitTimeout: tt.timeout, Stdout: io.Discard})
			o := f.only(t)
			if code != ExitNoBridge || o.Started || o.ExitCode != ExitNoBridge || !strings.Contains(o.Message, tt.want) {
				t.Errorf("exit %d, outcome %+v", code, o)
			}
		})
	}
}

func TestASignalEndsTheWait(t *testing.T) {
	signals := make(chan os.Signal)
	f := &fakeBridge{ready: func(ctx context.Context) error {
		signals <- syscall.SIGWINCH // ends no process
		signals <- syscall.SIGTERM
		<-ctx.Done()
		return ctx.Err()
	}}
	code := Run(t.Context(), Options{Args: childArgs("exit", "0"), Bridge: f, Stdout: io.Discard, Signals: signals})
	if o := f.only(t); code != 128+15 || o.Started || o.ExitCode != code {
		t.Errorf("exit %d, outcome %+v", code, o)
	}
}

func TestAReportThatFailsKeepsTheExitCode(t *testing.T) {
	f := &fakeBridge{refuse: errors.New("no kernel")}
	if code := Run(t.Context(), Options{Args: childArgs("exit", "5"), Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: io.Discard}); code != 5 {
		t.Errorf("exit %d, want 5", code)
	}
}

func TestAProcessLeftBehindHoldsNothingUp(t *testing.T) {
	f := &fakeBridge{}
	code := Run(t.Context(), Options{Args: childArgs("leave"), Bridge: f, Stdin: os.Stdin, Stderr: os.Stderr, Stdout: io.Discard})
	o := f.only(t)
	if pid, err := strconv.Atoi(string(o.Output)); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("the process left behind is not there: %q, %v", o.Output, err)
	}
	if code != 7 || o.ExitCode != 7 {
		t.Errorf("exit %d, outcome %+v, want 7", code, o)
	}
}
