package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nearExpiry is when a certificate that was not renewed is worth a warning.
const nearExpiry = 7 * 24 * time.Hour

// keyCA is the key of the authority's certificate in the Secrets.
const keyCA = "ca.crt"

// certificates looks at the installation's own certificates, and keeps their Secrets for
// the webhooks.
func (p *patient) certificates(ctx context.Context) {
	const check = "certificates"
	var list corev1.SecretList
	if err := p.client.List(ctx, &list, client.InNamespace(p.system), client.MatchingLabels{labelComponent: "manager"}); err != nil {
		p.failed(check, err, "")
		return
	}
	p.secrets = map[string]*corev1.Secret{}
	for i := range list.Items {
		if strings.HasSuffix(list.Items[i].Name, "-tls") {
			p.secrets[list.Items[i].Name] = &list.Items[i]
		}
	}
	for _, needed := range []string{p.managerSecret(), p.flag("provider-tls-secret", "")} {
		if needed != "" && p.secrets[needed] == nil {
			p.say(check, stateFault, "there is no Secret "+needed+" with the label of the manager",
				"upgrade the chart: it makes the Secret, and the manager fills it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
		p.certificate(check, p.secrets[name])
	}
}

// managerSecret is the Secret of the certificate that webhooks and kernel are served with.
func (p *patient) managerSecret() string { return p.flag("tls-secret", p.base+"-manager-tls") }

func (p *patient) certificate(check string, secret *corev1.Secret) {
	fix := "the leader makes it anew when it is empty: kubectl -n " + p.system + " patch secret " + secret.Name +
		` --type=json -p '[{"op":"remove","path":"/data"}]'`
	leaf, err := leafOf(secret)
	if errors.Is(err, errNoCertificate) {
		p.say(check, stateFault, secret.Name+" holds no certificate", "the leader makes it; see its log: "+p.managerLog())
		return
	}
	if err != nil {
		p.say(check, stateFault, secret.Name+": "+err.Error(), fix)
		return
	}
	left := leaf.NotAfter.Sub(p.now())
	fault := p.signs(secret.Data[keyCA], leaf, "")
	switch {
	case left <= 0:
		p.say(check, stateFault, secret.Name+" expired at "+leaf.NotAfter.UTC().Format(time.RFC3339), fix)
	case fault != "":
		p.say(check, stateFault, secret.Name+": its "+keyCA+" "+fault, fix)
	case left < nearExpiry:
		p.say(check, stateWarning, secret.Name+" expires at "+leaf.NotAfter.UTC().Format(time.RFC3339), fix)
	default:
		p.ok(check, "%s is valid until %s", secret.Name, leaf.NotAfter.UTC().Format(time.DateOnly))
	}
}

// errNoCertificate means that a Secret was not filled.
var errNoCertificate = errors.New("there is no certificate")

// leafOf is the certificate of the Secret, whose key must be there too.
func leafOf(secret *corev1.Secret) (*x509.Certificate, error) {
	data := secret.Data[corev1.TLSCertKey]
	if len(data) == 0 {
		return nil, errNoCertificate
	}
	pair, err := tls.X509KeyPair(data, secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("certificate and key: %w", err)
	}
	return x509.ParseCertificate(pair.Certificate[0])
}

// signs says why a client that trusts the PEM certificates would refuse the other
// certificate, of a server of that name if it is not empty; or nothing. That the other one
// expired has its own line.
func (p *patient) signs(bundle []byte, leaf *x509.Certificate, name string) string {
	if fault := p.bundle(bundle); fault != "" {
		return fault
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool, CurrentTime: leaf.NotBefore, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	var hostname x509.HostnameError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &hostname):
		return "signed a certificate that is not for " + name
	default:
		return "did not sign the certificate"
	}
}

// bundle says what is wrong with PEM certificates, or nothing.
func (p *patient) bundle(data []byte) string {
	count := 0
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "cannot be read: " + err.Error()
		}
		if !p.now().Before(certificate.NotAfter) {
			return "expired at " + certificate.NotAfter.UTC().Format(time.RFC3339)
		}
		count++
	}
	if count == 0 {
		return "is empty"
	}
	return ""
}
