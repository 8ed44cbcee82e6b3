package toolsource

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/objects"
	"github.com/sharedos-dev/operator/providers/wire"
)

// probeTimeout bounds a probe.
const probeTimeout = 3 * time.Second

// Errors of what an endpoint names.
var (
	// ErrCredentials means that a Secret or ConfigMap, or a key in it, does not exist.
	ErrCredentials = errors.New("credentials cannot be used")
	// ErrMaterial means that it exists and does not hold what it should.
	ErrMaterial = errors.New("certificate or header value cannot be used")
	// ErrClearText means that headersFrom stands beside an address without TLS.
	ErrClearText = errors.New("headersFrom needs https: credentials are not sent in clear text")
)

// Material is what the installation itself identifies with.
type Material struct {
	// Certificate is the manager's client certificate.
	Certificate tls.Certificate
	// ProviderCA is the PEM bundle of the installation's own providers.
	ProviderCA []byte
}

// Connections are the connections to provider and mcp sources. A connection is kept as
// long as nothing about it changes. It is safe for concurrent use.
type Connections struct {
	// Reader reads the Secrets and ConfigMaps that endpoints name.
	Reader objects.Reader
	// Material returns the installation's own certificates.
	Material func() (Material, error)
	// Egress says which addresses may be dialled; nil is the built-in rule.
	Egress *egress.Guard
	// Changed, when set, is called when the tools of an mcp source may have changed. It
	// must not block.
	Changed func(types.NamespacedName)
	// Around, when set, goes around the transport of every provider source.
	Around func(http.RoundTripper) http.RoundTripper
	// Watch, when set, is told when a call of an mcp source's server begins and, by
	// calling end, how it ended.
	Watch func(ctx context.Context, server string) (_ context.Context, end func(error))
	// Version of this program, which upstream servers are told.
	Version string

	mu      sync.Mutex
	known   map[types.NamespacedName]connection
	brokers map[types.NamespacedName]*brokered
}

type connection struct {
	uid         types.UID
	fingerprint [sha256.Size]byte
	client      *wire.Client
}

var _ Connector = (*Connections)(nil)

// Connect implements [Connector]. Nothing is dialled before the first operation.
func (c *Connections) Connect(ctx context.Context, n *v1alpha1.ToolNamespace) (kernel.ResourceProvider, error) {
	source := n.Spec.Source.Provider
	if source == nil {
		return nil, errors.New("spec.source.provider is not set")
	}
	base, err := BaseURL(&source.Endpoint, n.Namespace)
	if err != nil {
		return nil, err
	}
	config, fingerprint, err := c.tls(ctx, n, &source.Endpoint, base)
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.known[name]; ok {
		if old.fingerprint == fingerprint && old.uid == n.UID {
			return old.client, nil
		}
		old.client.Close()
	}
	fresh, err := wire.NewClient(wire.Options{
		BaseURL: base, TLS: config, Timeout: timeout(&source.Endpoint), Headers: c.headers(n.Namespace, source.HeadersFrom),
		DialContext: c.guard().DialContext, Around: c.Around,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", base, err)
	}
	if c.known == nil {
		c.known = map[types.NamespacedName]connection{}
	}
	c.known[name] = connection{uid: n.UID, fingerprint: fingerprint, client: fresh}
	return fresh, nil
}

// guard is the rule about addresses.
func (c *Connections) guard() *egress.Guard {
	if c.Egress == nil {
		return &egress.Guard{}
	}
	return c.Egress
}

// Probe connects to the endpoint of a provider source and ends the connection: that
// it listens, and that both sides' certificates are accepted.
func (c *Connections) Probe(ctx context.Context, n *v1alpha1.ToolNamespace) error {
	source := n.Spec.Source.Provider
	if source == nil {
		return nil
	}
	base, err := BaseURL(&source.Endpoint, n.Namespace)
	if err != nil {
		return err
	}
	config, _, err := c.tls(ctx, n, &source.Endpoint, base)
	if err != nil {
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("parse the address: %w", err)
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	raw, err := c.guard().DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", u.Host, err)
	}
	config.ServerName = u.Hostname()
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return fmt.Errorf("connect to %s: %w", u.Host, err)
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("connect to %s: %w", u.Host, err)
	}
	return nil
}

