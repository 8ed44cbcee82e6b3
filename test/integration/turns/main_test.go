package turns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manager"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/oneview"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/toolsource"
)

// server is the API server that the tests share; TestMain sets it.
var server struct {
	config   *rest.Config
	client   client.Client
	webhooks *admissionServer
	// processes end with the tests: etcd and kube-apiserver.
	processes processes
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/turns:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New(`KUBEBUILDER_ASSETS is not set; run make test-integration, or eval "$(go -C test/localcluster run . env --only-assets)"`)
	}
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("..", "..", "..", "config", "crd")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: webhooks(),
	}
	// A pod that the sidecar is put into has a ServiceAccount, as on every cluster.
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	if server.config, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { server.processes.end(); err = errors.Join(err, environment.Stop()) }()
	server.config.QPS, server.config.Burst = -1, -1
	if server.client, err = client.New(server.config, client.Options{Scheme: manager.Scheme()}); err != nil {
		return 0, fmt.Errorf("reach API server: %w", err)
	}
	if server.webhooks, err = newAdmissionServer(context.Background(), environment.WebhookInstallOptions, server.client); err != nil {
		return 0, err
	}
	if err := server.webhooks.up(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.webhooks.down()) }()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if err := server.client.Create(context.Background(), account); err != nil {
		return 0, fmt.Errorf("make the default ServiceAccount: %w", err)
	}
	if err := awaitWebhooks(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// awaitWebhooks returns once the API server gets answers from the webhooks.
func awaitWebhooks() error {
	return wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod := podFor(metav1.ObjectMeta{Namespace: "default", Name: "probe"}, map[string]string{v1alpha1.LabelTurn: "none"})
		err := server.client.Create(ctx, pod, client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})
}

// operator is one manager's controllers with their sessions.
type operator struct {
	registry *sessions.Registry
	stop     func()
}

// plane serves files that say their own path.
type plane struct{}

func (plane) Invoke(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded, CompletedAt: contract.At(time.Now()),
		Output: contract.Value(`{"path":["Work"],"entries":[],"truncated":false}`),
	}, nil
}

func (plane) Connect(context.Context, *v1alpha1.ToolNamespace) (kernel.ResourceProvider, error) {
	return plane{}, nil
}

// start runs the controllers, as one manager would.
func start(t *testing.T) *operator {
	t.Helper()
	return startOn(t, server.config)
}

// startOn is start with a client configuration of its own.
func startOn(t *testing.T, restConfig *rest.Config) *operator {
	t.Helper()
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: manager.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
	})
	must(t, err)
	live, cached := oneview.Reader{Reader: mgr.GetAPIReader()}, mgr.GetClient()
	grants := authority.Grants{Reader: cluster.Reader(live)}
	k, err := kernel.New(kernel.Options{
		Grants: grants, Delegation: grants, Usage: &authority.Uses{Reader: cluster.Reader(live), Writer: cluster.GrantStatus{Writer: cached.Status()}},
		Audit: &audit.Memory{}, Clock: time.Now, NewID: uuid.NewString,
		Providers: []kernel.ToolProvider{toolsource.Provider{Reader: cluster.Reader(live), Connector: plane{}}},
	})
	must(t, err)
	changes := &controllers.Changes{}
	out := &operator{registry: sessions.New(sessions.Options{Kernel: k, OnChange: changes.Notify, OnProgress: changes.NotifyLater})}
	turns := &controllers.TurnReconciler{
		Client: cached, Live: live, Grants: grants, Sessions: out.registry, Changes: changes,
		Recorder: mgr.GetEventRecorder("test"), Clock: time.Now,
		Egress: controllers.EgressTarget{Namespace: "sys", PodLabels: map[string]string{"app": "manager"}, Port: 8444},
	}
	must(t, turns.SetupWithManager(mgr))
	must(t, (&controllers.PrincipalReconciler{Client: cached}).SetupWithManager(mgr))
	must(t, (&controllers.GrantReconciler{Client: cached, Clock: time.Now}).SetupWithManager(mgr))
	must(t, (&controllers.HarnessReconciler{Client: cached, Sidecar: sidecarConfig}).SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	out.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the manager ended: %v", err)
			}
		}
	}
	t.Cleanup(out.stop)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
