package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// ErrNotReady is the error of a handshake before the certificates are there.
var ErrNotReady = errors.New("certificates are not there yet")

// Certificates hold the server's TLS configuration and follow its files.
type Certificates struct {
	opts    *Options
	log     *slog.Logger
	current atomic.Pointer[tls.Config]

	// Only Load touches these; it is called by one goroutine at a time.
	seen [3][]byte
	last string
}

// NewCertificates returns certificates that are not loaded yet.
func NewCertificates(opts *Options, log *slog.Logger) *Certificates {
	return &Certificates{opts: opts, log: log}
}

// Ready reports whether handshakes can succeed.
func (c *Certificates) Ready() bool { return c.current.Load() != nil }

// ServerConfig is a configuration that always uses the latest files.
func (c *Certificates) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if config := c.current.Load(); config != nil {
				return config, nil
			}
			return nil, ErrNotReady
		},
	}
}

// Watch loads the files now and again at every tick, until ctx ends.
func (c *Certificates) Watch(ctx context.Context, ticks <-chan time.Time) {
	for {
		c.report(c.Load())
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// report logs an outcome when it differs from the last one.
func (c *Certificates) report(changed bool, err error) {
	switch {
	case err == nil && changed:
		c.log.Info("Certificates loaded")
	case err == nil:
	case err.Error() == c.last:
		return
	case c.Ready():
		c.log.Error("Certificates cannot be reloaded, the last ones stay in use", "error", err)
	default:
		c.log.Info("Waiting for certificates", "reason", err.Error())
	}
	c.last = ""
	if err != nil {
		c.last = err.Error()
	}
}

// Load reads the files and, when they changed and fit together, uses them for the
// handshakes from now on.
func (c *Certificates) Load() (changed bool, err error) {
	var read [3][]byte
	for i, name := range []string{c.opts.TLSCert, c.opts.TLSKey, c.opts.ClientCA} {
		if read[i], err = os.ReadFile(name); err != nil {
			return false, fmt.Errorf("read certificates: %w", err)
		}
		if len(bytes.TrimSpace(read[i])) == 0 {
			return false, fmt.Errorf("read certificates: %s is empty", name)
		}
	}
	if c.Ready() && bytes.Equal(read[0], c.seen[0]) && bytes.Equal(read[1], c.seen[1]) && bytes.Equal(read[2], c.seen[2]) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return false, fmt.Errorf("read certificates: certificate and key: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(read[2]) {
		return false, fmt.Errorf("read certificates: %s holds no certificate", c.opts.ClientCA)
	}
	c.seen = read
	c.current.Store(&tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2", "http/1.1"},
		// A resumed session would outlive a change of the CA.
		SessionTicketsDisabled: true,
	})
	return true, nil
}
