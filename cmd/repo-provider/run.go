package main

import (
	"context"
	"log/slog"

	"github.com/sharedos-dev/operator/providers/repo"
	"github.com/sharedos-dev/operator/providers/serve"
)

// Run serves the repositories until ctx ends.
func Run(ctx context.Context, opts *Options, log *slog.Logger) (err error) {
	provider, err := repo.Open(repo.Options{
		Root: opts.Root, World: opts.World, ReadOnly: opts.ReadOnly, MaxFile: opts.MaxFile, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		if closing := provider.Close(); err == nil {
			err = closing
		}
	}()
	return serve.Run(ctx, &opts.Serve, provider, log)
}
