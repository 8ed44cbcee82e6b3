package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/client"
	"github.com/sharedos-dev/operator/sidecar/control"
)

// Sidecar is the bridge of one pod.
type Sidecar struct {
	opts   Options
	kernel *client.Client
	state  *state

	mu          sync.Mutex
	connected   func() bool // an MCP client has completed initialize
	initialized bool
}

// Run is the sidecar's whole life. It returns nil when ctx ends, also after the turn
// has: Kubernetes starts a sidecar again that goes by itself. An error means that
// the bridge cannot be made ready or kept so; starting again may help.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return fmt.Errorf("configure sidecar: %w", err)
	}
	kernel, err := client.New(client.Options{
		BaseURL: o.KernelURL, RootCAs: o.KernelCA, TokenFile: o.TokenFile, Clock: o.Clock, Log: o.Log})
	if err != nil {
		return fmt.Errorf("configure sidecar: %w", err)
	}
	defer kernel.Close()
	s := &Sidecar{opts: o, kernel: kernel, state: newState(), connected: func() bool { return false }}
	_, err = os.Stat(o.in(initializedFile))
	s.initialized = err == nil

	if err := installBinary(&o); err != nil {
		return err
	}
	listener, err := control.Listen(ctx, o.in(bridge.ControlSocket))
	if err != nil {
		return err
	}
	controlled, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- control.Serve(controlled, listener, s, o.ShutdownGrace) }()

	err = s.serveTurn(ctx)
	switch {
	case errors.Is(err, errEnded):
		s.state.set(control.StateEnded, "")
		<-ctx.Done()
		err = nil
	case ctx.Err() != nil:
		err = nil
	default:
		s.state.set(control.StateFailed, err.Error())
	}
	stop()
	return errors.Join(err, <-served)
}

// Status implements [control.Handler].
func (s *Sidecar) Status() control.Status {
	now, message, _ := s.state.get()
	return control.Status{State: now, Initialized: s.isInitialized(), Message: message}
}

// Wait implements [control.Handler].
func (s *Sidecar) Wait(ctx context.Context) control.Status {
	s.state.wait(ctx)
	return s.Status()
}

// Report implements [control.Handler]. What only the bridge can know is its to say.
// After the turn's end there is nobody left to tell.
func (s *Sidecar) Report(ctx context.Context, o bridge.Outcome) error {
	switch s.state.wait(ctx) {
	case control.StateEnded:
		return nil
	case control.StateReady:
	default:
		return errors.New("the bridge is not attached to the turn")
	}
	o.Initialized = s.isInitialized()
	err := s.kernel.Outcome(ctx, o)
	var refused *bridge.Error
	if errors.As(err, &refused) && refused.Code == bridge.CodeTurnEnded {
		return nil
	}
	if err == nil {
		s.opts.Log.InfoContext(ctx, "Outcome was reported", "started", o.Started, "exitCode", o.ExitCode, "initialized", o.Initialized)
	}
	return err
}

// initializedFile remembers, across restarts of this container, that a client was
// there. It belongs to the pod, hence to one turn.
const initializedFile = bridge.SharedDir + "/run/initialized"

func (s *Sidecar) isInitialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized || s.connected()
}

// markInitialized writes it down once a client has completed initialize.
func (s *Sidecar) markInitialized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialized || !s.connected() {
		return
	}
	s.initialized = true
	if err := os.WriteFile(s.opts.in(initializedFile), nil, modeFile); err != nil {
		s.opts.Log.Warn("Initialize could not be written down", "error", err)
	}
}
