package plugin

import (
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/internal/plain"
)

// Exit codes.
const (
	ExitYes       = 0
	ExitNo        = 1
	ExitError     = 2
	ExitEscalated = 3
)

// exit ends the program with a code when everything has been said already.
type exit struct{ code int }

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// no is the answer no, already given.
func no() error { return exit{ExitNo} }

// usageError is a fault of the call.
type usageError struct{ err error }

// Error implements error.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap returns the fault.
func (e usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// report prints what is left to say of an error and returns the exit code.
func (e *env) report(err error, path string) int {
	if err == nil {
		return ExitYes
	}
	if done, ok := errors.AsType[exit](err); ok {
		return done.code
	}
	fmt.Fprintln(e.streams.ErrOut, "error:", plain.Lines(err.Error()))
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(e.streams.ErrOut, "See '%s --help'.\n", path)
	}
	return ExitError
}
