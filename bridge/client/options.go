package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/bridge"
)

// Options configure a [Client]. The first three are required.
type Options struct {
	// BaseURL is the kernel service's address, https with a host and no path.
	BaseURL string
	// RootCAs are the PEM certificates that may have signed the kernel's
	// certificate. The system's own are not consulted.
	RootCAs []byte
	// TokenFile holds the pod-bound ServiceAccount token. Every request looks
	// whether it is another file by now.
	TokenFile string
	// ServerName is the name in the kernel's certificate; by default the host
	// of BaseURL.
	ServerName string
	// AttemptTimeout bounds one attempt of everything but Invoke and Session;
	// 10 seconds when zero.
	AttemptTimeout time.Duration
	// FailoverWindow is how long Invoke keeps trying a call that may be sent
	// again; 90 seconds when zero, which covers a manager's fail-over of 60.
	FailoverWindow time.Duration
	// Clock is the machine's when nil.
	Clock Clock
	// Log receives state changes of the connection; nothing when nil. No token
	// is ever written to it.
	Log *slog.Logger
}

const (
	defaultAttemptTimeout = 10 * time.Second
	defaultFailoverWindow = 90 * time.Second
)

// Client is one pod's connection to the kernel service. It is safe for
// concurrent use.
type Client struct {
	baseURL string
	token   *tokenSource
	attemptMax,
	failover time.Duration
	clock   Clock
	log     *slog.Logger
	link    *link
	backoff backoff

	// calls is how many were begun.
	calls atomic.Int64

	mu        sync.Mutex
	execution string // the execution token; empty before Attach
}

// New checks the options and makes a client. Nothing is dialled before the
// first request.
func New(o Options) (*Client, error) {
	base, err := parseBaseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.TokenFile == "" {
		return nil, errors.New("token file is required")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(o.RootCAs) {
		return nil, errors.New("root CAs hold no PEM certificate")
	}
	c := &Client{
		baseURL:    base,
		token:      &tokenSource{path: o.TokenFile},
		attemptMax: orDefault(o.AttemptTimeout, defaultAttemptTimeout),
		failover:   orDefault(o.FailoverWindow, defaultFailoverWindow),
		clock:      o.Clock,
		log:        o.Log,
		backoff:    backoff{defaultFirstWait, defaultLongest},
		link: newLink(&tls.Config{
			RootCAs:    roots,
			ServerName: o.ServerName,
			MinVersion: tls.VersionTLS12,
		}),
	}
	if c.clock == nil {
		c.clock = SystemClock{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Close drops the connection once nothing uses it any more.
func (c *Client) Close() { c.link.close() }

func orDefault(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// parseBaseURL returns scheme and host alone. An address with anything else in
// it is refused rather than trimmed: it was meant for something else.
func parseBaseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("kernel address is not a URL")
	}
	if u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.TrimSuffix(u.Path, "/") != "" {
		return "", errors.New("kernel address must be https://host[:port] and nothing else")
	}
	return "https://" + u.Host, nil
}

func (c *Client) executionToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.execution
}

func (c *Client) setExecutionToken(token string) error {
	if !headerSafe(token) {
		return fmt.Errorf("answer to %s: execution token cannot be a header", bridge.PathAttach)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.execution = token
	return nil
}
