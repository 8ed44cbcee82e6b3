package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// maxSkew is how far the clocks may be apart. Grants and tokens are judged by time.
const maxSkew = 30 * time.Second

// reachable asks the API server for its version, and compares the clocks.
func (p *patient) reachable(ctx context.Context) bool {
	const check = "API server"
	info, err := p.set.Discovery().ServerVersion()
	if err != nil {
		p.say(check, stateFault, err.Error(), "check the kubeconfig, its context and the network: kubectl version")
		return false
	}
	p.ok(check, "Kubernetes %s", info.GitVersion)
	skew, err := p.apart(ctx)
	p.skew = skew
	const fix = "synchronise both with a time server; windows of Grants depend on it"
	switch {
	case err != nil:
		p.say("clock", stateUnknown, err.Error(), "compare this machine's clock with the API server's yourself")
	case skew > maxSkew:
		p.say("clock", stateFault, "this machine is ahead of the API server by "+skew.Round(time.Second).String(), fix)
	case skew < -maxSkew:
		p.say("clock", stateFault, "this machine is behind the API server by "+(-skew).Round(time.Second).String(), fix)
	default:
		p.ok("clock", "within %s of this machine's", maxSkew)
	}
	return true
}

// now is the API server's time: this machine's clock may be wrong, and it is no fault of
// the installation.
func (p *patient) now() time.Time { return p.env.clock().Add(-p.skew) }

// apart reads the instant that the API server writes on an answer.
func (p *patient) apart(ctx context.Context) (time.Duration, error) {
	config, err := p.env.config()
	if err != nil {
		return 0, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return 0, fmt.Errorf("find the API server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("ask the API server: %w", err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask the API server: %w", err)
	}
	defer resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, errors.New("the API server does not say what time it is")
	}
	return p.env.clock().Sub(at), nil
}
