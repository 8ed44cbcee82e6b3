package controllers

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sayAfter is how long it takes until something that should be ready at once is named.
const sayAfter = 10 * time.Second

// after lets nothing be decided before the manager has what it identifies itself with:
// a Turn that is looked at too early would be refused for good, because its tools cannot
// be reached. A nil channel is ready.
func after(ready <-chan struct{}, next reconcile.Reconciler) reconcile.Reconciler {
	if ready == nil {
		return next
	}
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		select {
		case <-ready:
			return next.Reconcile(ctx, req)
		default:
		}
		late := time.NewTimer(sayAfter)
		defer late.Stop()
		for {
			select {
			case <-ready:
				return next.Reconcile(ctx, req)
			case <-ctx.Done():
				return ctrl.Result{}, ctx.Err()
			case <-late.C:
				log.FromContext(ctx).Info("Waiting for the manager's certificates; see the Secrets that it is started with")
			}
		}
	})
}
