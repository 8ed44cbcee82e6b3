package localrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/toolsource"
)

// Run runs one turn to its end. Its error says that there was no turn: the options or
// the manifests are at fault, or a folder cannot be served. A turn that is refused or
// fails is a result. When ctx ends the turn is cancelled and its processes are ended.
func Run(ctx context.Context, o Options) (result contract.ExecutionResult, err error) {
	if err := o.complete(); err != nil {
		return result, err
	}
	s, err := set(&o)
	if err != nil {
		return result, err
	}
	program, err := programOf(&o, s.harness)
	if err != nil {
		return result, err
	}
	o.JSONOutput = o.JSONOutput || s.harness != nil && s.harness.Spec.Output == "json"
	dir, remove, err := scratch()
	if err != nil {
		return result, err
	}
	defer remove()
	if err := o.workIn(dir); err != nil {
		return result, err
	}
	planes, closePlanes, err := o.open(context.WithoutCancel(ctx), dir)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, closePlanes()) }()
	request, err := s.request()
	if err != nil { // before anything is dialled
		return result, err
	}
	connections := &toolsource.Connections{Reader: material{s.read, o.Secrets}, Egress: o.Egress, Version: o.Version}
	defer connections.Close()
	grants := authority.Grants{Reader: s.snapshot}
	progress := &progress{out: o.Progress, began: s.at, clock: o.Clock, next: o.Audit}
	if err := s.examine(ctx, connections, progress); err != nil {
		return result, err
	}
	k, err := kernel.New(kernel.Options{
		Grants: grants, Delegation: grants, Usage: snapshot.NewUses(s.snapshot),
		Audit: progress, Clock: o.Clock, NewID: o.NewID,
		Providers: []kernel.ToolProvider{toolsource.Provider{Reader: s.snapshot, Connector: connector{connections, planes}}},
	})
	if err != nil {
		return result, fmt.Errorf("make the kernel: %w", err)
	}
	runtime := &process{opts: &o, program: program, dir: dir, ended: make(chan struct{})}
	result = envelope.New(k, envelope.Options{OnEvent: progress.event}).Run(ctx, request, runtime)
	if progress.started.Load() || result.Status == contract.StatusCancelled {
		<-runtime.ended // the turn may have ended before its process did
	}
	sayWhyCancelled(ctx, &result, timeoutOf(s.parties.Options))
	return result, nil
}

// sayWhyCancelled says who ended a cancelled turn: somebody, or the clock.
func sayWhyCancelled(ctx context.Context, result *contract.ExecutionResult, timeout time.Duration) {
	switch {
	case result.Status != contract.StatusCancelled || result.Error == nil:
	case ctx.Err() != nil:
		result.Error.Message = "The turn was cancelled."
	default:
		result.Error.Message = fmt.Sprintf("The turn's time was up after %s; a longer one is given with --timeout.", timeout)
	}
}

func timeoutOf(o v1alpha1.ExecutionOptions) time.Duration {
	if o.TimeoutMs == nil {
		return envelope.DefaultTimeout
	}
	return time.Duration(*o.TimeoutMs) * time.Millisecond
}

// workIn makes a working directory, when none was named.
func (o *Options) workIn(dir string) error {
	if o.WorkDir != "" {
		return nil
	}
	o.WorkDir = filepath.Join(dir, "work")
	if err := os.Mkdir(o.WorkDir, 0o700); err != nil {
		return fmt.Errorf("make a working directory: %w", err)
	}
	return nil
}
