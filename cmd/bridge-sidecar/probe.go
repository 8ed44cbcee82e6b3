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
	timeout := set.Duration("timeout", 3*time.Second, "how long to wait for the bridge")
	if code, done := parse(set, args, stderr); done {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	// Waiting here, rather than failing and being asked again a second later, lets
	// the harness start the moment the bridge is ready.
	if err := (&control.Client{Path: *socket}).WaitReady(ctx); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	fmt.Fprintln(stdout, control.StateReady)
	return exitOK
}
