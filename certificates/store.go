package certificates

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// KeyCA is the key of the CA's certificate in a Secret of the rotation library.
const KeyCA = "ca.crt"

// ErrNotReady means that the rotation has not made the certificates yet.
var ErrNotReady = errors.New("certificates are not made yet")

// Store is the present certificates. It is safe for concurrent use.
type Store struct {
	// Providers says that the installation has providers of its own, so that their CA is
	// waited for.
	Providers bool

	mu         sync.RWMutex
	ready      chan struct{} // closed when all are there; made when first asked for
	server     *tls.Certificate
	ca         []byte
	providerCA []byte
}

// SetManager takes the manager's Secret: its certificate, which serves and
// identifies it, and the CA that signed it.
func (s *Store) SetManager(secret *corev1.Secret) error {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil || len(secret.Data[KeyCA]) == 0 {
		return fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, ErrNotReady)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.ca = &pair, secret.Data[KeyCA]
	s.announce()
	return nil
}

// SetProvider takes the CA of the installation's own providers.
func (s *Store) SetProvider(secret *corev1.Secret) error {
	if len(secret.Data[KeyCA]) == 0 {
		return fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, ErrNotReady)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.providerCA = secret.Data[KeyCA]
	s.announce()
	return nil
}

// Ready is closed as soon as all certificates are there.
func (s *Store) Ready() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		s.ready = make(chan struct{})
		s.announce()
	}
	return s.ready
}

// announce closes ready when it is time. The caller holds the lock.
func (s *Store) announce() {
	if s.ready == nil || s.server == nil || s.Providers && len(s.providerCA) == 0 {
		return
	}
	select {
	case <-s.ready: // closed already
	default:
		close(s.ready)
	}
}

// Server is the certificate for [tls.Config.GetCertificate].
func (s *Store) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.server == nil {
		return nil, ErrNotReady
	}
	return s.server, nil
}

// Expiry is until when the server certificate is valid; zero while there is none.
func (s *Store) Expiry() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.server == nil || s.server.Leaf == nil {
		return time.Time{}
	}
	return s.server.Leaf.NotAfter
}

// CA is the PEM of the CA that signed the server certificate.
func (s *Store) CA() ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.server == nil {
		return nil, ErrNotReady
	}
	return s.ca, nil
}

// Client is the manager's client certificate and the CA of its own providers, which is
// empty while, or if, there is none: other providers bring theirs.
func (s *Store) Client() (tls.Certificate, []byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.server == nil {
		return tls.Certificate{}, nil, ErrNotReady
	}
	return *s.server, s.providerCA, nil
}
