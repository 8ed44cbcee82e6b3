package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/files/fulltext"
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
	options := files.Options{
		Root: opts.Root, World: opts.World, ReadOnly: opts.ReadOnly, MaxRead: opts.MaxRead, MaxFile: opts.MaxFile,
		IndexDir: opts.IndexDir, Log: log,
	}
	if opts.Search {
		options.OpenIndex = fulltext.Open
	}
	provider, err := files.Open(options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var scanning sync.WaitGroup
	scanning.Go(func() { provider.Run(ctx) })
	defer func() {
		cancel()
		scanning.Wait()
		if closing := provider.Close(); err == nil {
			err = closing
		}
	}()
	return serve.Run(ctx, &opts.Serve, provider, log)
}
