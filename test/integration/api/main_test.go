package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

const (
	root    = "../../.."
	crdPath = root + "/config/crd"
)

// server is the API server that the tests of this package share; TestMain sets it.
var server struct {
	config *rest.Config
	client client.Client
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/api:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if err := checkAssets(); err != nil {
		return 0, err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{crdPath},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return 0, fmt.Errorf("register kinds: %w", err)
	}
	config.QPS, config.Burst = -1, -1
	server.config = config
	server.client, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return 0, fmt.Errorf("make client: %w", err)
	}
	return m.Run(), nil
}

// checkAssets says what to do when there is no API server to test with.
func checkAssets() error {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: it must name the folder that holds etcd and kube-apiserver; " +
			"test/localcluster builds them")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS=%s lacks %s: %w", folder, name, err)
		}
	}
	return nil
}

// newNamespace makes a namespace for one test.
func newNamespace(ctx context.Context, t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	if err := server.client.Create(ctx, namespace); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	return namespace.Name
}
