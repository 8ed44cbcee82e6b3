package toolsource

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/upstream"
)

// Broker serves mcp sources. A [Connector] that is one too serves both kinds.
type Broker interface {
	// Broker returns the binding of an mcp source: a recent one, or one that is found
	// now.
	Broker(ctx context.Context, n *v1alpha1.ToolNamespace) (*Binding, error)
}

// brokered is the connection to one upstream server.
type brokered struct {
	uid    types.UID
	source [sha256.Size]byte
	client *upstream.Client
	// caller is the client, watched.
	caller Caller
	header *headerCache

	mu         sync.Mutex
	trust      [sha256.Size]byte
	generation int64
	found      *upstream.Snapshot
	binding    *Binding
}

var _ Broker = (*Connections)(nil)

// Broker implements [Broker].
func (c *Connections) Broker(ctx context.Context, n *v1alpha1.ToolNamespace) (*Binding, error) {
	b, err := c.brokered(ctx, n)
	if err != nil {
		return nil, err
	}
	b.want(n)
	found, err := b.client.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return b.bind(n, found), nil
}

// Examination is what was found out about an mcp source.
type Examination struct {
	Binding *Binding
	// At is when the server was asked.
	At time.Time
	// Retry is how long to wait before it is asked again; 0 when it answered.
	Retry time.Duration
}

// Examine reads the credentials and certificates of an mcp source anew, and asks its
// server for its tools.
func (c *Connections) Examine(ctx context.Context, n *v1alpha1.ToolNamespace) (Examination, error) {
	b, err := c.brokered(ctx, n)
	if err != nil {
		return Examination{}, err
	}
	if err := c.renew(ctx, n, b); err != nil {
		return Examination{}, err
	}
	b.want(n)
	found, err := b.client.Discover(ctx)
	if err != nil {
		return Examination{Retry: b.client.RetryAfter()}, err
	}
	return Examination{Binding: b.bind(n, found), At: found.At}, nil
}

// Forget ends the connections of a ToolNamespace that is gone.
func (c *Connections) Forget(name types.NamespacedName) {
	c.mu.Lock()
	old, connected := c.known[name]
	b := c.brokers[name]
	delete(c.known, name)
	delete(c.brokers, name)
	c.mu.Unlock()
	if connected {
		old.client.Close()
	}
	if b != nil {
		b.client.Close()
	}
}

// Close ends all connections.
func (c *Connections) Close() {
	c.mu.Lock()
	names := make([]types.NamespacedName, 0, len(c.known)+len(c.brokers))
	for name := range c.known {
		names = append(names, name)
	}
	for name := range c.brokers {
		names = append(names, name)
	}
	c.mu.Unlock()
	for _, name := range names {
		c.Forget(name)
	}
}

// want has the schemas kept of the tools that are declared, and of no others.
func (b *brokered) want(n *v1alpha1.ToolNamespace) {
	for i := range n.Spec.Tools {
		b.client.Want(string(n.Spec.Tools[i].Upstream))
	}
}

// bind joins declarations and tools once for every pair of them.
func (b *brokered) bind(n *v1alpha1.ToolNamespace, found *upstream.Snapshot) *Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.binding == nil || b.generation != n.Generation || b.found != found {
		b.generation, b.found, b.binding = n.Generation, found, Bind(n, found, b.caller)
	}
	return b.binding
}

// brokered returns the connection, and makes it when there is none to this source. The
// one to another source of the same object is ended: a turn that began with it loses
// its tools and gets no others.
func (c *Connections) brokered(ctx context.Context, n *v1alpha1.ToolNamespace) (*brokered, error) {
	source := n.Spec.Source.MCP
	if source == nil {
		return nil, errors.New("spec.source.mcp is not set")
	}
	name := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	raw, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("encode spec.source.mcp: %w", err)
	}
	sum := sha256.Sum256(raw)
	fits := func(b *brokered) bool { return b != nil && b.uid == n.UID && b.source == sum }
	c.mu.Lock()
	old := c.brokers[name]
	c.mu.Unlock()
	if fits(old) {
		return old, nil
	}
	fresh, err := c.newBrokered(ctx, n)
	if err != nil {
		return nil, err
	}
	fresh.uid, fresh.source = n.UID, sum
	c.mu.Lock()
	now := c.brokers[name]
	if fits(now) { // somebody was faster
		c.mu.Unlock()
		fresh.client.Close()
		return now, nil
	}
	if c.brokers == nil {
		c.brokers = map[types.NamespacedName]*brokered{}
	}
	c.brokers[name] = fresh
	c.mu.Unlock()
	if now != nil {
		now.client.Close()
	}
	return fresh, nil
}

