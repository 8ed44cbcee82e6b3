package certificates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Follower keeps a [Store] equal to the two Secrets.
type Follower struct {
	Reader client.Reader
	Store  *Store
	// Manager and Provider are the Secrets; Provider may be empty.
	Manager  types.NamespacedName
	Provider types.NamespacedName
	// Dir is where each Secret's certificate is left in a file, below a folder of
	// its name: the rotation library takes that as the sign that it is in use.
	Dir string
}

// SetupWithManager registers the follower on every replica.
func (f *Follower) SetupWithManager(mgr ctrl.Manager) error {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		key := client.ObjectKeyFromObject(o)
		return key == f.Manager || key == f.Provider
	})
	everywhere := false
	return ctrl.NewControllerManagedBy(mgr).Named("certificates").
		For(&corev1.Secret{}, builder.WithPredicates(ours)).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(f)
}

// Reconcile takes over one Secret.
func (f *Follower) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := f.Reader.Get(ctx, req.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	set := f.Store.SetManager
	if req.NamespacedName == f.Provider {
		set = f.Store.SetProvider
	}
	if err := set(secret); err != nil {
		if errors.Is(err, ErrNotReady) {
			return ctrl.Result{}, nil // the next version of the Secret comes by itself
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, f.leave(secret)
}

// leave writes the certificate, never the key, for the rotation library to see.
func (f *Follower) leave(secret *corev1.Secret) error {
	dir := f.DirOf(secret.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the certificate folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, corev1.TLSCertKey), secret.Data[corev1.TLSCertKey], 0o600); err != nil {
		return fmt.Errorf("leave the certificate: %w", err)
	}
	return nil
}

// DirOf is the folder of one Secret's certificate.
func (f *Follower) DirOf(secret string) string { return filepath.Join(f.Dir, secret) }
