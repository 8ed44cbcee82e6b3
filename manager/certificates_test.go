package manager

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// TestACertificateOfAnOlderInstallationIsRenewed: the rotation takes one that lacks a
// name of today's for invalid, and one that has all of them for valid.
func TestACertificateOfAnOlderInstallationIsRenewed(t *testing.T) {
	t.Parallel()
	p := &process{opts: Options{Namespace: "sharedos-system"}}
	rotation := func(services ...string) *rotator.CertRotator {
		r := p.rotatorFor("provider-tls", t.TempDir(), services...)
		r.ExtKeyUsages = &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		return r
	}
	now := time.Now()
	older, today := rotation("files-provider"), rotation("files-provider", "repo-provider")
	ca, err := older.CreateCACert(now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	made := func(by *rotator.CertRotator) (cert, key []byte) {
		t.Helper()
		if cert, key, err = by.CreateCertPEM(ca, now.Add(-time.Hour), now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	for name, c := range map[string]struct {
		by, at *rotator.CertRotator
		valid  bool
	}{
		"of then, then": {older, older, true}, "of then, today": {older, today, false}, "of today, today": {today, today, true}, "of today, then": {today, older, false},
	} {
		cert, key := made(c.by)
		if valid, _ := rotator.ValidCert(ca.CertPEM, cert, key, c.at.DNSName, c.at.ExtKeyUsages, now); valid != c.valid {
			t.Errorf("%s: valid %v", name, valid)
		}
	}
	cert, _ := made(today)
	block, _ := pem.Decode(cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"files-provider.sharedos-system.svc", "repo-provider.sharedos-system.svc", "repo-provider.sharedos-system.svc.cluster.local"} {
		if err := parsed.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}
