package manager

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/certificates"
	"github.com/sharedos-dev/operator/controllers"
)

// serveWith makes a listener present the certificate as it is at each handshake.
func (p *process) serveWith(c *tls.Config) {
	c.MinVersion = tls.VersionTLS13
	c.GetCertificate = p.certs.Server
}

// hasTurnLabel selects the pods that claim to run a Turn.
func hasTurnLabel() labels.Selector {
	requirement, err := labels.NewRequirement(v1alpha1.LabelTurn, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*requirement)
}

// addCertificates lets the leader make and renew the certificates, and every
// replica follow them.
func (p *process) addCertificates(dir string) error {
	follower := &certificates.Follower{
		Reader: p.mgr.GetClient(), Store: p.certs, Manager: p.own(p.opts.TLSSecret), Dir: dir,
	}
	if p.opts.ProviderTLSSecret != "" {
		follower.Provider = p.own(p.opts.ProviderTLSSecret)
	}
	if err := follower.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("follow the certificates: %w", err)
	}
	webhooks := []rotator.WebhookInfo{{Name: p.opts.MutatingWebhook, Type: rotator.Mutating}}
	if p.opts.ValidatingWebhook != "" {
		webhooks = append(webhooks, rotator.WebhookInfo{Name: p.opts.ValidatingWebhook, Type: rotator.Validating})
	}
	own := p.rotatorFor(p.opts.TLSSecret, dir, p.opts.WebhookService, p.opts.KernelService)
	own.Webhooks = webhooks
	// It also identifies the manager to providers.
	own.ExtKeyUsages = &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if err := rotator.AddRotator(p.mgr, own); err != nil {
		return fmt.Errorf("rotate the manager's certificate: %w", err)
	}
	if p.opts.ProviderTLSSecret == "" {
		return nil
	}
	if err := rotator.AddRotator(p.mgr, p.rotatorFor(p.opts.ProviderTLSSecret, dir, strings.Split(p.opts.ProviderService, ",")...)); err != nil {
		return fmt.Errorf("rotate the providers' certificate: %w", err)
	}
	return nil
}

func (p *process) rotatorFor(secret, dir string, services ...string) *rotator.CertRotator {
	follower := certificates.Follower{Dir: dir}
	names := make([]string, 0, 2*len(services))
	for _, service := range services {
		host := service + "." + p.opts.Namespace + ".svc"
		names = append(names, host, host+".cluster.local")
	}
	// The rotation looks for DNSName in a certificate and for no other name. One that
	// stands for all of them has a certificate renewed that an older installation made,
	// when services were fewer.
	all := sha256.Sum256([]byte(strings.Join(names, " ")))
	return &rotator.CertRotator{
		SecretKey: p.own(secret), CertDir: follower.DirOf(secret), CAName: secret + "-ca", CAOrganization: "sharedos",
		DNSName: "names-" + hex.EncodeToString(all[:8]) + ".invalid", ExtraDNSNames: names, IsReady: make(chan struct{}), FieldOwner: controllers.FieldOwner,
		ControllerName: "rotate-" + secret, RequireLeaderElection: p.opts.LeaderElect,
	}
}
