package mcp

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// maxHeaderBytes bounds the head of a request.
const maxHeaderBytes = 64 << 10

// HTTPServer is the Streamable HTTP transport with a listener of its own, open for
// the life of one bridge.
type HTTPServer struct {
	handler  *HTTPHandler
	server   *http.Server
	listener net.Listener
	served   chan struct{}
}

// NewHTTPServer listens and serves until it is closed.
func NewHTTPServer(ctx context.Context, opts HTTPOptions) (*HTTPServer, error) {
	handler, err := NewHTTPHandler(opts)
	if err != nil {
		return nil, err
	}
	opts = handler.opts
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port)))
	if err != nil {
		return nil, fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	s := &HTTPServer{
		handler: handler, listener: listener, served: make(chan struct{}),
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: opts.ReadHeaderTimeout, IdleTimeout: opts.IdleTimeout,
			MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
			ErrorLog: log.New(errorWriter{opts.Server}, "", 0),
		},
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			opts.Server.opts.OnError(context.WithoutCancel(ctx), fmt.Errorf("serve MCP over HTTP: %w", err))
		}
	}()
	return s, nil
}

// URL is what a harness connects to.
func (s *HTTPServer) URL() string {
	u := url.URL{Scheme: "http", Host: s.listener.Addr().String(), Path: s.handler.opts.Path}
	return u.String()
}

// Port is the port it listens on.
func (s *HTTPServer) Port() int {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return addr.Port
}

// SessionID is the value of mcp-session-id.
func (s *HTTPServer) SessionID() string { return s.handler.SessionID() }

// Handler is the transport without its listener.
func (s *HTTPServer) Handler() http.Handler { return s.handler }

// Close shuts the door at once: running calls are cancelled and their connections
// closed without an answer. It returns once nothing is served any more.
func (s *HTTPServer) Close() error {
	s.handler.Close()
	err := s.server.Close()
	<-s.served
	if err != nil {
		return fmt.Errorf("close MCP listener: %w", err)
	}
	return nil
}

// Shutdown takes no new request and lets the running ones be answered until ctx
// ends; then it closes. Its error is the context's, when calls were cut off.
func (s *HTTPServer) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	return errors.Join(err, s.Close())
}

// errorWriter passes what net/http would log to the server's hook.
type errorWriter struct{ server *Server }

func (w errorWriter) Write(line []byte) (int, error) {
	w.server.opts.OnError(context.Background(), fmt.Errorf("serve MCP over HTTP: %s", line))
	return len(line), nil
}
