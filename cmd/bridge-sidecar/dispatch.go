package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of every subcommand but run's command itself.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `bridge-sidecar connects a harness pod to the SharedOS kernel.

Usage:
  bridge-sidecar serve                     attach to the turn and serve MCP on 127.0.0.1
  bridge-sidecar run [flags] -- COMMAND…   wait for the bridge, run the command, report its outcome
  bridge-sidecar probe [flags]             exit 0 once the bridge is ready
  bridge-sidecar version                   print the version

"bridge-sidecar SUBCOMMAND --help" lists flags.

Environment of serve:
  SHAREDOS_KERNEL_URL   https address of the kernel service
  SHAREDOS_KERNEL_CA    PEM certificates that sign the kernel service's certificate
  SHAREDOS_TURN         name of the Turn
  SHAREDOS_BRIDGE_PORT  port on 127.0.0.1 (default 7411)

Exit codes:
  serve    0 after SIGTERM or SIGINT; 1 when the bridge cannot be made ready or kept so
  run      the command's own; 128+n when signal n ended it; 125 when the bridge was not
           ready, 126 when the command cannot be executed, 127 when it does not exist
  probe    0 when the bridge is ready, else 1
  every    2 for a wrong command line
`

// dispatch runs a subcommand and returns the exit code.
func dispatch(args []string, stdout, stderr io.Writer) int {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "serve":
		return serve(args, stderr)
	case "run":
		return run(args, stdout, stderr)
	case "probe":
		return probe(args, stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, version)
		return exitOK
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return exitOK
	case "":
		fmt.Fprint(stderr, usage)
	default:
		fmt.Fprintf(stderr, "bridge-sidecar: unknown subcommand %q\n\n%s", name, usage)
	}
	return exitUsage
}

// parse reads a subcommand's flags. done says that there is nothing more to do.
func parse(set *flag.FlagSet, args []string, stderr io.Writer) (code int, done bool) {
	set.SetOutput(stderr)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, true
	case err != nil:
		return exitUsage, true
	}
	return exitOK, false
}

// survivePipes turns the loss of standard output or error into a failed write, for
// this process and none that it starts.
func survivePipes() (restore func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, nil))
}
