package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/serve"
)

// Run serves the root until ctx ends.
func Run(ctx context.Context, opts *Options, log *slog.Logger) (err error) {
	if opts.Seed != "" {
		copied, err := files.Seed(ctx, opts.Seed, opts.Root)
		if err != nil {
			return fmt.Errorf("seed files: %w", err)
		}
		log.Info("Seeded", "files", copied)
	}
	provider, err := files.Open(files.Options{
		Root: opts.Root, World: opts.World, ReadOnly: opts.ReadOnly, MaxRead: opts.MaxRead, MaxFile: opts.MaxFile, Log: log,
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
