package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/certificates"
)

// managerSecret is a Secret as the rotation leaves it.
func managerSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(4e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey: cert, certificates.KeyCA: cert,
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
	}}
}

// TestReady: everything that the installation has is waited for, in either order.
func TestReady(t *testing.T) {
	is := func(ready <-chan struct{}) bool {
		select {
		case <-ready:
			return true
		default:
			return false
		}
	}
	manager := func(t *testing.T, s *certificates.Store) error { t.Helper(); return s.SetManager(managerSecret(t)) }
	provider := func(_ *testing.T, s *certificates.Store) error {
		return s.SetProvider(&corev1.Secret{Data: map[string][]byte{certificates.KeyCA: []byte("ca")}})
	}
	type step = func(*testing.T, *certificates.Store) error
	for name, c := range map[string]struct {
		providers bool
		steps     []step
	}{
		"alone":          {false, []step{manager}},
		"manager first":  {true, []step{manager, provider}},
		"provider first": {true, []step{provider, manager}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &certificates.Store{Providers: c.providers}
			early := store.Ready()
			for _, set := range c.steps {
				if is(early) || is(store.Ready()) {
					t.Fatal("ready although a certificate is missing")
				}
				if err := set(t, store); err != nil {
					t.Fatal(err)
				}
			}
			if !is(early) || !is(store.Ready()) {
				t.Error("not ready although all are there")
			}
			if err := manager(t, store); err != nil || !is(early) { // renewed
				t.Errorf("after a renewal: %v", err)
			}
			late := &certificates.Store{Providers: c.providers}
			for _, set := range c.steps {
				if err := set(t, late); err != nil {
					t.Fatal(err)
				}
			}
			if !is(late.Ready()) {
				t.Error("not ready when asked late")
			}
		})
	}
}

// TestClientWithoutProviders: providers that bring their own CA are reached although the
// installation has none of its own.
func TestClientWithoutProviders(t *testing.T) {
	store := &certificates.Store{}
	if _, _, err := store.Client(); !errors.Is(err, certificates.ErrNotReady) {
		t.Errorf("before there is a certificate: %v, want ErrNotReady", err)
	}
	if err := store.SetManager(managerSecret(t)); err != nil {
		t.Fatal(err)
	}
	certificate, ca, err := store.Client()
	if err != nil || len(certificate.Certificate) != 1 || len(ca) != 0 {
		t.Errorf("without providers of its own: %d certificates, CA %q, %v; want one, none and no error", len(certificate.Certificate), ca, err)
	}
	if err := store.SetProvider(&corev1.Secret{Data: map[string][]byte{certificates.KeyCA: []byte("ca")}}); err != nil {
		t.Fatal(err)
	}
	if _, ca, err = store.Client(); err != nil || string(ca) != "ca" {
		t.Errorf("with providers of its own: CA %q, %v", ca, err)
	}
}
