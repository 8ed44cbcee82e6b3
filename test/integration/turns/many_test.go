package turns

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
)

// TestManyTurns drives many Turns at once to their end: each one succeeds with its one
// call, costs a bounded number of writes, and leaves nothing behind. How long that takes
// is measured in test/integration/load.
func TestManyTurns(t *testing.T) {
	w := newWorld(t, "throughput")
	config, writes := counting(w)
	o := startOn(t, config)
	w.mayRun()
	// A Turn with one call is held, admitted, bound, started, ended and let go; its pod is
	// annotated; whoever is slow finds counters stored in between, or a wait told.
	const turns, atOnce, most = 50, 10, 10
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1); i <= turns; i = next.Add(1) {
				if err := o.drive(t.Context(), w, fmt.Sprintf("t%d", i)); err != nil {
					t.Errorf("turn %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range turns {
		turn := w.ended(fmt.Sprintf("t%d", i+1))
		if turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Usage == nil || turn.Status.Usage.ToolCalls != 1 {
			t.Errorf("turn %s: %s, usage %+v, error %+v", turn.Name, turn.State(), turn.Status.Usage, turn.Status.Error)
		}
	}
	for i := range turns { // the operator also has the Turns of other worlds
		w.until(fmt.Sprintf("t%d", i+1), func(turn *v1alpha1.Turn) bool {
			_, open := o.registry.Get(sessions.Key{Namespace: turn.Namespace, Turn: turn.Name}, string(turn.UID))
			return !open
		})
	}
	writes.settle(t)
	n := writes.total.Load()
	t.Logf("%d turns, %d writes: %.1f each", turns, n, float64(n)/turns)
	if n > most*turns {
		t.Errorf("%d turns cost %d writes, want at most %d each: %s", turns, n, most, writes)
	}
	var list v1alpha1.TurnList
	must(t, server.client.List(t.Context(), &list, client.InNamespace(w.namespace)))
	for i := range list.Items {
		if len(list.Items[i].Finalizers) != 0 {
			t.Errorf("turn %s still has the finalizers %v", list.Items[i].Name, list.Items[i].Finalizers)
		}
	}
	for _, kind := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}} {
		must(t, server.client.List(t.Context(), kind, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelTurn}))
		if left := meta.LenList(kind); left != 0 {
			t.Errorf("%d objects of a %T were left", left, kind)
		}
	}
}

// drive takes a Turn with a pod of somebody else's from its creation to its outcome.
func (o *operator) drive(ctx context.Context, w *world, name string) error {
	turn := &v1alpha1.Turn{ObjectMeta: w.meta(name), Spec: v1alpha1.TurnSpec{Principal: "bot", Message: v1alpha1.TurnMessage{Text: "go"}}}
	if err := server.client.Create(ctx, turn); err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	pod := podFor(w.meta("pod-"+name), map[string]string{v1alpha1.LabelTurn: name})
	if err := server.client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create its pod: %w", err)
	}
	if !controllers.HasBridge(pod) {
		return fmt.Errorf("pod %s has no bridge", pod.Name)
	}
	var s *sessions.Session
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 2*patience, true, func(context.Context) (bool, error) {
		found, ok := o.registry.Get(sessions.Key{Namespace: turn.Namespace, Turn: turn.Name}, string(turn.UID))
		s = found
		return ok && s.Attach(sessions.Pod{Name: pod.Name, UID: string(pod.UID)}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("pod %s is not let in: %w", pod.Name, err)
	}
	s.Ready(ctx)
	result := s.Invoke(ctx, bridge.InvokeRequest{CallID: "1", Tool: "files.list", Arguments: list})
	if result.Status != contract.StatusSucceeded {
		return fmt.Errorf("its call: %+v", result.Error)
	}
	return s.Outcome(ctx, done("ok"))
}
