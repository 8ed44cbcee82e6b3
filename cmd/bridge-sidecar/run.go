package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/control"
	"github.com/sharedos-dev/operator/sidecar/wrapper"
)

func run(args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	socket := set.String("socket", bridge.ControlSocket, "the sidecar's control socket")
	wait := set.Duration("wait-timeout", 5*time.Minute, "how long to wait for the bridge")
	report := set.Duration("report-timeout", 90*time.Second, "how long to try to report the outcome")
	if code, done := parse(set, args, stderr); done {
		return code
	}
	if set.NArg() == 0 {
		fmt.Fprintln(stderr, "bridge-sidecar run: a command is required after --")
		return exitUsage
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, wrapper.Forwarded()...)
	defer signal.Stop(signals)
	defer survivePipes()()
	return wrapper.Run(context.Background(), wrapper.Options{
		Args:          set.Args(),
		Bridge:        &control.Client{Path: *socket},
		WaitTimeout:   *wait,
		ReportTimeout: *report,
		Stdin:         os.Stdin,
		Stdout:        stdout,
		Stderr:        os.Stderr,
		Signals:       signals,
		Orphans:       os.Getpid() == 1,
		Log:           newLogger(stderr),
	})
}