func (c *Connections) newBrokered(ctx context.Context, n *v1alpha1.ToolNamespace) (*brokered, error) {
	source := n.Spec.Source.MCP
	base, err := BaseURL(&source.Endpoint, n.Namespace)
	if err != nil {
		return nil, err
	}
	config, trust, err := c.trust(ctx, n.Namespace, &source.Endpoint)
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	b := &brokered{trust: trust, header: &headerCache{read: c.headers(n.Namespace, source.HeadersFrom)}}
	options := upstream.Options{
		URL: base, TLS: config, OnlyWanted: true, Timeout: timeout(&source.Endpoint), DialContext: c.guard().DialContext, Version: c.Version,
		Changed: func() {
			if c.Changed != nil {
				c.Changed(name)
			}
		},
	}
	if b.header.read != nil {
		options.Headers = b.header.get
	}
	if b.client, err = upstream.New(options); err != nil {
		return nil, err
	}
	b.caller = b.client
	if c.Watch != nil {
		b.caller = watched{caller: b.client, server: hostOf(base), watch: c.Watch}
	}
	return b, nil
}

// watched tells how long each call of an upstream server takes.
type watched struct {
	caller Caller
	server string
	watch  func(ctx context.Context, server string) (context.Context, func(error))
}

// Call implements [Caller].
func (w watched) Call(ctx context.Context, r upstream.Request) (kernel.Output, error) {
	ctx, end := w.watch(ctx, w.server)
	out, err := w.caller.Call(ctx, r)
	end(err)
	return out, err
}

// hostOf is the host of a URL that was checked before.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// renew takes up certificates and credentials that were replaced.
func (c *Connections) renew(ctx context.Context, n *v1alpha1.ToolNamespace, b *brokered) error {
	config, trust, err := c.trust(ctx, n.Namespace, &n.Spec.Source.MCP.Endpoint)
	if err != nil {
		return err
	}
	b.mu.Lock()
	changed := b.trust != trust
	b.trust = trust
	b.mu.Unlock()
	if changed {
		b.client.SetTLS(config)
	}
	if b.header.read == nil {
		return nil
	}
	_, err = b.header.get(ctx, true)
	return err
}

// trust is how an upstream server is verified: the system's authorities unless the
// object names its own, and no client certificate unless it names one.
func (c *Connections) trust(ctx context.Context, namespace string, e *v1alpha1.Endpoint) (*tls.Config, [sha256.Size]byte, error) {
	config, sum := &tls.Config{MinVersion: tls.VersionTLS12}, sha256.New()
	if e.TLS != nil && e.TLS.CAFrom != nil {
		ca, err := c.bundle(ctx, namespace, e.TLS.CAFrom)
		if err != nil {
			return nil, [sha256.Size]byte{}, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, [sha256.Size]byte{}, fmt.Errorf("%w: the CA bundle holds no certificate", ErrMaterial)
		}
		sum.Write(ca)
	}
	if e.TLS != nil && e.TLS.ClientCertificateFrom != nil {
		pair, err := c.keyPair(ctx, namespace, string(e.TLS.ClientCertificateFrom.Name))
		if err != nil {
			return nil, [sha256.Size]byte{}, err
		}
		config.Certificates = []tls.Certificate{pair}
		for _, der := range pair.Certificate {
			sum.Write(der)
		}
	}
	return config, [sha256.Size]byte(sum.Sum(nil)), nil
}
