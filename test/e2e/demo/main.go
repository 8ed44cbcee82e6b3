// Command demo shows the main job: from nothing to a finished Turn.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}
