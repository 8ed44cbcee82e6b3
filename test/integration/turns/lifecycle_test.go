package turns

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
)

func invoke(t *testing.T, s *sessions.Session, id string) contract.ToolResult {
	t.Helper()
	return s.Invoke(t.Context(), bridge.InvokeRequest{CallID: id, Tool: "files.list", Arguments: list})
}

func code(r contract.ToolResult) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// running is a Turn whose bridge is ready.
func (o *operator) running(w *world, name string, change ...func(*v1alpha1.TurnSpec)) *sessions.Session {
	w.t.Helper()
	w.turn(name, change...)
	s := o.session(w, w.until(name, hasPod))
	s.Ready(context.Background())
	return s
}

// TestTwentyTurnsShareABoundedGrant: the calls of all of them together are as many
// as the Grant has uses.
func TestTwentyTurnsShareABoundedGrant(t *testing.T) {
	o := start(t)
	w := newWorld(t, "shared")
	w.grant("run", "sharedos.execution", []v1alpha1.PathSegment{"agent", "bot"}, "invoke")
	const turns, each, uses = 20, 3, 25
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list", func(s *v1alpha1.GrantSpec) {
		s.Constraints = &v1alpha1.GrantConstraints{MaxUses: new(int64(uses))}
	})
	open := make([]*sessions.Session, turns)
	for i := range turns {
		open[i] = o.running(w, fmt.Sprintf("t%d", i))
	}
	var mu sync.Mutex
	answers := map[string]int{}
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() {
			for n := range each {
				r := invoke(t, open[i], fmt.Sprintf("%d-%d", i, n))
				mu.Lock()
				answers[string(r.Status)+" "+code(r)]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if answers["succeeded "] != uses || answers["denied "+contract.CodeGrantExhausted] != turns*each-uses {
		t.Errorf("answers %v; want exactly %d allowed", answers, uses)
	}
	grant := &v1alpha1.Grant{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "list"}, grant)
		c := v1alpha1.FindCondition(grant.Status.Conditions, v1alpha1.GrantReady)
		return c != nil && c.Reason == string(v1alpha1.GrantReasonExhausted), err
	})
	if err != nil || grant.Status.Uses != uses || *grant.Status.RemainingUses != 0 {
		t.Errorf("the Grant says %+v: %v", grant.Status, err)
	}
}

// TestAGrantExpiresInTheMiddle: its calls are denied from then on, its condition
// moves at that moment and not before, and the turn goes on.
func TestAGrantExpiresInTheMiddle(t *testing.T) {
	o := start(t)
	w := newWorld(t, "expiry")
	w.grant("run", "sharedos.execution", []v1alpha1.PathSegment{"agent", "bot"}, "invoke")
	expires := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list", func(s *v1alpha1.GrantSpec) {
		s.Constraints = &v1alpha1.GrantConstraints{ExpiresAt: v1alpha1.Timestamp(expires.Format(time.RFC3339))}
	})
	s := o.running(w, "t")
	if r := invoke(t, s, "before"); r.Status != contract.StatusSucceeded && time.Now().Before(expires) {
		t.Fatalf("before it expires: %+v", r.Error)
	}
	grant := &v1alpha1.Grant{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "list"}, grant)
		c := v1alpha1.FindCondition(grant.Status.Conditions, v1alpha1.GrantReady)
		return c != nil && c.Reason == string(v1alpha1.GrantReasonExpired), err
	})
	must(t, err)
	if late := time.Since(expires); late < 0 || late > 3*time.Second {
		t.Errorf("the condition moved %s after the moment", late)
	}
	if r := invoke(t, s, "after"); r.Status != contract.StatusDenied {
		t.Errorf("a call after it expired: %s", r.Status)
	}
	must(t, s.Outcome(t.Context(), done("still here")))
	if turn := w.ended("t"); turn.State() != v1alpha1.TurnStateSucceeded {
		t.Errorf("%s %+v", turn.State(), turn.Status.Error)
	}
}

