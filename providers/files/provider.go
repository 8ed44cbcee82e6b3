package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// Defaults of [Options].
const (
	DefaultMaxRead    = 8 << 20
	DefaultMaxFile    = 64 << 20
	DefaultMaxEntries = 10_000
	DefaultMaxFiles   = 200_000
	// readBudget bounds the bytes of files that are held at one time.
	readBudget = 64 << 20
)

// Options configure a [Provider]. Root is required.
type Options struct {
	// Root is the directory that is served. It must exist.
	Root string
	// World, when set, makes Root the tree of that one world and refuses others.
	// When empty each world has its folder below Root, made when first needed.
	World string
	// ReadOnly refuses every change and makes nothing in Root.
	ReadOnly bool
	// MaxRead bounds a file that files.read returns, bytes; 0 is DefaultMaxRead.
	MaxRead int64
	// MaxFile bounds a file that is written, bytes; 0 is DefaultMaxFile.
	MaxFile int64
	// MaxEntries bounds the entries of one files.list; 0 is DefaultMaxEntries.
	MaxEntries int
	// MaxFiles bounds the files of one snapshot or recursive delete; 0 is DefaultMaxFiles.
	MaxFiles int
	// NoSync leaves out syncing to stable storage. For tests and throw-away data.
	NoSync bool
	// OpenIndex opens the full-text index of one world in a directory of its own,
	// which may not exist yet. Without it files.search is not supported.
	OpenIndex func(dir string) (Index, error)
	// IndexDir holds the indexes, by world; empty is ".sharedos" in Root.
	IndexDir string
	// Clock returns the present instant; nil is time.Now.
	Clock func() time.Time
	// Log receives what a caller is not told; nil discards it.
	Log *slog.Logger
}

// Provider is a [kernel.ResourceProvider] of the files plane. It is safe for
// concurrent use.
type Provider struct {
	opts     Options
	base     *os.Root
	versions *versions
	budget   *semaphore.Weighted
	actions  map[string]action

	mu     sync.Mutex
	trees  map[string]*tree // by world
	opened chan struct{}    // tells Run of a new tree
	closed bool
}

// action executes one operation. It answers a value to encode, or a contract.Value.
type action struct {
	run    func(ctx context.Context, c *call) (any, error)
	writes bool
	below  bool // the root itself is refused
}

// call is one operation on its way.
type call struct {
	op   contract.ResourceOperation
	path contract.Path
	tree *tree
}

// decode reads the operation's input strictly.
func (c *call) decode(v any) error {
	raw := c.op.Input
	if len(raw) == 0 {
		raw = contract.Value(`{}`)
	}
	return decodeInput(raw, v)
}

// Open opens the root directory. Close the provider when it is no longer used.
func Open(opts Options) (*Provider, error) {
	setDefault(&opts.MaxRead, DefaultMaxRead)
	setDefault(&opts.MaxFile, DefaultMaxFile)
	setDefault(&opts.MaxEntries, DefaultMaxEntries)
	setDefault(&opts.MaxFiles, DefaultMaxFiles)
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.World != "" && !validWorld(opts.World) {
		return nil, fmt.Errorf("open files: world %q cannot be the name of a folder", opts.World)
	}
	base, err := os.OpenRoot(opts.Root)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	p := &Provider{
		opts: opts, base: base, versions: newVersions(opts.Clock),
		budget: semaphore.NewWeighted(max(readBudget, opts.MaxRead)), trees: make(map[string]*tree), opened: make(chan struct{}, 1),
	}
	p.actions = map[string]action{
		plane.ActionList: {run: p.list},
		plane.ActionStat: {run: p.stat},
		plane.ActionRead: {run: p.read},
		plane.ActionGrep: {run: p.grep},

		plane.ActionSearch: {run: p.search},

		plane.ActionCreate:  {run: p.create, writes: true, below: true},
		plane.ActionReplace: {run: p.replace, writes: true, below: true},
		plane.ActionAppend:  {run: p.append, writes: true, below: true},
		plane.ActionDelete:  {run: p.remove, writes: true, below: true},

		plane.ActionSnapshotCreate:  {run: p.snapshot, writes: true},
		plane.ActionSnapshotList:    {run: p.snapshots},
		plane.ActionSnapshotRestore: {run: p.restore, writes: true},
	}
	return p, nil
}

func setDefault[T int | int64](v *T, standard T) {
	if *v <= 0 {
		*v = standard
	}
}

// Close releases the directories. Operations that still run may fail.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	errs := []error{}
	for _, t := range p.trees {
		errs = append(errs, t.close())
	}
	return errors.Join(append(errs, p.base.Close())...)
}

// Invoke implements [kernel.ResourceProvider]. Of the operation's context it uses
// the world only.
func (p *Provider) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	output, err := p.run(ctx, op)
	if err != nil {
		return contract.ResourceResult{}, coded(err)
	}
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded, Output: output,
		CompletedAt: contract.At(p.opts.Clock()),
	}, nil
}

func (p *Provider) run(ctx context.Context, op contract.ResourceOperation) (contract.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	act, ok := p.actions[op.Action]
	switch {
	case op.Context == nil || op.Resource.Namespace != plane.Namespace:
		return nil, fail(plane.CodeUnsupported, "This provider serves files of a world.")
	case !ok:
		return nil, fail(plane.CodeUnsupported, "This provider does not support the action.")
	case act.writes && p.opts.ReadOnly:
		return nil, fail(plane.CodeReadOnly, "The files are read-only.")
	case act.below && len(op.Resource.Path) == 0:
		return nil, fail(plane.CodeInvalidPath, "The root cannot be changed itself.")
	}
	if err := checkPath(op.Resource.Path); err != nil {
		return nil, err
	}
	t, err := p.tree(op.Context.NamespaceID)
	if err != nil {
		return nil, err
	}
	out, err := act.run(ctx, &call{op: op, path: op.Resource.Path, tree: t})
	if err != nil {
		return nil, err
	}
	if encoded, ok := out.(contract.Value); ok {
		return encoded, nil
	}
	return encode(out)
}

func encode(v any) (contract.Value, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
