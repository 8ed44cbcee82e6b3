package wrapper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// Exit codes of [Run] that are not the command's. They follow what shells and
// container engines do.
const (
	// ExitNoBridge: the bridge was not ready, so the command was not started.
	ExitNoBridge = 125
	// ExitCannotRun: the command is there and cannot be executed.
	ExitCannotRun = 126
	// ExitNotFound: there is no such command.
	ExitNotFound = 127
)

// Bridge is the sidecar; a control client is one.
type Bridge interface {
	// WaitReady returns once the bridge is ready.
	WaitReady(ctx context.Context) error
	// Report returns once the outcome has arrived.
	Report(ctx context.Context, outcome bridge.Outcome) error
}

// Options configure [Run]. Args and Bridge are required.
type Options struct {
	// Args are the command and its arguments.
	Args   []string
	Bridge Bridge
	// WaitTimeout bounds the wait for the bridge; 5 minutes when zero.
	WaitTimeout time.Duration
	// ReportTimeout bounds the report; 90 seconds when zero, which covers a manager's
	// fail-over.
	ReportTimeout time.Duration
	// Stdin and Stderr are the command's own; Stdout gets a copy of its output.
	Stdin, Stderr *os.File
	Stdout        io.Writer
	// Signals are forwarded to the command. One that comes before it is started, and
	// would end a process, ends the wait.
	Signals <-chan os.Signal
	// Orphans says that this is its container's first process.
	Orphans bool
	// Log receives what went wrong; nothing when nil.
	Log *slog.Logger

	cgroup string // a test's instead of [cgroupRoot]
}

const (
	defaultWaitTimeout   = 5 * time.Minute
	defaultReportTimeout = 90 * time.Second
	// drainPatience is how long output may follow the command's end.
	drainPatience = 2 * time.Second
	// maxReason is how much of an error an outcome repeats, bytes.
	maxReason = 1024
)

// Forwarded lists the signals to deliver to [Options].Signals: all that are sent on
// purpose. SIGCHLD and SIGURG are this process's own, and SIGPIPE shows as a failed
// write.
func Forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH,
	}
}

// Run does it all and returns the exit code to end with. A report that fails does
// not change it: the container's own exit code says the same.
func Run(ctx context.Context, o Options) int {
	o.complete()
	outcome := o.run(ctx)
	report, cancel := context.WithTimeout(ctx, o.ReportTimeout)
	defer cancel()
	if err := o.Bridge.Report(report, outcome); err != nil {
		o.Log.ErrorContext(ctx, "Outcome was not reported", "exitCode", outcome.ExitCode, "error", err)
	}
	return outcome.ExitCode
}

func (o *Options) complete() {
	if o.WaitTimeout <= 0 {
		o.WaitTimeout = defaultWaitTimeout
	}
	if o.ReportTimeout <= 0 {
		o.ReportTimeout = defaultReportTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.cgroup == "" {
		o.cgroup = cgroupRoot
	}
}

func (o *Options) run(ctx context.Context) bridge.Outcome {
	if code, err := o.waitForBridge(ctx); err != nil {
		return o.notStarted(ctx, code, err)
	}
	out := newCapture(o.Stdout)
	killed := memoryKills(o.cgroup)
	c, err := start(o.Args, o.Stdin, o.Stderr, out)
	if err != nil {
		code := ExitCannotRun
		if failed, ok := errors.AsType[*startError](err); ok {
			code = failed.code
		}
		return o.notStarted(ctx, code, err)
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		forward(o.Signals, c.process, ended)
	}()
	code, err := c.wait(o.Orphans)
	close(ended)
	<-forwarded
	c.drain(drainPatience)
	if err != nil {
		o.Log.ErrorContext(ctx, "The command's end was not seen", "error", err)
		code = ExitNoBridge
	}
	if out.lost != nil {
		o.Log.WarnContext(ctx, "Standard output could not be passed on", "error", out.lost)
	}
	outcome := bridge.Outcome{Started: true, ExitCode: code, OOMKilled: code != 0 && memoryKills(o.cgroup) > killed}
	out.describe(&outcome)
	return outcome
}

// notStarted is the outcome of a command that never ran.
func (o *Options) notStarted(ctx context.Context, code int, err error) bridge.Outcome {
	o.Log.ErrorContext(ctx, "The command was not started", "exitCode", code, "error", err)
	message := err.Error()
	return bridge.Outcome{ExitCode: code, Message: message[:min(len(message), maxReason)]}
}

// waitForBridge returns nil once the bridge is ready, else the exit code to end with.
func (o *Options) waitForBridge(ctx context.Context) (int, error) {
	limit := fmt.Errorf("not ready within %s", o.WaitTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, o.WaitTimeout, limit)
	defer cancel()
	waited := make(chan struct{})
	var notReady error // until waited is closed
	go func() {
		defer close(waited)
		notReady = o.Bridge.WaitReady(ctx)
	}()
	for {
		select {
		case <-waited:
			if notReady != nil {
				return ExitNoBridge, fmt.Errorf("no bridge: %w", notReady)
			}
			return 0, nil
		case s := <-o.Signals:
			if code, ends := endsProcess(s); ends {
				cancel()
				<-waited
				return code, fmt.Errorf("ended by signal %q before the bridge was ready", s)
			}
		}
	}
}

// endsProcess says whether a signal ends a process that does not handle it.
func endsProcess(s os.Signal) (code int, ends bool) {
	n, ok := s.(syscall.Signal)
	if !ok || n == syscall.SIGCONT || n == syscall.SIGWINCH {
		return 0, false
	}
	return signalExit(n), true
}

// forward passes signals on until the command has ended.
func forward(signals <-chan os.Signal, process *os.Process, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			_ = process.Signal(s) // it has just ended
		case <-ended:
			return
		}
	}
}
