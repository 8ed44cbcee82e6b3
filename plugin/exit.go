package plugin

import "github.com/sharedos-dev/operator/plugin/internal/command"

// Exit codes.
const (
	ExitYes       = command.ExitYes
	ExitNo        = command.ExitNo
	ExitError     = command.ExitError
	ExitEscalated = command.ExitEscalated
)

// no is the answer no, already given.
func no() error { return command.No() }

// usageError is a fault of the call.
type usageError = command.UsageError

func usage(format string, args ...any) error { return command.Usage(format, args...) }

// report prints what is left to say of an error and returns the exit code.
func (e *env) report(err error, path string) int { return command.Report(e.streams.ErrOut, err, path) }
