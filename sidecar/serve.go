package sidecar

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/sidecar/control"
	"github.com/sharedos-dev/operator/sidecar/harnessfiles"
)

// errEnded says that the turn is over.
var errEnded = errors.New("the turn has ended")

// serveTurn serves the turn until it ends ([errEnded]), ctx does, or something fails.
func (s *Sidecar) serveTurn(ctx context.Context) error {
	attached, catalogue, err := s.attach(ctx)
	if err != nil {
		return err
	}
	turn, over := context.WithCancelCause(ctx)
	defer over(nil)
	server, err := s.newServer(attached, newInvoker(s, catalogue, func() { over(errEnded) }))
	if err != nil {
		return fmt.Errorf("make MCP server: %w", err)
	}
	listener, err := mcp.NewHTTPServer(ctx, mcp.HTTPOptions{
		Server: server, Port: s.opts.Port, Authorize: sameBearer(attached.ExecutionToken)})
	if err != nil {
		return fmt.Errorf("open bridge: %w", err)
	}
	defer s.closeListener(ctx, listener)
	if err := harnessfiles.Write(s.opts.SharedDir, attached, listener.URL()); err != nil {
		return err
	}
	s.opts.Log.InfoContext(ctx, "Bridge is listening", "executionId", attached.ExecutionID,
		"traceId", attached.TraceID, "catalogHash", attached.CatalogHash, "tools", len(catalogue.Tools), "port", listener.Port())
	err = s.follow(turn)
	if errors.Is(context.Cause(turn), errEnded) {
		return errEnded
	}
	return err
}

// attach returns the turn once the kernel gave it, and its catalogue once it is
// known to be the turn's own.
func (s *Sidecar) attach(ctx context.Context) (*bridge.AttachResponse, *contract.Catalogue, error) {
	attached, err := s.kernel.Attach(ctx, s.opts.Turn)
	if err != nil {
		return nil, nil, endedOr(fmt.Errorf("attach to turn %s: %w", s.opts.Turn, err))
	}
	catalogue, err := s.kernel.Catalog(ctx)
	if err != nil {
		return nil, nil, endedOr(fmt.Errorf("fetch catalogue: %w", err))
	}
	if err := verify(attached, catalogue); err != nil {
		return nil, nil, fmt.Errorf("refuse catalogue: %w", err)
	}
	return attached, catalogue, nil
}

func endedOr(err error) error {
	var refused *bridge.Error
	if errors.As(err, &refused) && refused.Code == bridge.CodeTurnEnded {
		return errEnded
	}
	return err
}

func (s *Sidecar) newServer(attached *bridge.AttachResponse, v *invoker) (*mcp.Server, error) {
	server, err := mcp.NewServer(mcp.ServerOptions{
		Invoker:      v,
		ServerInfo:   mcp.ServerInfo{Version: s.opts.Version},
		Instructions: attached.Instructions,
		OnError: func(ctx context.Context, err error) {
			s.opts.Log.WarnContext(ctx, "MCP request failed", "error", err)
		},
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.connected = server.Initialized
	s.mu.Unlock()
	return server, nil
}

// follow reads the session stream. The bridge is ready from its first line on.
func (s *Sidecar) follow(ctx context.Context) error {
	for event, err := range s.kernel.Session(ctx) {
		if err != nil {
			return err
		}
		switch event.Type {
		case bridge.SessionAttached:
			if s.state.set(control.StateReady, "") {
				s.opts.Log.InfoContext(ctx, "Bridge is ready")
			}
			s.opts.OnReady()
		case bridge.SessionEnded:
			s.opts.Log.InfoContext(ctx, "Turn has ended", "status", event.Status)
			return errEnded
		case bridge.SessionHeartbeat:
		}
	}
	return context.Cause(ctx)
}

// closeListener lets running calls finish when the pod is going, and cuts them off
// in every other case: a bridge whose turn is over answers nothing.
func (s *Sidecar) closeListener(ctx context.Context, listener *mcp.HTTPServer) {
	if ctx.Err() == nil {
		_ = listener.Close() // it is closed either way
		return
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.ShutdownGrace)
	defer cancel()
	_ = listener.Shutdown(grace) // it is closed either way
}

// sameBearer compares in a time that says nothing about the token.
func sameBearer(token string) func(string, bool) bool {
	want := sha256.Sum256([]byte(token))
	return func(bearer string, present bool) bool {
		got := sha256.Sum256([]byte(bearer))
		return present && subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
}
