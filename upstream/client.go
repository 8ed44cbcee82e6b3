package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Defaults and limits of [Options].
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxAnswer = 4 << 20
	// MaxTools and MaxPages bound a list of tools.
	MaxTools = 512
	MaxPages = 64
	// MaxSchema bounds one schema of a tool, and MaxSchemas all that are kept, bytes.
	MaxSchema  = 256 << 10
	MaxSchemas = 8 << 20
	// connectTimeout bounds a handshake, and discovering.
	connectTimeout = 10 * time.Second
)

// Options configure a [Client]. URL is required.
type Options struct {
	// URL of the server's endpoint, http or https.
	URL string
	// TLS verifies the server and identifies the client; nil is the system's roots.
	TLS *tls.Config
	// Headers, when set, yields the headers that carry credentials; fresh is true
	// when the server did not accept those it had. They never appear in errors.
	Headers func(ctx context.Context, fresh bool) (http.Header, error)
	// DialContext, when set, opens the connections; it is where addresses are checked.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds one call; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxAnswer bounds one message of the server's, bytes; 0 is DefaultMaxAnswer.
	MaxAnswer int64
	// OnlyWanted has the schemas kept of those tools only that [Client.Want] names. Of the
	// others name, digest and flaw are known.
	OnlyWanted bool
	// Changed, when set, is called when the server's tools may have changed. It must
	// not block.
	Changed func()
	// Clock is the time; nil is the real one.
	Clock func() time.Time
	// Version of this program, which the server is told.
	Version string
}

// Client is the one client of an MCP server. It connects when it is first needed and
// again when it must. It is safe for concurrent use.
type Client struct {
	opts      Options
	base      *url.URL
	transport atomic.Pointer[http.Transport]
	// gate is held by whoever connects or discovers; waiting for it ends with a context.
	gate chan struct{}

	mu      sync.Mutex
	session *session
	closed  bool
	found   discovery
	wanted  map[string]bool
	calls   map[*exchange]context.CancelFunc
	running sync.WaitGroup
}

// New checks the options and returns a client. It opens no connection.
func New(opts Options) (*Client, error) {
	base, err := url.Parse(opts.URL)
	if err != nil {
		return nil, errors.New("parse the server's URL: not a URL")
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.User != nil || base.Fragment != "" {
		return nil, errors.New("check the server's URL: http or https, a host, and neither user nor fragment")
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.MaxAnswer <= 0 {
		opts.MaxAnswer = DefaultMaxAnswer
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Changed == nil {
		opts.Changed = func() {}
	}
	c := &Client{opts: opts, base: base, gate: make(chan struct{}, 1)}
	c.SetTLS(opts.TLS)
	return c, nil
}

// SetTLS replaces what the server is verified with, for connections that are opened
// from now on.
func (c *Client) SetTLS(config *tls.Config) {
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	dial := c.opts.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	old := c.transport.Swap(&http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small body that becomes a large one
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	})
	if old != nil {
		old.CloseIdleConnections()
	}
}

// Close ends the session; calls that are running fail, and later ones too. It returns
// when nothing of the client runs any more.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	s := c.session
	c.session = nil
	for _, cancel := range c.calls {
		cancel()
	}
	c.mu.Unlock()
	if s != nil {
		s.end(closeGrace)
	}
	c.running.Wait()
	c.transport.Load().CloseIdleConnections()
}

// enter takes the gate.
func (c *Client) enter(ctx context.Context) error {
	select {
	case c.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
}

func (c *Client) leave() { <-c.gate }

// current is the session there is, if any.
func (c *Client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	return c.session, nil
}

// connected returns the session, and makes one if there is none.
func (c *Client) connected(ctx context.Context) (*session, error) {
	if s, err := c.current(); s != nil || err != nil {
		return s, err
	}
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	return c.connectedLocked(ctx)
}

// connectedLocked is connected for who holds the gate.
func (c *Client) connectedLocked(ctx context.Context) (*session, error) {
	if s, err := c.current(); s != nil || err != nil {
		return s, err
	}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		s.end(closeGrace)
		return nil, ErrClosed
	}
	c.session = s
	c.mu.Unlock()
	return s, nil
}

// drop gives up a session that does not work any more.
func (c *Client) drop(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == s {
		c.session = nil
		c.running.Go(func() { s.end(c.opts.Timeout) })
	}
}

// begin makes a call one that Close ends.
func (c *Client) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	key := &exchange{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return nil, nil, ErrClosed
	}
	if c.calls == nil {
		c.calls = map[*exchange]context.CancelFunc{}
	}
	c.calls[key] = cancel
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, key)
	}, nil
}

// implementation is what the server is told about its client.
func (c *Client) implementation() *mcp.Implementation {
	version := c.opts.Version
	if version == "" {
		version = "dev"
	}
	return &mcp.Implementation{Name: "sharedos", Version: version}
}
