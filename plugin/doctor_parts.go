package plugin

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nearExpiry is when a certificate that was not renewed is worth a warning.
const nearExpiry = 7 * 24 * time.Hour

// injection is the name of the webhook that injects the bridge, in every installation.
const injection = "injection.sharedos.dev"

// webhooks looks at the webhook that injects the bridge, and at the one that checks.
func (p *patient) webhooks(ctx context.Context) {
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := p.client.List(ctx, &mutating); err != nil {
		p.failed("injection webhook", err, "")
		return
	}
	found := false
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			if w := &mutating.Items[i].Webhooks[j]; w.Name == injection {
				found = true
				p.webhook(ctx, "injection webhook", w.ClientConfig, w.FailurePolicy, true)
			}
		}
	}
	if !found {
		p.say("injection webhook", stateFault, "there is none, so no harness pod gets a bridge", "install the chart again")
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := p.client.List(ctx, &validating); err != nil {
		p.failed("validation webhook", err, "")
		return
	}
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			if w := &validating.Items[i].Webhooks[j]; strings.HasSuffix(w.Name, ".validation.sharedos.dev") {
				p.webhook(ctx, "validation webhook "+strings.TrimSuffix(w.Name, ".validation.sharedos.dev"), w.ClientConfig, w.FailurePolicy, false)
			}
		}
	}
}

func (p *patient) webhook(ctx context.Context, check string, config admissionv1.WebhookClientConfig, policy *admissionv1.FailurePolicyType, mustFail bool) {
	if mustFail && (policy == nil || *policy != admissionv1.Fail) {
		p.say(check, stateFault, "its failurePolicy is not Fail: a harness pod could start without its bridge", "install the chart again")
		return
	}
	if fault := p.bundle(config.CABundle); fault != "" {
		p.say(check, stateFault, "its CA bundle "+fault, "the manager writes it; see its log, and delete its certificate Secret to have it made anew")
		return
	}
	if config.Service == nil {
		p.ok(check, "answers at a URL")
		return
	}
	ready, err := p.endpoints(ctx, config.Service.Namespace, config.Service.Name)
	switch {
	case err != nil:
		p.failed(check, err, "")
	case ready == 0:
		p.say(check, stateFault, fmt.Sprintf("nothing answers at Service %s/%s", config.Service.Namespace, config.Service.Name),
			"bring a replica of the manager to Ready")
	default:
		p.ok(check, "%d endpoints, certificate authority valid", ready)
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
		if !p.env.clock().Before(certificate.NotAfter) {
			return "expired at " + certificate.NotAfter.Format(time.RFC3339)
		}
		count++
	}
	if count == 0 {
		return "is empty"
	}
	return ""
}

// endpoints counts what is ready behind a Service.
func (p *patient) endpoints(ctx context.Context, namespace, service string) (int, error) {
	var list discoveryv1.EndpointSliceList
	err := p.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		return 0, fmt.Errorf("list endpoints of %s: %w", service, err)
	}
	ready := 0
	for i := range list.Items {
		for _, endpoint := range list.Items[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready += len(endpoint.Addresses)
			}
		}
	}
	return ready, nil
}

// policies looks for the admission policies without which RBAC alone decides.
func (p *patient) policies(ctx context.Context) {
	const check, fix = "admission policies", "install the chart with admissionPolicies.enabled=true"
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	for _, list := range []client.ObjectList{&policies, &bindings} {
		if err := p.client.List(ctx, list); err != nil {
			p.failed(check, err, fix)
			return
		}
	}
	bound := []string{}
	for i := range bindings.Items {
		if slices.Contains(bindings.Items[i].Spec.ValidationActions, admissionv1.Deny) {
			bound = append(bound, bindings.Items[i].Spec.PolicyName)
		}
	}
	missing := []string{}
	for _, suffix := range []string{"-issue", "-use", "-status"} {
		if !slices.ContainsFunc(policies.Items, func(v admissionv1.ValidatingAdmissionPolicy) bool {
			return strings.HasSuffix(v.Name, suffix) && slices.Contains(bound, v.Name) && v.Labels["app.kubernetes.io/managed-by"] != ""
		}) {
			missing = append(missing, strings.TrimPrefix(suffix, "-"))
		}
	}
	if len(missing) > 0 {
		p.say(check, stateFault, "missing or not bound: "+strings.Join(missing, ", ")+"; whoever may write Grants may issue for anybody", fix)
		return
	}
	p.ok(check, "issue, use and status are enforced")
}

