package controllers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedos-dev/operator/sessions"
)

// Changes brings the news of sessions into the Turn controller's queue. It is a
// source of that controller and the registry's OnChange.
type Changes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Notify asks for the Turn to be reconciled. News that come before the controller
// has started are not lost: it begins by looking at every Turn.
func (c *Changes) Notify(key sessions.Key) {
	c.mu.Lock()
	queue := c.queue
	c.mu.Unlock()
	if queue != nil {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Turn}})
	}
}

// NotifyLater asks for the Turn to be reconciled in a while. It is the registry's
// OnProgress.
func (c *Changes) NotifyLater(key sessions.Key) {
	c.mu.Lock()
	queue := c.queue
	c.mu.Unlock()
	if queue != nil {
		queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Turn}}, progressEvery)
	}
}

// Start implements the source.
func (c *Changes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = queue
	return nil
}