// TestAGrantIsRevokedInTheMiddle: a turn keeps what it was admitted with, whoever
// carries it on, and the next has it no more.
func TestAGrantIsRevokedInTheMiddle(t *testing.T) {
	o := start(t)
	w := newWorld(t, "revocation")
	w.mayRun()
	s := o.running(w, "t")
	grant := &v1alpha1.Grant{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "list"}, grant))
	grant.Spec.Revoked = true
	must(t, server.client.Update(t.Context(), grant))
	if r := invoke(t, s, "1"); r.Status != contract.StatusSucceeded {
		t.Errorf("the running turn: %+v", r.Error)
	}
	next := o.running(w, "next")
	if r := invoke(t, next, "1"); code(r) != contract.CodeToolUnavailable {
		t.Errorf("the next turn: %s %s", r.Status, code(r))
	}
	// Another manager takes over: the Grant is of another generation now, so the
	// turn that had it loses it.
	o.stop()
	start(t)
	if turn := w.ended("t"); turn.Status.Error == nil || turn.Status.Error.Code != contract.CodeCatalogChanged {
		t.Errorf("after the failover: %s %+v", turn.State(), turn.Status.Error)
	}
}

// TestTheBudgetIsSpent: calls beyond it are denied, and the turn goes on.
func TestTheBudgetIsSpent(t *testing.T) {
	o := start(t)
	w := newWorld(t, "budget")
	w.mayRun()
	s := o.running(w, "t", func(s *v1alpha1.TurnSpec) { s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(2))} })
	for i, want := range []string{"", "", contract.CodeToolCallLimitExceeded, contract.CodeToolCallLimitExceeded} {
		if r := invoke(t, s, fmt.Sprint(i)); code(r) != want {
			t.Errorf("call %d: %s %q, want %q", i, r.Status, code(r), want)
		}
	}
	must(t, s.Outcome(t.Context(), done("enough")))
	if turn := w.ended("t"); turn.State() != v1alpha1.TurnStateSucceeded || turn.Status.Usage.ToolCalls != 2 || turn.Status.Usage.Denied != 2 {
		t.Errorf("%s, usage %+v", turn.State(), turn.Status.Usage)
	}
}

// TestALargeOutput of 5 MB is cut, and its size and digest are those of all of it.
func TestALargeOutput(t *testing.T) {
	o := start(t)
	w := newWorld(t, "output")
	w.mayRun()
	s := o.running(w, "t")
	all := bytes.Repeat([]byte("0123456789abcdef"), 5_000_000/16)
	sum := sha256.Sum256(all)
	must(t, s.Outcome(t.Context(), bridge.Outcome{
		Started: true, Initialized: true, Output: all[:bridge.MaxOutputBytes], OutputSize: int64(len(all)), OutputSHA256: hex.EncodeToString(sum[:]),
	}))
	turn := w.ended("t")
	out := turn.Status.TurnOutput
	if turn.State() != v1alpha1.TurnStateSucceeded || out.Output != nil || !out.OutputTruncated || *out.OutputSize != int64(len(all)) ||
		string(out.OutputSHA256) != hex.EncodeToString(sum[:]) || out.OutputRef == nil {
		t.Fatalf("%s, output truncated %t, size %v, digest %s, ref %v", turn.State(), out.OutputTruncated, out.OutputSize, out.OutputSHA256, out.OutputRef)
	}
	record := &corev1.ConfigMap{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: string(out.OutputRef.Name)}, record))
	if got := record.Data[out.OutputRef.Key]; got != string(all[:v1alpha1.MaxReferencedOutput]) {
		t.Errorf("%d bytes are kept, want the first %d", len(got), v1alpha1.MaxReferencedOutput)
	}
	if len(record.OwnerReferences) != 1 || record.OwnerReferences[0].UID != turn.UID {
		t.Error("the output outlives its Turn")
	}
}

// TestCallsAfterTheEnd are refused, whoever makes them.
func TestCallsAfterTheEnd(t *testing.T) {
	o := start(t)
	w := newWorld(t, "late-calls")
	w.mayRun()
	s := o.running(w, "t")
	w.cancelled("t")
	if r := invoke(t, s, "late"); code(r) != contract.CodeTurnEnded {
		t.Errorf("a late call: %s %q", r.Status, code(r))
	}
	if turn := w.ended("t"); turn.Status.Usage.ToolCalls != 0 {
		t.Errorf("usage %+v", turn.Status.Usage)
	}
}

