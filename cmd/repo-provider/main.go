package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/sharedos-dev/operator/providers/serve"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	var opts Options
	return serve.Program{
		Name: "repo-provider", Version: version, Options: &opts,
		Run: func(ctx context.Context, log *slog.Logger) error { return Run(ctx, &opts, log) },
	}.Main(args)
}
