// Command kubectl-sharedos is the kubectl plugin of SharedOS: `kubectl sharedos`.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/sharedos-dev/operator/plugin"
	"github.com/sharedos-dev/operator/plugin/offline"
)

func main() {
	ctx, stop := offline.Context()
	code := plugin.Main(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
