package main

import (
	"errors"
	"flag"

	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/serve"
)

// Options are the flags of the files provider.
type Options struct {
	Serve    serve.Options
	Root     string
	World    string
	PerWorld bool
	Seed     string
	ReadOnly bool
	MaxRead  int64
	MaxFile  int64
	Search   bool
	IndexDir string
}

// AddFlags declares the flags with their defaults.
func (o *Options) AddFlags(set *flag.FlagSet) {
	o.Serve.AddFlags(set)
	set.StringVar(&o.Root, "root", "", "directory to serve")
	set.StringVar(&o.World, "world", "", "the one world that the root is the tree of")
	set.BoolVar(&o.PerWorld, "per-world", false, "each world has its folder below the root (the default without --world)")
	set.StringVar(&o.Seed, "seed", "", "directory whose files are copied into the root at the start, where nothing is yet")
	set.BoolVar(&o.Search, "search", true, "keep a full-text index for files.search")
	set.StringVar(&o.IndexDir, "index-dir", "", "directory of the full-text indexes (default .sharedos in the root)")
	set.BoolVar(&o.ReadOnly, "read-only", false, "refuse every change")
	set.Int64Var(&o.MaxRead, "max-read", files.DefaultMaxRead, "largest file that is read at once, bytes")
	set.Int64Var(&o.MaxFile, "max-file", files.DefaultMaxFile, "largest file that is written, bytes")
}

// Validate checks the flags without touching the file system.
func (o *Options) Validate() error {
	switch {
	case o.Root == "":
		return errors.New("--root is required")
	case o.World != "" && o.PerWorld:
		return errors.New("--world and --per-world exclude each other")
	case o.ReadOnly && o.Seed != "":
		return errors.New("--read-only and --seed exclude each other")
	case o.ReadOnly && o.Search && o.IndexDir == "":
		return errors.New("--read-only needs --index-dir outside of the root, or --search=false")
	case o.MaxRead < 1 || o.MaxFile < 1:
		return errors.New("--max-read and --max-file must be positive")
	}
	return o.Serve.Validate()
}
