package serve

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Program is a provider's binary: its flags, and what it does with them.
type Program struct {
	// Name is the program's, as its usage shows it.
	Name string
	// Version is what --version prints.
	Version string
	// Options are the flags.
	Options interface {
		AddFlags(set *flag.FlagSet)
		Validate() error
	}
	// Run serves until ctx ends.
	Run func(ctx context.Context, log *slog.Logger) error
}

// Main reads the arguments, runs until a signal, and returns the exit code: 2 for wrong
// flags, 1 for a failure. It logs JSON to standard error.
func (p Program) Main(args []string) int {
	set := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	p.Options.AddFlags(set)
	show := set.Bool("version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return 2
	}
	if *show || set.Arg(0) == "version" {
		_, _ = fmt.Fprintln(os.Stdout, p.Version)
		return 0
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := p.Options.Validate(); err != nil {
		log.Error("Wrong flags", "error", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.Run(ctx, log); err != nil {
		log.Error("Provider ended", "program", p.Name, "error", err)
		return 1
	}
	return 0
}
