package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	testNow    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	testParams = Params{NodeName: "node-a", NodeIP: "10.1.0.1", ServiceIP: "10.2.0.1"}
)

func readCert(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("%s holds no PEM block", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func verify(cert, ca *x509.Certificate, host string, usage x509.ExtKeyUsage) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: testNow,
	})
	return err
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, testParams, testNow); err != nil {
		t.Fatal(err)
	}
	ca, etcdCA := readCert(t, filepath.Join(dir, "ca.crt")), readCert(t, filepath.Join(dir, "etcd-ca.crt"))
	api := readCert(t, filepath.Join(dir, "apiserver.crt"))
	for _, host := range []string{"10.1.0.1", "10.2.0.1", "127.0.0.1", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		if err := verify(api, ca, host, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("apiserver certificate for %s: %v", host, err)
		}
	}
	if err := verify(api, ca, "example.com", x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("apiserver certificate is good for any host")
	}
	if err := verify(api, ca, "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("apiserver certificate authenticates a client")
	}
	kubelet := readCert(t, filepath.Join(dir, "kubelet.crt"))
	if kubelet.Subject.CommonName != "system:node:node-a" || !slices.Equal(kubelet.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("kubelet is %v, want the node's user and group", kubelet.Subject)
	}
	if err := verify(kubelet, ca, "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("kubelet client certificate: %v", err)
	}
	if err := verify(kubelet, ca, "", x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("kubelet client certificate is good for a server")
	}
	if err := verify(kubelet, etcdCA, "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("a client of the cluster is a client of etcd")
	}
	if err := verify(readCert(t, filepath.Join(dir, "etcd-client.crt")), etcdCA, "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("etcd client certificate: %v", err)
	}
	proxy := readCert(t, filepath.Join(dir, "front-proxy-client.crt"))
	if err := verify(proxy, readCert(t, filepath.Join(dir, "front-proxy-ca.crt")), "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("front proxy certificate: %v", err)
	}
	if err := verify(proxy, ca, "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("the front proxy is a client of the cluster")
	}
	if ca.NotAfter.Sub(testNow) < 300*24*time.Hour || !ca.NotBefore.Before(testNow) {
		t.Errorf("authority is valid from %s to %s", ca.NotBefore, ca.NotAfter)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v, want 0600", filepath.Base(file), info.Mode().Perm(), err)
		}
	}
}

func TestKeysFitTheirCertificates(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, testParams, testNow); err != nil {
		t.Fatal(err)
	}
	certs, err := filepath.Glob(filepath.Join(dir, "*.crt"))
	if err != nil || len(certs) == 0 {
		t.Fatalf("certificates: %v, %v", certs, err)
	}
	for _, cert := range certs {
		if _, err := tls.LoadX509KeyPair(cert, strings.TrimSuffix(cert, ".crt")+".key"); err != nil {
			t.Errorf("%s: %v", filepath.Base(cert), err)
		}
	}
}

func TestIssueRefusesAPurposelessCertificate(t *testing.T) {
	ca, err := NewAuthority("ca", testNow)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue(Request{CommonName: "x"}, testNow); err == nil {
		t.Error("Issue() made a certificate that is good for everything")
	}
}

func TestWriteKubeconfig(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, testParams, testNow); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, bytes.Repeat([]byte("old "), 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteKubeconfig(file, dir, "admin", "https://10.1.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"server: https://10.1.0.1:6443\n", "current-context: localcluster\n", "client-key-data: "} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("kubeconfig lacks %q", want)
		}
	}
	if bytes.Contains(data, []byte("old ")) {
		t.Error("kubeconfig holds the rest of the file before")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600 although the file was there", info.Mode().Perm(), err)
	}
	if err := WriteKubeconfig(file, dir, "nobody", "https://x"); err == nil {
		t.Error("WriteKubeconfig() of an unknown client succeeded")
	}
}