// TestCancelAndDeleteInEveryState: each ends as cancelled, and is gone when deleted.
func TestCancelAndDeleteInEveryState(t *testing.T) {
	o := start(t)
	w := newWorld(t, "states")
	w.mayRun()
	states := map[string]func(w *world, name string){
		"pending": func(w *world, name string) {
			w.turn(name, func(s *v1alpha1.TurnSpec) { s.Harness = "none" })
			w.until(name, has(v1alpha1.TurnConditionAdmitted, v1alpha1.TurnReasonHarnessNotReady, ""))
		},
		"admitted": func(w *world, name string) {
			w.turn(name, external)
			w.until(name, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateAdmitted })
		},
		"starting": func(w *world, name string) { w.turn(name); w.until(name, hasPod) },
		"running": func(w *world, name string) {
			o.running(w, name)
			w.until(name, func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
		},
		"finished": func(w *world, name string) {
			s := o.running(w, name)
			must(w.t, s.Outcome(w.t.Context(), done("ok")))
			w.ended(name)
		},
	}
	for state, reach := range states {
		t.Run("cancel/"+state, func(t *testing.T) {
			w := &world{t, w.namespace}
			name := "cancel-" + state
			reach(w, name)
			want := v1alpha1.TurnStateCancelled
			if state == "finished" {
				want = v1alpha1.TurnStateSucceeded
			}
			turn := w.until(name, func(*v1alpha1.Turn) bool { return true })
			before := turn.DeepCopy()
			turn.Spec.Cancel = true
			must(t, server.client.Patch(t.Context(), turn, client.MergeFrom(before)))
			if got := w.ended(name); got.State() != want {
				t.Errorf("%s, want %s", got.State(), want)
			}
			w.podEnds(turn)
		})
		t.Run("delete/"+state, func(t *testing.T) {
			w := &world{t, w.namespace}
			name := "delete-" + state
			reach(w, name)
			turn := w.until(name, func(*v1alpha1.Turn) bool { return true })
			must(t, server.client.Delete(t.Context(), turn))
			w.gone(turn)
			w.podEnds(turn)
		})
	}
}

// podEnds waits until the Turn's pod, if it has one, is gone or going.
func (w *world) podEnds(turn *v1alpha1.Turn) {
	w.t.Helper()
	if turn.Status.Pod == nil || turn.Status.Outcome == v1alpha1.TurnSucceeded {
		return
	}
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}, pod)
		return apierrors.IsNotFound(err) || !pod.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
	})
	if err != nil {
		w.t.Errorf("the pod of %s goes on", turn.Name)
	}
}

// gone waits until the Turn does not exist any more.
func (w *world) gone(turn *v1alpha1.Turn) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Get(ctx, client.ObjectKeyFromObject(turn), &v1alpha1.Turn{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		w.t.Errorf("the Turn %s is stuck", turn.Name)
	}
}

// TestANamespaceIsDeleted with its Turns in any state: nothing can be stored in it any
// more, and no Turn keeps it from going.
func TestANamespaceIsDeleted(t *testing.T) {
	o := start(t)
	w := newWorld(t, "leaving")
	w.mayRun()
	w.turn("admitted", external)
	w.until("admitted", func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateAdmitted })
	w.turn("starting")
	w.until("starting", hasPod)
	s := o.running(w, "running", func(s *v1alpha1.TurnSpec) { s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(500))} })
	for i := range 300 { // more than the status lists
		invoke(t, s, fmt.Sprint(i))
	}
	namespace := &corev1.Namespace{}
	namespace.Name = w.namespace
	must(t, server.client.Delete(t.Context(), namespace))
	if err := server.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: w.meta("late")}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Fatalf("the namespace still takes objects: %v", err)
	}
	// There is no controller here that deletes what is in it.
	for _, name := range []string{"admitted", "starting", "running"} {
		turn := &v1alpha1.Turn{ObjectMeta: w.meta(name)}
		must(t, server.client.Delete(t.Context(), turn))
		w.gone(turn)
	}
}

// TestAFinishedTurnGoesAfterItsTime, and not before.
func TestAFinishedTurnGoesAfterItsTime(t *testing.T) {
	o := start(t)
	w := newWorld(t, "ttl")
	w.mayRun()
	s := o.running(w, "short", func(s *v1alpha1.TurnSpec) { s.TTLSecondsAfterFinished = new(int32(1)) })
	must(t, s.Outcome(t.Context(), done("ok")))
	s = o.running(w, "long", func(s *v1alpha1.TurnSpec) { s.TTLSecondsAfterFinished = new(int32(3600)) })
	must(t, s.Outcome(t.Context(), done("ok")))
	ended := w.ended("short")
	w.gone(ended)
	if after := time.Since(ended.Status.CompletedAt.Time); after < time.Second {
		t.Errorf("the Turn went %s after its end, want a second", after)
	}
	if turn := w.until("long", func(*v1alpha1.Turn) bool { return true }); !turn.DeletionTimestamp.IsZero() {
		t.Error("the other went too")
	}
}
