package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar"
)

// terminationLog is what Kubernetes shows as the reason of a container's end.
const terminationLog = "/dev/termination-log"

func serve(args []string, stderr io.Writer) int {
	set := flag.NewFlagSet("serve", flag.ContinueOnError)
	sharedDir := set.String("shared-dir", bridge.SharedDir, "the volume that the other containers read")
	tokenFile := set.String("token-file", bridge.TokenFile, "the pod-bound ServiceAccount token")
	if code, done := parse(set, args, stderr); done {
		return code
	}
	if set.NArg() > 0 {
		fmt.Fprintln(stderr, "bridge-sidecar serve: takes no arguments")
		return exitUsage
	}
	log := newLogger(stderr)
	o, err := sidecar.OptionsFromEnv(os.Getenv)
	if err != nil {
		fmt.Fprintf(stderr, "bridge-sidecar serve: %v\n", err)
		return exitUsage
	}
	o.SharedDir, o.TokenFile = *sharedDir, *tokenFile
	if o.Binary, err = os.Executable(); err != nil {
		log.Error("Own binary is unknown", "error", err)
		return exitFailed
	}
	o.Version, o.Log = version, log
	limitMemory()
	o.OnReady = debug.FreeOSMemory // what starting took is not needed again

	defer survivePipes()()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := sidecar.Run(ctx, o); err != nil {
		log.Error("Bridge failed", "error", err)
		explain(err)
		return exitFailed
	}
	return exitOK
}

// explain leaves the reason where kubectl describe shows it. Outside Kubernetes the
// file does not exist, and none is made.
func explain(err error) {
	f, openErr := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if openErr != nil {
		return
	}
	defer f.Close() //nolint:errcheck // best effort
	fmt.Fprintln(f, err)
}
