package toolsources

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/manager"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/toolsource"
)

// server is the API server that the tests share; TestMain sets it.
var server struct {
	config *rest.Config
	client client.Client
}

// patience is how long something may take that happens by itself.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/toolsources:", err)
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
	return m.Run(), nil
}

// start runs the controller, which may dial loopback if allowed, until the test ends.
func start(t *testing.T, allowed bool) *toolsource.Connections {
	t.Helper()
	mgr, err := ctrl.NewManager(server.config, ctrl.Options{
		Scheme: manager.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	must(t, err)
	connections := &toolsource.Connections{Reader: cluster.Reader(mgr.GetAPIReader()), Egress: &egress.Guard{}}
	if allowed {
		connections.Egress.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	must(t, (&controllers.ToolNamespaceReconciler{Client: mgr.GetClient(), Connections: connections}).SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return connections
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world makes a namespace.
func world(t *testing.T, name string) string {
	t.Helper()
	must(t, server.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

// until waits until the ToolNamespace is as wanted.
func until(t *testing.T, namespace, name string, wanted func(*v1alpha1.ToolNamespace) bool) *v1alpha1.ToolNamespace {
	t.Helper()
	n := &v1alpha1.ToolNamespace{}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, n)
		return err == nil && wanted(n), err
	})
	if err != nil {
		t.Fatalf("%s/%s: %v; its status is %+v", namespace, name, err, n.Status)
	}
	return n
}

// says reports whether a condition has the status and reason.
func says(n *v1alpha1.ToolNamespace, kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason) bool {
	c := v1alpha1.FindCondition(n.Status.Conditions, kind)
	return c != nil && c.Status == status && c.Reason == string(reason) && c.ObservedGeneration == n.Generation
}

func tool(n *v1alpha1.ToolNamespace, name string) v1alpha1.ToolStatus {
	for _, t := range n.Status.Tools {
		if string(t.Name) == name || (t.Name == "" && string(t.Upstream) == name) {
			return t
		}
	}
	return v1alpha1.ToolStatus{}
}
