package command

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
)

// Exit codes.
const (
	ExitYes       = 0
	ExitNo        = 1
	ExitError     = 2
	ExitEscalated = 3
)

// ExitCodeError ends the program with a code when everything has been said already.
type ExitCodeError struct{ Code int }

// Error implements error.
func (e ExitCodeError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// No is the answer no, already given.
func No() error { return ExitCodeError{ExitNo} }

// TurnExit is the exit code of a turn's outcome.
func TurnExit(outcome v1alpha1.TurnOutcome) error {
	switch outcome {
	case v1alpha1.TurnSucceeded:
		return nil
	case v1alpha1.TurnEscalated:
		return ExitCodeError{ExitEscalated}
	default:
		return No()
	}
}

// UsageError is a fault of the call.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e UsageError) Unwrap() error { return e.Err }

// Usage makes a fault of the call.
func Usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Report prints what is left to say of the error of the command at path, as in
// "kubectl sharedos test", and returns the exit code.
func Report(w io.Writer, err error, path string) int {
	if err == nil {
		return ExitYes
	}
	if done, ok := errors.AsType[ExitCodeError](err); ok {
		return done.Code
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitError // whoever read the output has stopped
	}
	fmt.Fprintln(w, "error:", plain.Lines(err.Error()))
	if _, ok := errors.AsType[UsageError](err); ok {
		fmt.Fprintf(w, "See '%s --help'.\n", path)
	}
	return ExitError
}