// certificates looks at the installation's own certificates.
func (p *patient) certificates(ctx context.Context) {
	const check, fix = "certificates", "the manager renews them; see its log, or delete the Secret to have it made anew"
	var list corev1.SecretList
	if err := p.client.List(ctx, &list, client.InNamespace(p.system)); err != nil {
		p.failed(check, err, fix)
		return
	}
	seen := 0
	for i := range list.Items {
		secret := &list.Items[i]
		data := secret.Data[corev1.TLSCertKey]
		if !strings.HasSuffix(secret.Name, "-tls") || len(data) == 0 {
			continue
		}
		seen++
		block, _ := pem.Decode(data)
		if block == nil {
			p.say(check, stateFault, secret.Name+" holds no certificate", fix)
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			p.say(check, stateFault, secret.Name+": "+err.Error(), fix)
			continue
		}
		left := certificate.NotAfter.Sub(p.env.clock())
		switch {
		case left <= 0:
			p.say(check, stateFault, secret.Name+" expired at "+certificate.NotAfter.Format(time.RFC3339), fix)
		case left < nearExpiry:
			p.say(check, stateWarning, secret.Name+" expires at "+certificate.NotAfter.Format(time.RFC3339), fix)
		default:
			p.ok(check, "%s is valid until %s", secret.Name, certificate.NotAfter.Format(time.DateOnly))
		}
	}
	if seen == 0 {
		p.say(check, stateFault, "the manager has made none in "+p.system, fix)
	}
}

// maxLeaseAge is how old the leader's last sign of life may be.
const maxLeaseAge = time.Minute

// kernelService looks at the leader, which alone answers bridges.
func (p *patient) kernelService(ctx context.Context) {
	const check = "kernel service"
	var services corev1.ServiceList
	if err := p.client.List(ctx, &services, client.InNamespace(p.system)); err != nil {
		p.failed(check, err, "")
		return
	}
	found := false
	for i := range services.Items {
		service := &services.Items[i]
		if !strings.HasSuffix(service.Name, "-kernel") {
			continue
		}
		found = true
		ready, err := p.endpoints(ctx, p.system, service.Name)
		switch {
		case err != nil:
			p.failed(check, err, "")
		case ready == 0:
			p.say(check, stateFault, "no leader answers at "+service.Name, "see the log of the manager: kubectl -n "+p.system+" logs -l "+labelComponent+"=manager")
		default:
			p.ok(check, "the leader answers at %s", service.Name)
		}
	}
	if !found {
		p.say(check, stateFault, "there is no Service of the kernel in "+p.system, "install the chart again, or say where it is with --system-namespace")
	}
	p.lease(ctx)
}

func (p *patient) lease(ctx context.Context) {
	const check = "leader"
	lease := &coordinationv1.Lease{}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.system, Name: "sharedos-manager"}, lease)
	if client.IgnoreNotFound(err) != nil {
		p.failed(check, err, "")
		return
	}
	if err != nil {
		return // one replica needs no lease
	}
	if lease.Spec.RenewTime == nil || p.env.clock().Sub(lease.Spec.RenewTime.Time) > maxLeaseAge {
		p.say(check, stateFault, "nobody renews the lease sharedos-manager", "bring a replica of the manager to Ready")
		return
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	p.ok(check, "%s", holder)
}
