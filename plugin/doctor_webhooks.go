package plugin

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// injection is the name of the webhook that injects the bridge, in every installation.
const injection = "injection.sharedos.dev"

// validationSuffix is how the names of the webhooks end that check Grants and Principals.
const validationSuffix = ".validation.sharedos.dev"

// webhooks looks at the webhook that injects the bridge, and at those that check.
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
				p.webhook(ctx, "injection webhook", &w.ClientConfig, w.FailurePolicy, "a harness pod could start without its bridge")
			}
		}
	}
	if !found {
		p.say("injection webhook", stateFault, "there is none, so no harness pod gets a bridge", "install the chart again")
	}
	p.validation(ctx)
}

func (p *patient) validation(ctx context.Context) {
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := p.client.List(ctx, &validating); err != nil {
		p.failed("validation webhook", err, "")
		return
	}
	found := map[string]bool{}
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			w := &validating.Items[i].Webhooks[j]
			if kind, ours := strings.CutSuffix(w.Name, validationSuffix); ours {
				found[kind] = true
				p.webhook(ctx, "validation webhook "+kind, &w.ClientConfig, w.FailurePolicy, "while the manager is away nothing checks")
			}
		}
	}
	if p.flag("validating-webhook", "") == "" {
		return
	}
	for _, kind := range []string{"grant", "principal"} {
		if !found[kind] {
			p.say("validation webhook "+kind, stateFault, "there is none, so faults show as conditions only, after the fact", "install the chart again")
		}
	}
}

func (p *patient) webhook(ctx context.Context, check string, config *admissionv1.WebhookClientConfig, policy *admissionv1.FailurePolicyType, open string) {
	if policy != nil && *policy != admissionv1.Fail {
		p.say(check, stateFault, "its failurePolicy is not Fail: "+open, "install the chart again")
		return
	}
	if fault := p.authority(config); fault != "" {
		p.say(check, stateFault, "its CA bundle "+fault, "the leader writes it; let nothing else do so, such as a GitOps tool or a CA injector, and see its log: "+p.managerLog())
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
	case len(ready) == 0:
		p.say(check, stateFault, fmt.Sprintf("nothing answers at Service %s/%s", config.Service.Namespace, config.Service.Name),
			"bring a replica of the manager to Ready")
	default:
		p.ok(check, "%d endpoints, certificate authority valid", len(ready))
	}
}

// authority says why the API server would not believe who answers, or nothing.
func (p *patient) authority(config *admissionv1.WebhookClientConfig) string {
	secret := p.secrets[p.managerSecret()]
	if secret == nil || config.Service == nil {
		return p.bundle(config.CABundle)
	}
	leaf, err := leafOf(secret)
	if err != nil { // which has its own line
		return p.bundle(config.CABundle)
	}
	fault := p.signs(config.CABundle, leaf, config.Service.Name+"."+config.Service.Namespace+".svc")
	if strings.HasSuffix(fault, "the certificate") {
		fault += " in Secret " + secret.Name + ", so the API server refuses the manager's answers"
	}
	return fault
}
