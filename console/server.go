package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Off as an address turns the console off.
const Off = "0"

const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	shutdownGrace = time.Second
)

// CheckListen says what is wrong with an address to serve the console at: it must be
// a loopback address with a port, or [Off]. The console asks nobody who they are, so
// it answers nobody but those who may forward a port of its pod.
func CheckListen(address string) error {
	if address == Off {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not ADDRESS:PORT; use 127.0.0.1:8090, or 0 to turn it off", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address; use 127.0.0.1:%s, or 0 to turn it off", address, port)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	return nil
}

// Server serves the console. It runs on every replica, so that a port-forward to any
// of them will do: reading takes no leader.
type Server struct {
	// Listen is the address, which [CheckListen] has accepted.
	Listen  string
	Handler http.Handler
}

// NeedLeaderElection lets a manager run it at once.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	if err := CheckListen(s.Listen); err != nil || s.Listen == Off {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen for the console: %w", err)
	}
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	srv := &http.Server{
		Handler: s.Handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // a page that takes longer is not waited for
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}
