package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/injection"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manager"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/sessions"
)

// server is the API server that the tests share; TestMain sets it.
var server struct {
	config    *rest.Config
	client    client.Client
	clientset kubernetes.Interface
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/httpapi:", err)
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
	}
	if server.config, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	server.config.QPS, server.config.Burst = -1, -1
	if server.client, err = client.New(server.config, client.Options{Scheme: manager.Scheme()}); err != nil {
		return 0, fmt.Errorf("reach API server: %w", err)
	}
	if server.clientset, err = kubernetes.NewForConfig(server.config); err != nil {
		return 0, fmt.Errorf("reach API server: %w", err)
	}
	return m.Run(), nil
}

// operator is one manager's controllers with the kernel and the HTTP API.
type operator struct {
	registry *sessions.Registry
	url      string
	server   *httptest.Server
	stopping chan struct{}
	stop     func()

	mu     sync.Mutex
	behind time.Duration
}

// pass lets time pass for who reviews tokens, not for anybody else.
func (o *operator) pass(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.behind += d
}

func (o *operator) clock() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.behind)
}

// plane serves files that say who asked.
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

// injecting gives each harness pod its bridge, as the injection webhook does.
type injecting struct{ client.Client }

func (c injecting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Annotations = map[string]string{v1alpha1.AnnotationInjectedBy: "test"}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name: v1alpha1.ContainerBridge, Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		})
	}
	return c.Client.Create(ctx, o, opts...)
}

// start runs what one manager runs on the leader.
func start(t *testing.T) *operator {
	t.Helper()
	mgr, err := ctrl.NewManager(server.config, ctrl.Options{
		Scheme: manager.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
	})
	must(t, err)
	live, cached := mgr.GetAPIReader(), mgr.GetClient()
	o := &operator{stopping: make(chan struct{})}
	api, err := manager.NewAPI(manager.APIOptions{
		Live: live, Cached: cached, Connector: plane{}, Stopping: o.stopping,
		Kernel: kernel.Options{
			Usage: &authority.Uses{Reader: cluster.Reader(live), Writer: cluster.GrantStatus{Writer: cached.Status()}}, Audit: &audit.Memory{}, Clock: o.clock, NewID: uuid.NewString,
		},
		Reviews: server.clientset.AuthenticationV1().TokenReviews(),
		Access:  injection.RBAC{Reviews: server.clientset.AuthorizationV1().SubjectAccessReviews()},
	})
	must(t, err)
	informer, err := mgr.GetCache().GetInformer(t.Context(), &v1alpha1.Turn{})
	must(t, err)
	_, err = informer.AddEventHandler(api.Endings)
	must(t, err)
	changes := &controllers.Changes{}
	o.registry = sessions.New(sessions.Options{Kernel: api.Kernel, OnChange: changes.Notify})
	turns := &controllers.TurnReconciler{
		Client: injecting{cached}, Live: live, Grants: authority.Grants{Reader: cluster.Reader(live)}, Sessions: o.registry, Changes: changes,
		Recorder: mgr.GetEventRecorder("test"), Clock: time.Now,
		Egress: controllers.EgressTarget{Namespace: "sys", PodLabels: map[string]string{"app": "manager"}, Port: 8444},
	}
	must(t, turns.SetupWithManager(mgr))
	must(t, (&controllers.PrincipalReconciler{Client: cached}).SetupWithManager(mgr))
	must(t, (&controllers.GrantReconciler{Client: cached, Clock: time.Now}).SetupWithManager(mgr))
	// What the API is answered from without being a controller's.
	_, err = mgr.GetCache().GetInformer(t.Context(), &v1alpha1.ToolNamespace{})
	must(t, err)
	_, err = mgr.GetCache().GetInformer(t.Context(), &v1alpha1.Harness{})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache was not filled")
	}
	o.server = httptest.NewUnstartedServer(api.Handler)
	o.server.EnableHTTP2 = true
	o.server.StartTLS()
	o.url = o.server.URL
	var once sync.Once
	o.stop = func() {
		once.Do(func() {
			close(o.stopping)
			o.server.Close()
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the manager ended: %v", err)
			}
		})
	}
	t.Cleanup(o.stop)
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
