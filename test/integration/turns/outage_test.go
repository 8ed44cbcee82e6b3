package turns

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// underLoad runs turns with calls while something happens to the API server, and
// checks that each ends as it should, with every call that it made counted once.
func underLoad(t *testing.T, name string, turns int, happens func()) {
	t.Helper()
	o := start(t)
	w := newWorld(t, name)
	w.mayRun()
	var calls atomic.Int64
	begun := make(chan struct{}, turns)
	var wg sync.WaitGroup
	for i := range turns {
		name := fmt.Sprintf("t%d", i)
		s := o.running(w, name, func(s *v1alpha1.TurnSpec) {
			s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(10000)), TimeoutMs: new(int64(600_000))}
		})
		wg.Go(func() {
			for n := range 100 {
				if r := invoke(t, s, fmt.Sprint(n)); r.Status != contract.StatusSucceeded {
					t.Errorf("turn %s, call %d: %s %+v", name, n, r.Status, r.Error)
					return
				}
				calls.Add(1)
				if n == 0 {
					begun <- struct{}{}
				}
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // as an agent that thinks
			}
			// The report waits until it is stored.
			if err := s.Outcome(context.Background(), done("ok")); err != nil {
				t.Errorf("turn %s: %v", name, err)
			}
		})
	}
	for range turns {
		<-begun
	}
	happens()
	wg.Wait()
	for i := range turns {
		turn := w.ended(fmt.Sprintf("t%d", i))
		if turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Usage.ToolCalls != 100 {
			t.Errorf("%s: %s %+v, usage %+v", turn.Name, turn.State(), turn.Status.Error, turn.Status.Usage)
		}
	}
	// And the next one is none the worse.
	s := o.running(w, "next")
	must(t, s.Outcome(t.Context(), done("ok")))
	w.ended("next")
}

// TestAPausedEtcd answers nothing for 20 seconds. Calls under unbounded grants need
// no store; endings wait for it.
func TestAPausedEtcd(t *testing.T) {
	underLoad(t, "paused", 10, func() { server.processes.pause(t, "etcd", 20*time.Second) })
}

// TestAnAPIServerStartedAgain while turns run.
func TestAnAPIServerStartedAgain(t *testing.T) {
	underLoad(t, "restarted", 10, func() { server.processes.restart(t) })
}
