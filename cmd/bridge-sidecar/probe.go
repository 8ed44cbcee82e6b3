package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/control"
)

func probe(args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("probe", flag.ContinueOnError)
	socket := set.String("socket", bridge.ControlSocket, "the sidecar's control socket")
	timeout := set.Duration("timeout", 3*time.Second, "how long to wait for an answer")
	if code, done := parse(set, args, stderr); done {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	status, err := (&control.Client{Path: *socket}).Status(ctx)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	fmt.Fprintln(stdout, status.State)
	if status.State != control.StateReady {
		return exitFailed
	}
	return exitOK
}
