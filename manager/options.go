package manager

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/console"
	"github.com/sharedos-dev/operator/egress"
)

// Options are the manager's flags.
type Options struct {
	// Version is the build's, for traces and --version.
	Version string

	Namespace, PodName, PodIP string

	HealthListen, MetricsListen string
	// ConsoleListen is the loopback address of the console, or 0.
	ConsoleListen string
	// ProfileListen is the loopback address of /debug/pprof, or 0.
	ProfileListen           string
	WebhookPort, KernelPort int

	KernelService, WebhookService      string
	TLSSecret, TokenSecret             string
	ProviderTLSSecret                  string
	ProviderService                    string
	MutatingWebhook, ValidatingWebhook string

	SidecarImage, SidecarImagePullPolicy string

	EgressAllow, EgressOnly string

	LeaderElect bool
	AuditDir    string
	Verbosity   int

	LeaseDuration time.Duration
}

// AddFlags defines the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", "sharedos-system", "namespace that the manager runs in")
	fs.StringVar(&o.PodName, "pod-name", "", "name of the manager's own pod")
	fs.StringVar(&o.PodIP, "pod-ip", "", "address of the manager's own pod, where the kernel service answers")
	fs.StringVar(&o.HealthListen, "health-listen", ":8081", "address of /healthz and /readyz")
	fs.StringVar(&o.MetricsListen, "metrics-listen", ":8080", "address of /metrics (HTTPS, for who may get that URL); 0 turns it off")
	fs.StringVar(&o.ConsoleListen, "console-listen", "127.0.0.1:8090", "loopback address of the read-only console, which a port-forward reaches; 0 turns it off")
	fs.StringVar(&o.ProfileListen, "profile-listen", "0", "loopback address of /debug/pprof, which a port-forward reaches; 0 turns it off")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "port of the admission webhooks")
	fs.IntVar(&o.KernelPort, "kernel-port", 8444, "port of the kernel service, in the pod and in its Service")
	fs.StringVar(&o.KernelService, "kernel-service", "sharedos-kernel", "name of the kernel's Service, which has no selector")
	fs.StringVar(&o.WebhookService, "webhook-service", "sharedos-webhook", "name of the webhooks' Service")
	fs.StringVar(&o.TLSSecret, "tls-secret", "sharedos-manager-tls", "Secret of the manager's certificate")
	fs.StringVar(&o.ProviderTLSSecret, "provider-tls-secret", "", "Secret of the providers' certificate; empty if there is none")
	fs.StringVar(&o.ProviderService, "provider-service", "", "names of the providers' Services, separated by commas; they share the certificate")
	fs.StringVar(&o.TokenSecret, "token-secret", "sharedos-execution-token", "Secret of the keys that sign execution tokens")
	fs.StringVar(&o.MutatingWebhook, "mutating-webhook", "sharedos-injection", "name of the MutatingWebhookConfiguration")
	fs.StringVar(&o.ValidatingWebhook, "validating-webhook", "", "name of the ValidatingWebhookConfiguration; empty if there is none")
	fs.StringVar(&o.SidecarImage, "sidecar-image", "", "image of the bridge sidecar (required)")
	fs.StringVar(&o.SidecarImagePullPolicy, "sidecar-image-pull-policy", "", "pull policy of that image: Always, IfNotPresent or Never")
	fs.StringVar(&o.EgressAllow, "egress-allow", "", "networks and addresses that sources may be reached at although they are refused by default, such as loopback and link-local; separated by commas")
	fs.StringVar(&o.EgressOnly, "egress-only", "", "the only networks and addresses that sources may be reached at; empty for all that are not refused by default")
	fs.BoolVar(&o.LeaderElect, "leader-elect", false, "wait for the lease before running controllers; needed with two replicas")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", 12*time.Second, "how long a lease holds that is not renewed; it is written every 2s, and never less than six times in that duration")
	fs.StringVar(&o.AuditDir, "audit-dir", "", "folder of the durable audit log; empty writes records to standard output only")
	fs.IntVar(&o.Verbosity, "v", 0, "verbosity: 0 state changes, 2 flow, 4 detail")
}

// Validate checks what the flags say; its error names every flag at fault.
func (o *Options) Validate() error {
	var errs []error
	if o.SidecarImage == "" {
		errs = append(errs, errors.New("--sidecar-image: must be set"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace: must be set"))
	}
	if o.PodIP == "" || net.ParseIP(o.PodIP) == nil {
		errs = append(errs, fmt.Errorf("--pod-ip: %q is not an address", o.PodIP))
	}
	for flag, address := range map[string]string{"--console-listen": o.ConsoleListen, "--profile-listen": o.ProfileListen} {
		if err := console.CheckListen(address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	for name, port := range map[string]int{"--webhook-port": o.WebhookPort, "--kernel-port": o.KernelPort} {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("%s: %d is not a port", name, port))
		}
	}
	switch corev1.PullPolicy(o.SidecarImagePullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		errs = append(errs, fmt.Errorf("--sidecar-image-pull-policy: %q is not Always, IfNotPresent or Never", o.SidecarImagePullPolicy))
	}
	if (o.ProviderTLSSecret == "") != (o.ProviderService == "") {
		errs = append(errs, errors.New("--provider-tls-secret and --provider-service: set both or none"))
	}
	if _, err := o.egress(); err != nil {
		errs = append(errs, err)
	}
	if o.LeaseDuration < 3*time.Second {
		errs = append(errs, errors.New("--lease-duration: must be at least 3s"))
	}
	return errors.Join(errs...)
}

// egress is the rule about the addresses of sources.
func (o *Options) egress() (*egress.Guard, error) {
	allow, err := egress.ParsePrefixes(o.EgressAllow)
	if err != nil {
		return nil, fmt.Errorf("--egress-allow: %w", err)
	}
	only, err := egress.ParsePrefixes(o.EgressOnly)
	if err != nil {
		return nil, fmt.Errorf("--egress-only: %w", err)
	}
	return &egress.Guard{Allow: allow, Only: only}, nil
}
