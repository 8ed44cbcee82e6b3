package main

import (
	"errors"
	"flag"

	"github.com/sharedos-dev/operator/providers/repo"
	"github.com/sharedos-dev/operator/providers/serve"
)

// Options are the flags of the repo provider.
type Options struct {
	Serve    serve.Options
	Root     string
	World    string
	PerWorld bool
	ReadOnly bool
	MaxFile  int64
}

// AddFlags declares the flags with their defaults.
func (o *Options) AddFlags(set *flag.FlagSet) {
	o.Serve.AddFlags(set)
	set.StringVar(&o.Root, "root", "", "directory that holds the repositories")
	set.StringVar(&o.World, "world", "", "the one world that the root is the tree of")
	set.BoolVar(&o.PerWorld, "per-world", false, "each world has its folder below the root (the default without --world)")
	set.BoolVar(&o.ReadOnly, "read-only", false, "refuse every change")
	set.Int64Var(&o.MaxFile, "max-file", repo.DefaultMaxFile, "largest file that is staged, bytes")
}

// Validate checks the flags without touching the file system.
func (o *Options) Validate() error {
	switch {
	case o.Root == "":
		return errors.New("--root is required")
	case o.World != "" && o.PerWorld:
		return errors.New("--world and --per-world exclude each other")
	case o.MaxFile < 1:
		return errors.New("--max-file must be positive")
	}
	return o.Serve.Validate()
}
