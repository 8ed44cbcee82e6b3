package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	set := flag.NewFlagSet("repo-provider", flag.ContinueOnError)
	var opts Options
	opts.AddFlags(set)
	show := set.Bool("version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return 2
	}
	if *show || set.Arg(0) == "version" {
		fmt.Println(version)
		return 0
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := opts.Validate(); err != nil {
		log.Error("Wrong flags", "error", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, &opts, log); err != nil {
		log.Error("Repo provider ended", "error", err)
		return 1
	}
	return 0
}
