//go:build load

package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sharedos-dev/operator/manager"
)

// system is the namespace that the managers believe to run in.
const system = "sharedos-system"

// webhookPort is the port on which the first manager answers the API server.
const webhookPort = 19443

// env is what all tests share; TestMain sets it.
var env struct {
	config     *rest.Config
	client     client.WithWatch
	clientset  *kubernetes.Clientset
	kubeconfig string
	binary     string
}

func TestMain(m *testing.M) {
	if os.Getenv(providerVariable) != "" {
		if err := provide(); err != nil {
			fmt.Fprintln(os.Stderr, "test/integration/load: provider:", err)
			os.Exit(1)
		}
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/load:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New(`KUBEBUILDER_ASSETS is not set; eval "$(go -C test/localcluster run . env --only-assets)"`)
	}
	ctrl.SetLogger(logr.Discard())
	root := filepath.Join("..", "..", "..")
	dir, err := os.MkdirTemp("", "sharedos-load-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env.binary = filepath.Join(dir, "manager")
	if out, err := exec.Command("go", "build", "-o", env.binary, "../../../cmd/manager").CombinedOutput(); err != nil { //nolint:gosec,noctx // our own program
		return 0, fmt.Errorf("build the manager: %w: %s", err, out)
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd")}, ErrorIfCRDPathMissing: true}
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	if env.config, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	env.config.QPS, env.config.Burst = -1, -1
	env.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(env.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return 0, err
	}
	if env.client, err = client.NewWithWatch(env.config, client.Options{Scheme: manager.Scheme()}); err != nil {
		return 0, err
	}
	if env.clientset, err = kubernetes.NewForConfig(env.config); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := install(ctx, root); err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	return m.Run(), nil
}

// install makes what the chart would: the managers' pods, Services, Secrets and
// webhooks. Their Service has the name of this machine behind it.
func install(ctx context.Context, root string) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&corev1.ServiceAccount{ObjectMeta: meta("default")},
		&corev1.Service{ObjectMeta: meta("sharedos-kernel"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8444}}}},
		&corev1.Service{ObjectMeta: meta("sharedos-webhook"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}},
		&corev1.Secret{ObjectMeta: meta("sharedos-manager-tls")},
		&corev1.Secret{ObjectMeta: meta("sharedos-execution-token")},
		&corev1.Secret{ObjectMeta: meta("sharedos-files-provider-tls")},
	}
	for i := range 2 {
		objects = append(objects, &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("manager-%d", i)), Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "manager"}},
		}})
	}
	for _, o := range objects {
		if err := env.client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	file, err := os.Open(filepath.Join(root, "config", "webhook", "manifests.yaml")) //nolint:gosec // our own manifest
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := decoder.Decode(hook); err != nil {
			return fmt.Errorf("no webhook for pods in the manifests: %w", err)
		}
		if hook.Kind != "MutatingWebhookConfiguration" {
			continue
		}
		for i := range hook.Webhooks {
			hook.Webhooks[i].ClientConfig.Service.Port = new(int32(webhookPort))
		}
		return env.client.Create(ctx, hook)
	}
}
