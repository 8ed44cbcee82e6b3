package serve_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/providers/serve"
	"github.com/sharedos-dev/operator/providers/wire"
)

// pair is a self-signed certificate that is its own CA, for both ends.
type pair struct {
	cert, key []byte
	tls       tls.Certificate
}

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey}),
	}
	if p.tls, err = tls.X509KeyPair(p.cert, p.key); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pair) client(t *testing.T, url string) *wire.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.cert)
	c, err := wire.NewClient(wire.Options{BaseURL: url, TLS: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{p.tls}, ServerName: "localhost", MinVersion: tls.VersionTLS13,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func options(dir string) *serve.Options {
	return &serve.Options{
		Listen: "127.0.0.1:0", TLSCert: filepath.Join(dir, "tls.crt"), TLSKey: filepath.Join(dir, "tls.key"),
		ClientCA: filepath.Join(dir, "ca.crt"), MaxInFlight: 4, MaxBody: 1 << 20, Timeout: time.Minute, Reload: time.Hour,
	}
}

func write(t *testing.T, dir string, p pair) {
	t.Helper()
	for name, data := range map[string][]byte{"tls.crt": p.cert, "tls.key": p.key, "ca.crt": p.cert} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificatesWaitAndFollowTheirFiles(t *testing.T) {
	dir := t.TempDir()
	c := serve.NewCertificates(options(dir), slog.New(slog.DiscardHandler))
	config := func() (*tls.Config, error) { return c.ServerConfig().GetConfigForClient(nil) }

	if changed, err := c.Load(); changed || err == nil || c.Ready() {
		t.Errorf("without files: changed %v, error %v", changed, err)
	}
	if _, err := config(); !errors.Is(err, serve.ErrNotReady) {
		t.Errorf("handshake without files: %v, want ErrNotReady", err)
	}
	first := newPair(t)
	write(t, dir, first)
	if changed, err := c.Load(); !changed || err != nil {
		t.Errorf("with files: changed %v, error %v", changed, err)
	}
	if changed, err := c.Load(); changed || err != nil {
		t.Errorf("again: changed %v, error %v", changed, err)
	}
	got, err := config()
	if err != nil || got.ClientAuth != tls.RequireAndVerifyClientCert || !bytes.Equal(got.Certificates[0].Certificate[0], first.tls.Certificate[0]) {
		t.Errorf("configuration is not the first pair with a required client certificate: %v", err)
	}
	for name, damage := range map[string]string{"tls.crt": "", "tls.key": "no key", "ca.crt": "no certificate"} {
		write(t, dir, first)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed, err := c.Load(); changed || err == nil || !c.Ready() {
			t.Errorf("damaged %s: changed %v, error %v, ready %v", name, changed, err, c.Ready())
		}
	}
	second := newPair(t)
	write(t, dir, second)
	if changed, err := c.Load(); !changed || err != nil {
		t.Errorf("renewed: changed %v, error %v", changed, err)
	}
	if got, err := config(); err != nil || !bytes.Equal(got.Certificates[0].Certificate[0], second.tls.Certificate[0]) {
		t.Errorf("configuration is not the second pair: %v", err)
	}
}

func TestServeUntilTheEnd(t *testing.T) {
	dir, p := t.TempDir(), newPair(t)
	write(t, dir, p)
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	main, health := listen(), listen()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	loaded := &notice{seen: make(chan struct{})}
	go func() {
		done <- serve.Serve(ctx, options(dir), &kerneltest.Plane{}, main, health, slog.New(slog.NewTextHandler(loaded, nil)))
	}()
	<-loaded.seen
	ac := kerneltest.New().Context()
	op := contract.ResourceOperation{OperationID: "op-1", Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{}}, Action: "list", Context: &ac}
	url := "https://" + main.Addr().String()
	if result, err := p.client(t, url).Invoke(t.Context(), op); err != nil || result.Status != contract.StatusSucceeded {
		t.Errorf("invoke: %+v, %v", result, err)
	}
	if _, err := newPair(t).client(t, url).Invoke(t.Context(), op); err == nil {
		t.Error("a client of another CA was served")
	}
	for _, probe := range []string{"/healthz", "/readyz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+health.Addr().String()+probe, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", probe, response, err)
		}
		_ = response.Body.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// notice is a log that tells when the certificates were loaded.
type notice struct{ seen chan struct{} }

func (n *notice) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "Certificates loaded") {
		close(n.seen)
	}
	return len(line), nil
}
