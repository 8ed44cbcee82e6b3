package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	plane "github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

// Defaults of [Options].
const (
	DefaultMaxFile  = 32 << 20
	DefaultMaxPatch = 1 << 20
	DefaultMaxFiles = 1000
)

// Options configure a [Provider]. Root is required.
type Options struct {
	// Root is the directory the repositories lie in. It must exist.
	Root string
	// World, when set, makes Root the tree of that one world and refuses others.
	// When empty each world has its folder below Root.
	World string
	// ReadOnly refuses repo.stage and repo.commit.
	ReadOnly bool
	// MaxFile bounds a file that is staged, bytes; 0 is DefaultMaxFile.
	MaxFile int64
	// MaxPatch bounds the patch of repo.diff, bytes; 0 is DefaultMaxPatch.
	MaxPatch int
	// MaxFiles bounds the files that one answer lists or one call stages; 0 is
	// DefaultMaxFiles.
	MaxFiles int
	// Clock returns the present instant; nil is time.Now.
	Clock func() time.Time
	// Log receives what a caller is not told; nil discards it.
	Log *slog.Logger
}

// Provider is a [kernel.ResourceProvider] of the repo plane. It is safe for
// concurrent use; operations on one repository take turns.
type Provider struct {
	opts    Options
	base    *os.Root
	actions map[string]action

	mu    sync.Mutex
	locks map[string]*turn // by world and path
}

// turn is one repository's lock while somebody waits for it or holds it.
type turn struct {
	held    chan struct{}
	waiting int
}

type action struct {
	run    func(ctx context.Context, o *opened) (any, error)
	writes bool
}

// Open opens the root directory. Close the provider when it is no longer used.
func Open(opts Options) (*Provider, error) {
	if opts.MaxFile <= 0 {
		opts.MaxFile = DefaultMaxFile
	}
	if opts.MaxPatch <= 0 {
		opts.MaxPatch = DefaultMaxPatch
	}
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = DefaultMaxFiles
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	base, err := os.OpenRoot(opts.Root)
	if err != nil {
		return nil, fmt.Errorf("open repositories: %w", err)
	}
	p := &Provider{opts: opts, base: base, locks: make(map[string]*turn)}
	p.actions = map[string]action{
		plane.ActionStatus: {run: p.status},
		plane.ActionDiff:   {run: p.diff},
		plane.ActionLog:    {run: p.log},
		plane.ActionStage:  {run: p.stage, writes: true},
		plane.ActionCommit: {run: p.commit, writes: true},
	}
	return p, nil
}

// Close releases the root directory.
func (p *Provider) Close() error { return p.base.Close() }

// Invoke implements [kernel.ResourceProvider]. Of the operation's context it uses
// the world, and the actor as the author of a commit.
func (p *Provider) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	out, err := p.run(ctx, op)
	if err != nil {
		return contract.ResourceResult{}, p.coded(ctx, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return contract.ResourceResult{}, fmt.Errorf("encode output: %w", err)
	}
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded,
		Output: bytes.TrimSpace(b.Bytes()), CompletedAt: contract.At(p.opts.Clock()),
	}, nil
}

func (p *Provider) run(ctx context.Context, op contract.ResourceOperation) (out any, err error) {
	act, ok := p.actions[op.Action]
	switch {
	case op.Context == nil || op.Resource.Namespace != plane.Namespace:
		return nil, fail(plane.CodeBadAction, "This provider serves repositories of a world.")
	case !ok:
		return nil, fail(plane.CodeBadAction, "This provider does not support the action.")
	case act.writes && p.opts.ReadOnly:
		return nil, fail(plane.CodeReadOnly, "The repositories are read-only.")
	case op.Resource.Path.Validate() != nil || hasReserved(op.Resource.Path):
		return nil, fail(plane.CodeInvalidPath, "The path is not valid.")
	}
	release, err := p.turn(ctx, op.Context.NamespaceID+"\x00"+strings.Join(op.Resource.Path, "/"))
	if err != nil {
		return nil, err
	}
	defer release()
	// The library meets bytes that others chose; a panic in it is their fault.
	defer func() {
		if r := recover(); r != nil {
			p.opts.Log.Error("Git library panicked", "operationId", op.OperationID, "panic", r)
			err = fail(plane.CodeDamaged, "The repository is damaged.")
		}
	}()
	o, err := p.open(ctx, op, act.writes)
	if err != nil {
		return nil, err
	}
	defer o.close()
	return act.run(ctx, o)
}

// turn waits until the repository is free.
func (p *Provider) turn(ctx context.Context, key string) (release func(), err error) {
	p.mu.Lock()
	t := p.locks[key]
	if t == nil {
		t = &turn{held: make(chan struct{}, 1)}
		p.locks[key] = t
	}
	t.waiting++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(p.locks, key)
		}
	}
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// hasReserved reports names that are Git's or a files provider's own: a
// repository's inside is not a repository.
func hasReserved(path contract.Path) bool {
	for _, segment := range path {
		if strings.EqualFold(segment, ".git") || strings.HasPrefix(strings.ToLower(segment), ".sharedos") {
			return true
		}
	}
	return false
}

func fail(code, format string, args ...any) error {
	return &kernel.Failure{
		Status: contract.StatusFailed,
		Err:    contract.ProtocolError{Code: code, Message: fmt.Sprintf(format, args...)},
	}
}

// coded gives an error the code a caller may see. What the library complains of is
// the repository's state; its text may hold anything and goes to the log only.
func (p *Provider) coded(ctx context.Context, err error) error {
	var failure *kernel.Failure
	switch {
	case errors.As(err, &failure):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTooLarge):
		return fail(plane.CodeTooLarge, "Something in the repository is too large.")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, nofollow.ErrNotDirectory):
		return fail(plane.CodeNotFound, "There is nothing at this path.")
	default:
		p.opts.Log.Warn("Repository cannot be used", "error", err)
		return fail(plane.CodeDamaged, "The repository is damaged, or the library cannot read it.")
	}
}

// decode reads an operation's input strictly.
func decode(raw contract.Value, v any) error {
	if len(raw) == 0 {
		raw = contract.Value(`{}`)
	}
	if err := strictjson.Unmarshal(raw, v, strictjson.Options{}); err != nil {
		return fail(plane.CodeInvalidInput, "The input is not valid: %v", err)
	}
	return nil
}
