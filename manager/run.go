package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/certificates"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/keyring"
)

// process is the parts that several others are made from.
type process struct {
	opts    Options
	log     logr.Logger
	mgr     ctrl.Manager
	certs   *certificates.Store
	keyring *keyring.Keyring
	audit   audit.Sink
	clock   func() time.Time

	observation *observation
}

// Run runs the manager until ctx ends.
func Run(ctx context.Context, restConfig *rest.Config, opts Options, log logr.Logger) error {
	ctrl.SetLogger(log)
	certDir, err := os.MkdirTemp("", "sharedos-certificates-")
	if err != nil {
		return fmt.Errorf("make the certificate folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(certDir) }()
	p := &process{opts: opts, log: log, certs: &certificates.Store{Providers: opts.ProviderTLSSecret != ""}, clock: time.Now}
	closeAudit, err := p.openAudit()
	if err != nil {
		return err
	}
	defer closeAudit()
	closeObservation, err := p.openObservation(ctx)
	if err != nil {
		return err
	}
	defer closeObservation()
	options := p.managerOptions()
	if opts.LeaderElect {
		if options.LeaderElectionResourceLockInterface, err = leaseLock(restConfig, opts.Namespace, opts.LeaseDuration); err != nil {
			return err
		}
	}
	if p.mgr, err = ctrl.NewManager(restConfig, options); err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"certificates", func() error { return p.addCertificates(certDir) }},
		{"kernel", func() error { return p.addKernel(ctx) }},
		{"webhooks", func() error { return p.addWebhooks(ctx) }},
		{"console", p.addConsole},
		{"health checks", p.addChecks},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("set up the %s: %w", step.name, err)
		}
	}
	if err := p.mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// Scheme knows the kinds that the manager works with.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name: a fault of the build
		}
	}
	return scheme
}

func (p *process) managerOptions() ctrl.Options {
	renew := renewDeadline(p.opts.LeaseDuration)
	retry := leaseLook
	return ctrl.Options{
		Scheme: Scheme(),
		Logger: p.log,
		Metrics: metricsserver.Options{
			BindAddress: p.opts.MetricsListen, SecureServing: true, FilterProvider: metricsAccess,
			TLSOpts: []func(*tls.Config){p.serveWith},
		},
		HealthProbeBindAddress: p.opts.HealthListen,
		PprofBindAddress:       p.opts.ProfileListen,
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: p.opts.WebhookPort, TLSOpts: []func(*tls.Config){p.serveWith},
		}),
		LeaderElection:                p.opts.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       p.opts.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &p.opts.LeaseDuration,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		// Who waits for the lease already knows what there is.
		Controller: config.Controller{EnableWarmup: new(true)},
		Cache:      cacheOptions(p.opts.Namespace),
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		}},
		GracefulShutdownTimeout: ptr.To(20 * time.Second),
	}
}

// openAudit opens the audit log. Without a folder, records go to standard output.
func (p *process) openAudit() (func(), error) {
	if p.opts.AuditDir == "" {
		p.audit = audit.NewWriter(os.Stdout)
		return func() {}, nil
	}
	dir := filepath.Join(p.opts.AuditDir, "log")
	log, err := durable.Open(dir, durable.Options{OnFail: func(err error) {
		p.log.Error(err, "The audit log has failed: nothing is allowed any more")
	}})
	if err != nil {
		return nil, fmt.Errorf("open the audit log in %s: %w", dir, err)
	}
	p.audit = log
	return func() {
		if err := log.Close(); err != nil {
			p.log.Error(err, "Closing the audit log failed")
		}
	}, nil
}

// addChecks: alive as long as the process answers, ready once it can serve.
func (p *process) addChecks() error {
	if err := p.mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }); err != nil {
		return err
	}
	return p.mgr.AddReadyzCheck("certificates", func(*http.Request) error {
		select {
		case <-p.certs.Ready():
			return nil
		default:
			return certificates.ErrNotReady
		}
	})
}

func (p *process) own(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.opts.Namespace, Name: name}
}

func newID() string { return uuid.NewString() }

// managerLabels select the manager's own pods, for NetworkPolicies of harness pods.
func (p *process) managerLabels(ctx context.Context) (map[string]string, error) {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := p.mgr.GetAPIReader().Get(ctx, p.own(p.opts.PodName), pod); err != nil {
		return nil, fmt.Errorf("get the manager's own pod: %w", err)
	}
	out := map[string]string{}
	for _, key := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component"} {
		if value, ok := pod.Labels[key]; ok {
			out[key] = value
		}
	}
	return out, nil
}
