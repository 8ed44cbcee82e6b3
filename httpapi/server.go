package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"
)

// Defaults of [ServerOptions].
const (
	DefaultAddress           = "127.0.0.1:0"
	DefaultReadHeaderTimeout = 10 * time.Second
	DefaultIdleTimeout       = 2 * time.Minute
	DefaultShutdownTimeout   = 10 * time.Second
)

// maxHeaderBytes bounds the head of a request.
const maxHeaderBytes = 64 << 10

// ServerOptions configure a [Server]. Only Handler is required.
type ServerOptions struct {
	Handler http.Handler
	// Address is the host and port to listen on; the default is a free port on
	// loopback, which anything else deliberately widens.
	Address string
	// TLS, when set, is spoken on the listener, with HTTP/2 for who asks for it. Without
	// it, tokens travel in the clear.
	TLS *tls.Config
	// ReadHeaderTimeout bounds the arrival of a request's head, and IdleTimeout the time
	// between two requests. The times of bodies and answers are the handler's
	// ([Options]), so that a long turn is not taken for a slow client.
	ReadHeaderTimeout time.Duration
	IdleTimeout       time.Duration
	// ShutdownTimeout is how long running requests may take once the server is to end.
	// Then their contexts end.
	ShutdownTimeout time.Duration
	// OnError is told of connections that failed, a client's bad TLS say. It must not
	// block.
	OnError func(err error)
}

// ErrNoHandler says that a server was to be made without a handler.
var ErrNoHandler = errors.New("a server needs a handler")

// Server is a listener for the handler of [NewHandler].
type Server struct {
	server   *http.Server
	listener net.Listener
	shutdown time.Duration
	secure   bool
}

// Listen opens the listener. [Server.Serve] answers.
func Listen(ctx context.Context, opts ServerOptions) (*Server, error) {
	if opts.Handler == nil {
		return nil, ErrNoHandler
	}
	setDefault(&opts.Address, DefaultAddress)
	setDefault(&opts.ReadHeaderTimeout, DefaultReadHeaderTimeout)
	setDefault(&opts.IdleTimeout, DefaultIdleTimeout)
	setDefault(&opts.ShutdownTimeout, DefaultShutdownTimeout)
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	server := NewHTTPServer(opts.Handler)
	server.ReadHeaderTimeout, server.IdleTimeout = opts.ReadHeaderTimeout, opts.IdleTimeout
	server.ErrorLog = log.New(errorWriter(opts.OnError), "", 0)
	if opts.TLS != nil {
		server.TLSConfig = opts.TLS.Clone()
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", opts.Address)
	if err != nil {
		return nil, fmt.Errorf("serve the HTTP API: %w", err)
	}
	return &Server{server: server, listener: listener, shutdown: opts.ShutdownTimeout, secure: opts.TLS != nil}, nil
}

// NewHTTPServer returns a server of the standard library with what the handler needs
// of one: limits of heads and idle connections, none of whole requests, and nothing
// answered in the handler's place. It is for listeners of the caller's own.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: DefaultReadHeaderTimeout, IdleTimeout: DefaultIdleTimeout,
		MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
	}
}

// URL is what a client connects to.
func (s *Server) URL() string {
	if s.secure {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Serve answers until ctx ends, then lets running requests end within the shutdown
// timeout and cuts off the rest. It returns when nothing is served any more; its
// error is not nil if the listener failed or requests were cut off.
func (s *Server) Serve(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() {
		if s.secure {
			ended <- s.server.ServeTLS(s.listener, "", "")
			return
		}
		ended <- s.server.Serve(s.listener)
	}()
	select {
	case err := <-ended:
		_ = s.server.Close()
		return fmt.Errorf("serve the HTTP API: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.shutdown)
	defer cancel()
	err := s.server.Shutdown(grace)
	if err != nil {
		err = fmt.Errorf("serve the HTTP API: requests were cut off: %w", err)
	}
	_ = s.server.Close()
	<-ended //nolint:errcheck // ErrServerClosed, as asked
	return err
}

// errorWriter passes on what net/http would log.
type errorWriter func(error)

// Write implements [io.Writer].
func (w errorWriter) Write(line []byte) (int, error) {
	w(fmt.Errorf("serve the HTTP API: %s", line))
	return len(line), nil
}
