package wrapper

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// startError says that a command did not become a process.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return e.err.Error() }

func (e *startError) Unwrap() error { return e.err }

// command is a started process whose standard output is captured.
type command struct {
	process *os.Process
	output  *os.File // our end of its standard output
	copied  chan struct{}
}

// start runs args with this process's environment and working directory. Its
// error is a [*startError].
func start(args []string, stdin, stderr *os.File, out io.Writer) (*command, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, notStarted(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, notStarted(fmt.Errorf("make pipe: %w", err))
	}
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{stdin, theirs, stderr}})
	_ = theirs.Close() // the child has its own
	if err != nil {
		_ = ours.Close() // nothing was read
		return nil, notStarted(err)
	}
	c := &command{process: process, output: ours, copied: make(chan struct{})}
	go func() {
		defer close(c.copied)
		_, _ = io.Copy(out, ours) // what was read counts
	}()
	return c, nil
}

// notStarted maps an error to the exit code that shells give it.
func notStarted(err error) *startError {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &startError{ExitNotFound, err}
	}
	return &startError{ExitCannotRun, err}
}

// wait returns the command's exit code, 128+n if signal n ended it. As a
// container's first process we are also the parent of every orphan in it: with
// orphans set their ends are collected too, so that none stays as a zombie.
func (c *command) wait(orphans bool) (int, error) {
	target := c.process.Pid
	if orphans {
		target = -1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(target, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid != c.process.Pid:
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return signalExit(status.Signal()), nil
		}
	}
}

// drain returns once the output was read to its end, or patience is over: a process
// left behind may hold it open for ever.
func (c *command) drain(patience time.Duration) {
	timer := time.AfterFunc(patience, func() { _ = c.output.Close() })
	defer timer.Stop()
	<-c.copied
	_ = c.output.Close()    // it was read
	_ = c.process.Release() // it was waited for
}

// signalExit is the exit code of a process that a signal ended.
func signalExit(s syscall.Signal) int { return 128 + int(s) }
