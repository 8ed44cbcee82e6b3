package turns

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/injection"
)

// webhooks are the manifests that are installed, injection among them.
func webhooks() envtest.WebhookInstallOptions {
	return envtest.WebhookInstallOptions{Paths: []string{filepath.Join("..", "..", "..", "config", "webhook", "manifests.yaml")}}
}

// sidecarConfig is the configuration of the sidecars that the tests' pods get.
func sidecarConfig() (injection.Config, error) {
	return injection.Config{Image: "sidecar:test", KernelURL: "https://kernel.example:8444", KernelPort: 8444, KernelCA: "PEM"}, nil
}

// admissionServer answers the webhooks for all tests; one may take it away for a
// while.
type admissionServer struct {
	options envtest.WebhookInstallOptions
	handler *injection.Webhook

	mu   sync.Mutex
	stop func() error
}

// newAdmissionServer knows the API server's administrator as the manager.
func newAdmissionServer(ctx context.Context, options envtest.WebhookInstallOptions, reader client.Reader) (*admissionServer, error) {
	clientset, err := kubernetes.NewForConfig(server.config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	who, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask who the tests are: %w", err)
	}
	decoder := admission.NewDecoder(server.client.Scheme())
	return &admissionServer{
		options: options,
		handler: &injection.Webhook{
			Reader: reader, Config: sidecarConfig, Decoder: decoder, ManagerUser: who.Status.UserInfo.Username,
			Authorizer: injection.RBAC{Reviews: clientset.AuthorizationV1().SubjectAccessReviews()},
		},
	}, nil
}

// up serves until [admissionServer.down].
func (a *admissionServer) up() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return nil
	}
	hooks := webhook.NewServer(webhook.Options{
		Host: a.options.LocalServingHost, Port: a.options.LocalServingPort, CertDir: a.options.LocalServingCertDir,
	})
	hooks.Register("/mutate-pods", &admission.Webhook{Handler: a.handler})
	// What these decide has tests of its own; here nothing is derived or doubled.
	allow := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}
	hooks.Register("/validate-sharedos-dev-v1alpha1-grant", allow)
	hooks.Register("/validate-sharedos-dev-v1alpha1-principal", allow)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hooks.Start(ctx) }()
	a.stop = func() error { cancel(); return <-done }
	return nil
}

// down stops serving.
func (a *admissionServer) down() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil {
		return nil
	}
	err := a.stop()
	a.stop = nil
	return err
}

// podFor is a pod as somebody who knows the rules would bring it.
func podFor(meta metav1.ObjectMeta, label map[string]string) *corev1.Pod {
	meta.Labels = label
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{Name: "harness", Image: "i"}},
	}}
}
