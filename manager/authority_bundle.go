package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
)

// republishEvery is how often a bundle is looked at without a cause: a certificate
// authority that was renewed is told within that time, which is long before the one
// before it expires.
const republishEvery = 10 * time.Minute

// bundleRetry is how soon to look again while there are no certificates yet.
const bundleRetry = time.Second

// authorityBundle keeps the certificate authority of the HTTP API in a ConfigMap of
// every namespace with a Principal, where pods can mount it. It holds no secret.
type authorityBundle struct {
	// Reader must not be a cache: ConfigMaps are not watched.
	Reader client.Reader
	Writer client.Client
	// Principals says which namespaces have any.
	Principals client.Reader
	// CA returns the PEM bundle.
	CA func() ([]byte, error)
}

// SetupWithManager registers it, once per namespace.
func (b *authorityBundle) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("authority-bundle").
		Watches(&v1alpha1.Principal{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: v1alpha1.ConfigMapCA}}}
		})).
		Complete(b)
}

// Reconcile publishes the bundle in one namespace. It writes nothing that is there.
func (b *authorityBundle) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var principals v1alpha1.PrincipalList
	if err := b.Principals.List(ctx, &principals, client.InNamespace(req.Namespace), client.Limit(1)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list principals: %w", err)
	}
	if len(principals.Items) == 0 {
		return ctrl.Result{}, nil // the last one is gone; whoever has the bundle mounted keeps it
	}
	ca, err := b.CA()
	if err != nil {
		return ctrl.Result{RequeueAfter: bundleRetry}, nil //nolint:nilerr // the certificates are being made
	}
	is := &corev1.ConfigMap{}
	err = b.Reader.Get(ctx, req.NamespacedName, is)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("get the bundle: %w", err)
	}
	if err != nil || is.Data[v1alpha1.KeyCA] != string(ca) {
		bundle := applycorev1.ConfigMap(req.Name, req.Namespace).WithData(map[string]string{v1alpha1.KeyCA: string(ca)})
		if err := b.Writer.Apply(ctx, bundle, client.FieldOwner(controllers.FieldOwner), client.ForceOwnership); err != nil {
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return ctrl.Result{}, nil
			}
			return ctrl.Result{}, fmt.Errorf("publish the bundle: %w", err)
		}
	}
	return ctrl.Result{RequeueAfter: republishEvery}, nil
}
