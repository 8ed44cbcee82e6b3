package controllers

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestNothingIsDecidedTooEarly: what comes before the manager is ready waits, and goes on
// by itself; the end of the process ends the waiting.
func TestNothingIsDecidedTooEarly(t *testing.T) {
	ready, asked := make(chan struct{}), make(chan ctrl.Request, 2)
	r := after(ready, reconcile.Func(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
		select {
		case <-ready:
		default:
			t.Error("decided before the manager was ready")
		}
		asked <- req
		return ctrl.Result{}, nil
	}))
	var req ctrl.Request
	req.Name = "t"
	ended := make(chan error, 1)
	go func() { _, err := r.Reconcile(t.Context(), req); ended <- err }()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := r.Reconcile(stopped, req); !errors.Is(err, context.Canceled) {
		t.Errorf("a manager that stops: %v, want %v", err, context.Canceled)
	}
	if len(asked) != 0 {
		t.Fatal("asked before the manager was ready")
	}
	close(ready)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Error(err)
	}
	for range 2 {
		if got := <-asked; got != req {
			t.Errorf("asked for %v, want %v", got, req)
		}
	}
}
