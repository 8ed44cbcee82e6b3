package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// countingLock counts what reaches the API server.
type countingLock struct {
	resourcelock.Interface
	writes int
	err    error
}

func (*countingLock) Identity() string { return "me" }

func (l *countingLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.writes++
	return l.err
}

func (l *countingLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	l.writes++
	return l.err
}

func TestRenewalsAreSpared(t *testing.T) {
	now := time.Unix(0, 0)
	inner := &countingLock{}
	lock := &sparingLock{Interface: inner, every: 2 * time.Second, clock: func() time.Time { return now }}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 12}
	step := func(what string, record resourcelock.LeaderElectionRecord, writes int) {
		t.Helper()
		before := inner.writes
		if err := lock.Update(t.Context(), record); !errors.Is(err, inner.err) {
			t.Errorf("%s: %v", what, err)
		}
		if got := inner.writes - before; got != writes {
			t.Errorf("%s: %d writes, want %d", what, got, writes)
		}
	}
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	now = now.Add(500 * time.Millisecond)
	step("a renewal soon after", mine, 0)
	now = now.Add(1500 * time.Millisecond)
	step("a renewal when it is time", mine, 1)
	step("a release at once", resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}, 1)
	step("taking it again at once", mine, 1)
	taken := mine
	taken.LeaderTransitions++
	step("taking it over from another", taken, 1)
	inner.err = errors.New("away")
	now = now.Add(2 * time.Second)
	step("a renewal that fails", taken, 1)
	step("and its repeat", taken, 1)
}

// The lease's own timeout must not become everybody's: it would cut every watch.
func TestTheLeasesClientIsItsOwn(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := leaseLock(config, "ns", 12*time.Second); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "" {
		t.Errorf("the manager's configuration was changed: timeout %s, agent %q", config.Timeout, config.UserAgent)
	}
}

// Two leaders at once: the one that cannot renew any more must have stopped before
// another may take the lease, counted from the last renewal that was written.
func TestALeaderStopsBeforeTheNextBegins(t *testing.T) {
	for _, duration := range []time.Duration{3 * time.Second, 12 * time.Second, time.Minute} {
		believes := writeEvery(duration) + renewDeadline(duration)
		if margin := duration - believes; margin < duration/6 {
			t.Errorf("a lease of %s: its holder may go on for %s after the last renewal, %s before another begins; want a sixth of it",
				duration, believes, margin)
		}
	}
}
