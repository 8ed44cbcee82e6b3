package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/injection"
	"github.com/sharedos-dev/operator/validation"
)

// Paths of the admission webhooks.
const (
	pathInjection = "/mutate-pods"
	pathGrants    = "/validate-sharedos-dev-v1alpha1-grant"
	pathPrincipal = "/validate-sharedos-dev-v1alpha1-principal"
)

// addWebhooks registers the admission webhooks, which answer on every replica.
func (p *process) addWebhooks(ctx context.Context) error {
	decoder := admission.NewDecoder(p.mgr.GetScheme())
	clientset, err := kubernetes.NewForConfig(p.mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	managerUser, err := user(ctx, clientset)
	if err != nil {
		return err
	}
	live := p.mgr.GetAPIReader()
	server := p.mgr.GetWebhookServer()
	server.Register(pathInjection, &admission.Webhook{Handler: &injection.Webhook{
		Reader: live, Cache: p.mgr.GetClient(), Config: p.sidecar, Decoder: decoder,
		Authorizer:  injection.RBAC{Reviews: clientset.AuthorizationV1().SubjectAccessReviews()},
		ManagerUser: managerUser,
	}})
	server.Register(pathGrants, &admission.Webhook{Handler: &validation.Grants{Reader: live, Decoder: decoder, Clock: p.clock}})
	server.Register(pathPrincipal, &admission.Webhook{Handler: &validation.Principals{Reader: live, Decoder: decoder}})
	return nil
}

// sidecar is the configuration of every injected sidecar, as it is now.
func (p *process) sidecar() (injection.Config, error) {
	ca, err := p.certs.CA()
	if err != nil {
		return injection.Config{}, err
	}
	return injection.Config{
		Image: p.opts.SidecarImage, PullPolicy: corev1.PullPolicy(p.opts.SidecarImagePullPolicy),
		KernelURL:  fmt.Sprintf("https://%s.%s.svc:%d", p.opts.KernelService, p.opts.Namespace, p.opts.KernelPort),
		KernelPort: p.opts.KernelPort, KernelCA: string(ca),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("24Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
	}, nil
}
