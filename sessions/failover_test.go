package sessions_test

import (
	"fmt"
	"testing"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/sessions"
)

// budget is how many calls the turn of these tests may make.
const budget = 4

func (f *fixture) request() contract.ExecutionRequest {
	req := f.world.Request()
	limit := int64(budget)
	req.Options = &contract.ExecutionOptions{MaxToolCalls: &limit}
	return req
}

// afterCrash is a turn that made two calls of which the checkpoint knows one, as
// the next manager finds it.
func (f *fixture) afterCrash(t *testing.T) *sessions.Session {
	t.Helper()
	s, err := f.registry.Open(t.Context(), subject, f.request())
	if err != nil {
		t.Fatal(err)
	}
	s.Ready(t.Context())
	s.Invoke(t.Context(), call("1", "files.read"))
	point := s.Execution().Checkpoint()
	s.Invoke(t.Context(), call("2", "files.read"))
	again, err := f.registry.Resume(t.Context(), subject, f.request(), point)
	if err != nil {
		t.Fatal(err)
	}
	again.Bind(sessions.Pod{Name: "p", UID: "pod-1"})
	return again
}

// allowed is how many of n more calls are let through.
func allowed(t *testing.T, s *sessions.Session, n int) int {
	t.Helper()
	out := 0
	for i := range n {
		r := s.Invoke(t.Context(), call(fmt.Sprintf("more-%d", i), "files.read"))
		switch {
		case r.Status == contract.StatusSucceeded:
			out++
		case r.Error.Code != contract.CodeToolCallLimitExceeded:
			t.Errorf("call %d: %+v", i, r.Error)
		}
	}
	return out
}

// TestAFailoverNeverGivesBackBudget: what a bridge sent before is spent.
func TestAFailoverNeverGivesBackBudget(t *testing.T) {
	t.Run("the bridge knows", func(t *testing.T) {
		s := newFixture(t).afterCrash(t)
		s.CallsBefore(2)
		if got := allowed(t, s, budget); got != budget-2 {
			t.Errorf("%d calls after the failover, want the %d that were left", got, budget-2)
		}
	})
	t.Run("a bridge lowers nothing", func(t *testing.T) {
		s := newFixture(t).afterCrash(t)
		s.CallsBefore(0)
		s.CallsBefore(-7)
		if got := allowed(t, s, budget); got != budget-1 {
			t.Errorf("%d calls, want what the checkpoint left: %d", got, budget-1)
		}
	})
	t.Run("a bridge that sent more than the budget", func(t *testing.T) {
		s := newFixture(t).afterCrash(t)
		s.CallsBefore(budget + 5)
		if got := allowed(t, s, 1); got != 0 {
			t.Errorf("%d calls beyond the budget", got)
		}
		if got := s.Execution().Usage().ToolCalls; got != budget {
			t.Errorf("%d calls were counted, want the budget's %d: the others were refused", got, budget)
		}
	})
	t.Run("nobody knows", func(t *testing.T) {
		// The bridge was started anew while there was no manager.
		s := newFixture(t).afterCrash(t)
		if err := s.Attach(sessions.Pod{Name: "p", UID: "pod-1"}); err != nil {
			t.Fatal(err)
		}
		if got := allowed(t, s, budget); got != 0 {
			t.Errorf("%d calls although nobody knows what was spent, want none", got)
		}
	})
	t.Run("without a failover", func(t *testing.T) {
		f := newFixture(t)
		s, err := f.registry.Open(t.Context(), subject, f.request())
		if err != nil {
			t.Fatal(err)
		}
		s.Ready(t.Context())
		s.CallsBefore(budget)
		if got := allowed(t, s, budget+1); got != budget {
			t.Errorf("%d calls, want the budget's %d: the manager has counted by itself", got, budget)
		}
	})
}

// TestAFailoverAssumesEffects: calls since the checkpoint may have had one.
func TestAFailoverAssumesEffects(t *testing.T) {
	s := newFixture(t).afterCrash(t)
	s.Execution().Cancel(t.Context(), "test")
	result, ended := s.Execution().Ended()
	if !ended || result.Error.Retryable == nil || *result.Error.Retryable {
		t.Errorf("ending %+v: a turn with a writing tool must not be called repeatable", result.Error)
	}
	f := newFixture(t)
	f.world.Grants.Set(kerneltest.Admission(), kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "read").Obj())
	s = f.afterCrash(t)
	s.Execution().Cancel(t.Context(), "test")
	if result, _ := s.Execution().Ended(); result.Error.Retryable == nil || !*result.Error.Retryable {
		t.Errorf("ending %+v: a turn that can only read is repeatable", result.Error)
	}
}
