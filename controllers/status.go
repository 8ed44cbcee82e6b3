package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchStatus writes the status of an object that was changed since before was
// copied from it. It writes nothing when nothing changed, and only on top of the
// version that was read.
func patchStatus(ctx context.Context, c client.Client, before, after client.Object, oldStatus, newStatus any) error {
	if equality.Semantic.DeepEqual(oldStatus, newStatus) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

// requeueOnConflict turns a conflict into another look instead of an error: the
// object has moved on, and its new version is on its way.
func requeueOnConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}