// BaseURL is the address of an endpoint. One that credentials would be sent to in clear
// text is refused with [ErrClearText]; the definition of the object refuses it as well.
func BaseURL(e *v1alpha1.Endpoint, namespace string) (string, error) {
	base := e.URL
	if base == "" {
		if e.Service == nil {
			return "", errors.New("neither url nor service is set")
		}
		base = serviceURL(e.Service, namespace)
	}
	if len(e.HeadersFrom) > 0 && !strings.HasPrefix(base, "https://") {
		return "", ErrClearText
	}
	return base, nil
}

func serviceURL(s *v1alpha1.ServiceReference, namespace string) string {
	in, scheme := string(s.Namespace), string(s.Scheme)
	if in == "" {
		in = namespace
	}
	if scheme == "" {
		scheme = string(v1alpha1.SchemeHTTPS)
	}
	u := url.URL{Scheme: scheme, Host: fmt.Sprintf("%s.%s.svc:%d", s.Name, in, s.Port), Path: s.Path}
	return u.String()
}

func timeout(e *v1alpha1.Endpoint) time.Duration {
	if e.TimeoutSeconds != nil {
		return time.Duration(*e.TimeoutSeconds) * time.Second
	}
	return 30 * time.Second
}

// tls is how the endpoint is verified and what the kernel identifies with, and a
// fingerprint that changes with any of it.
func (c *Connections) tls(ctx context.Context, n *v1alpha1.ToolNamespace, e *v1alpha1.Endpoint, base string) (*tls.Config, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	material, err := c.Material()
	if err != nil {
		return nil, none, fmt.Errorf("the installation's certificates: %w", err)
	}
	ca, certificate := material.ProviderCA, material.Certificate
	if e.TLS != nil && e.TLS.CAFrom != nil {
		if ca, err = c.bundle(ctx, n.Namespace, e.TLS.CAFrom); err != nil {
			return nil, none, err
		}
	}
	if e.TLS != nil && e.TLS.ClientCertificateFrom != nil {
		if certificate, err = c.keyPair(ctx, n.Namespace, string(e.TLS.ClientCertificateFrom.Name)); err != nil {
			return nil, none, err
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, none, fmt.Errorf("%w: the CA bundle holds no certificate", ErrMaterial)
	}
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(base), []byte(strconv.FormatInt(n.Generation, 10)), ca} {
		sum.Write(part)
		sum.Write([]byte{0})
	}
	for _, der := range certificate.Certificate {
		sum.Write(der)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{certificate},
	}, [sha256.Size]byte(sum.Sum(nil)), nil
}

func (c *Connections) bundle(ctx context.Context, namespace string, from *v1alpha1.CASource) ([]byte, error) {
	if ref := from.ConfigMapKeyRef; ref != nil {
		object := &corev1.ConfigMap{}
		if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}, object); err != nil {
			return nil, fmt.Errorf("%w: configmap %q: %w", ErrCredentials, ref.Name, err)
		}
		return []byte(object.Data[ref.Key]), nil
	}
	if from.SecretKeyRef == nil {
		return nil, fmt.Errorf("%w: caFrom names neither a Secret nor a ConfigMap", ErrCredentials)
	}
	return c.secretKey(ctx, namespace, *from.SecretKeyRef)
}

func (c *Connections) secretKey(ctx context.Context, namespace string, ref v1alpha1.KeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}, secret); err != nil {
		return nil, fmt.Errorf("%w: secret %q: %w", ErrCredentials, ref.Name, err)
	}
	value, ok := secret.Data[ref.Key]
	if !ok || len(value) == 0 {
		return nil, fmt.Errorf("%w: secret %q has no key %q", ErrCredentials, ref.Name, ref.Key)
	}
	return value, nil
}

func (c *Connections) keyPair(ctx context.Context, namespace, name string) (tls.Certificate, error) {
	secret := &corev1.Secret{}
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret); err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: secret %q: %w", ErrCredentials, name, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: secret %q holds no certificate with its key", ErrMaterial, name)
	}
	return pair, nil
}
