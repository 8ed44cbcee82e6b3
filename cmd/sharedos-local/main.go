// Command sharedos-local runs agents and tests manifests without a cluster. It is the
// part of the kubectl plugin that needs none, and is built in a fraction of its time.
package main

import (
	"os"

	"github.com/sharedos-dev/operator/plugin/offline"
)

func main() {
	ctx, stop := offline.Context()
	code := offline.Main(ctx, os.Args[1:], offline.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
