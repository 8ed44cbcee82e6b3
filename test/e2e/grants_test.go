package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// TestManyTurnsShareABoundedGrant: all are created at once, and their calls together
// are as many as the Grant has uses.
func TestManyTurnsShareABoundedGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "shared")
	must(t, w.GrantRun(t.Context()))
	const turns, each, uses = 20, 3, 25
	must(t, w.BoundedGrant(t.Context(), "read", "files", []string{"Work", "atlas"}, uses, "read"))
	began := time.Now()
	for i := range turns {
		script := kit.Script{}
		for range each {
			script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
		}
		_, err := w.Turn(t.Context(), fmt.Sprintf("t%02d", i), script)
		must(t, err)
	}
	answers := map[string]int{}
	for i := range turns {
		turn, err := w.Until(t.Context(), fmt.Sprintf("t%02d", i), 2*patience, (*v1alpha1.Turn).IsFinished)
		must(t, err)
		report, err := kit.ReportOf(turn)
		must(t, err)
		for _, call := range report.Calls {
			answers[call.Status+" "+call.Code]++
		}
	}
	t.Logf("%d turns created at once ended within %s", turns, time.Since(began).Round(time.Second))
	// A Turn that is admitted when nothing is left has no such tool at all.
	refused := answers["denied grant_exhausted"] + answers["denied tool_unavailable"]
	if answers["succeeded "] != uses || refused != turns*each-uses || w.Uses(t.Context(), "read") != uses {
		t.Errorf("answers %v, %d uses counted; want exactly %d allowed", answers, w.Uses(t.Context(), "read"), uses)
	}
}

// TestAGrantExpiresInTheMiddle of a turn, which goes on without it.
func TestAGrantExpiresInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "expiring")
	must(t, w.GrantRun(t.Context()))
	// Late enough for a busy machine to have begun, and before the last call.
	grant := w.ExpiringGrant("hour", "files", []string{"Work", "atlas"}, time.Now().Add(75*time.Second), "read")
	must(t, cluster.Client.Create(t.Context(), grant))
	script := kit.Script{PauseSeconds: 8}
	for range 11 {
		script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
	}
	_, err := w.Turn(t.Context(), "t", script, calls(len(script.Calls)))
	must(t, err)
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	report, err := kit.ReportOf(turn)
	must(t, err)
	first, last := report.Calls[0], report.Calls[len(report.Calls)-1]
	if turn.State() != v1alpha1.TurnStateSucceeded || first.IsError || last.Status != "denied" {
		t.Errorf("%s %s; the first call %s %s, the last %s %s", turn.State(), errorOf(turn), first.Status, first.Code, last.Status, last.Code)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(grant), grant)
		c := v1alpha1.FindCondition(grant.Status.Conditions, v1alpha1.GrantReady)
		return c != nil && c.Reason == string(v1alpha1.GrantReasonExpired), err
	})
	if err != nil {
		t.Errorf("the Grant does not say that it has expired: %+v", grant.Status.Conditions)
	}
}
