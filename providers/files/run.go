package files

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Between two scans of the trees lies at least scanPause, and so much that scanning
// takes a hundredth of the time.
const scanPause = 30 * time.Second

// abandoned is the age at which a temporary file belongs to nobody any more.
const abandoned = time.Hour

// Run keeps the search indexes current until ctx ends: it scans the trees for
// changes that were made behind the provider's back. At first it also removes what
// a crash left behind. Without it files.search does not answer. It is called once.
func (p *Provider) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.opened:
		}
		start := p.opts.Clock()
		all := !start.Before(due)
		if all {
			p.discover()
		}
		for _, t := range p.known() {
			if err := p.scan(ctx, t, all); err != nil && ctx.Err() == nil {
				p.opts.Log.Error("World cannot be scanned", "world", t.world, "error", err)
			}
		}
		now := p.opts.Clock()
		if all {
			due = now.Add(max(scanPause, 100*now.Sub(start)))
		}
		timer.Reset(max(0, due.Sub(now)))
	}
}

// discover opens the worlds whose folders exist.
func (p *Provider) discover() {
	worlds := []string{p.opts.World}
	if p.opts.World == "" {
		names, err := readNames(context.Background(), p.base)
		if err != nil {
			p.opts.Log.Error("Worlds cannot be listed", "error", err)
		}
		worlds = names
	}
	for _, world := range worlds {
		if info, err := p.base.Lstat(world); p.opts.World != "" || (err == nil && info.IsDir() && validWorld(world)) {
			if _, err := p.tree(world); err != nil {
				p.opts.Log.Error("World cannot be opened", "world", world, "error", err)
			}
		}
	}
}

func (p *Provider) known() []*tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*tree, 0, len(p.trees))
	for _, t := range p.trees {
		out = append(out, t)
	}
	return out
}

// scan brings one world's index up to date; when not all are due, only if that
// never happened.
func (p *Provider) scan(ctx context.Context, t *tree, all bool) error {
	first := !t.scanned
	if !all && !first {
		return nil
	}
	if first {
		p.sweep(ctx, t)
		if t.indexer != nil {
			if err := t.indexer.load(ctx); err != nil {
				return fmt.Errorf("load index: %w", err)
			}
		}
		t.scanned = true
	}
	if t.indexer == nil {
		return nil
	}
	return t.indexer.scan(ctx)
}

// sweep removes what a crash left under a temporary name.
func (p *Provider) sweep(ctx context.Context, t *tree) {
	if p.opts.ReadOnly {
		return
	}
	before := p.opts.Clock().Add(-abandoned)
	err := sweepFolder(ctx, t.root, before, 0)
	if err == nil {
		err = sweepFolder(ctx, t.state, before, 0)
	}
	if err != nil {
		p.opts.Log.Error("Temporary files cannot be swept", "world", t.world, "error", err)
	}
}

func isTemporary(name string) bool { return strings.HasPrefix(name, temporary) }
