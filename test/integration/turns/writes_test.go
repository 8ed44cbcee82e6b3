package turns

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// ledger counts the writes of one manager in one namespace, by what they wrote. In
// the others it may have work to finish that earlier tests left.
type ledger struct {
	next  http.RoundTripper
	in    string // of the paths
	total atomic.Int64
	last  atomic.Int64 // when the last request was made that is no watch
	mu    sync.Mutex
	by    map[string]int
}

// counting returns a configuration whose clients are counted, and the count of what
// they write in the world.
func counting(w *world) (*rest.Config, *ledger) {
	l := &ledger{by: map[string]int{}, in: "/namespaces/" + w.namespace + "/"}
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l })
	return config, l
}

// RoundTrip implements [http.RoundTripper].
func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		l.last.Store(time.Now().UnixNano())
	}
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && strings.Contains(r.URL.Path, l.in) {
		l.total.Add(1)
		l.mu.Lock()
		l.by[r.Method+" "+r.URL.Path]++
		l.mu.Unlock()
	}
	return l.next.RoundTrip(r)
}

func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.by)
}

// of is how many writes went to a path with that part.
func (l *ledger) of(part string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for request, times := range l.by {
		if strings.Contains(request, part) {
			n += times
		}
	}
	return int64(n)
}

// settle returns once the manager has made no request for a while.
func (l *ledger) settle(t *testing.T) {
	t.Helper()
	const quiet = 2 * time.Second
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*patience, true, func(context.Context) (bool, error) {
		return time.Since(time.Unix(0, l.last.Load())) > quiet, nil
	})
	must(t, err)
}

// TestARestartWritesNothing: a manager that starts on 1,000 settled objects leaves
// them alone.
func TestARestartWritesNothing(t *testing.T) {
	o := start(t)
	w := newWorld(t, "settled")
	w.mayRun()
	const grants, principals, harnesses, turns = 600, 200, 98, 100
	harness := &v1alpha1.Harness{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "h"}, harness))
	for i := range principals {
		w.create(&v1alpha1.Principal{ObjectMeta: w.meta(fmt.Sprintf("p%d", i)), Spec: v1alpha1.PrincipalSpec{
			Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, fmt.Sprintf("p%d", i)),
		}})
	}
	for i := range grants {
		w.grant(fmt.Sprintf("g%d", i), "files", []v1alpha1.PathSegment{"Home"}, "read")
	}
	for i := range harnesses {
		w.create(&v1alpha1.Harness{ObjectMeta: w.meta(fmt.Sprintf("h%d", i)), Spec: *harness.Spec.DeepCopy()})
	}
	for i := range turns {
		w.turn(fmt.Sprintf("t%d", i), func(s *v1alpha1.TurnSpec) { s.Purpose = "unlisted" })
	}
	for i := range turns {
		w.ended(fmt.Sprintf("t%d", i))
	}
	w.allReady()
	o.stop()

	config, writes := counting(w)
	second := startOn(t, config)
	writes.settle(t)
	if n := writes.total.Load(); n != 0 {
		t.Errorf("%d writes: %s", n, writes)
	}
	// That they were looked at shows in the next change, which is seen.
	s := second.running(w, "after")
	must(t, s.Outcome(t.Context(), done("ok")))
	w.ended("after")
	if writes.total.Load() == 0 {
		t.Error("the ledger counts nothing")
	}
}

// allReady waits until every object of the namespace has its condition.
func (w *world) allReady() {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 100*time.Millisecond, 2*patience, true, func(ctx context.Context) (bool, error) {
		var grants v1alpha1.GrantList
		var principals v1alpha1.PrincipalList
		var harnesses v1alpha1.HarnessList
		for _, list := range []client.ObjectList{&grants, &principals, &harnesses} {
			if err := server.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return false, err
			}
		}
		ready := true
		for i := range grants.Items {
			ready = ready && grants.Items[i].Status.ObservedGeneration != 0
		}
		for i := range principals.Items {
			ready = ready && principals.Items[i].Status.ObservedGeneration != 0
		}
		for i := range harnesses.Items {
			ready = ready && harnesses.Items[i].Status.ObservedGeneration != 0
		}
		return ready, nil
	})
	must(w.t, err)
}

// TestWritesOfCalls: a use of a bounded grant costs little more than one write, and
// a call under unbounded grants none.
func TestWritesOfCalls(t *testing.T) {
	w := newWorld(t, "writes")
	config, writes := counting(w)
	o := startOn(t, config)
	w.grant("run", "sharedos.execution", []v1alpha1.PathSegment{"agent", "bot"}, "invoke")
	const calls = 200
	w.grant("list", "files", []v1alpha1.PathSegment{"Work"}, "list")
	many := func(s *v1alpha1.TurnSpec) {
		s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(10000)), TimeoutMs: new(int64(600_000))}
	}
	s := o.running(w, "unbounded", many)
	w.until("unbounded", func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	writes.settle(t)
	before := writes.total.Load()
	began := time.Now()
	const more = 10 * calls // long enough for many looks at the Turn
	for i := range more {
		if i == calls {
			// A look at the Turn in between must not begin a round of looks and writes.
			turn := &v1alpha1.Turn{ObjectMeta: w.meta("unbounded")}
			must(t, server.client.Patch(t.Context(), turn, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"looked":"at"}}}`))))
		}
		if r := invoke(t, s, fmt.Sprint(i)); r.Status != contract.StatusSucceeded {
			t.Fatalf("call %d: %+v", i, r.Error)
		}
	}
	// The turn's counters are stored every five seconds, however many calls there are.
	checkpoints := int64(time.Since(began)/(5*time.Second)) + 1
	if n := writes.total.Load() - before; n > checkpoints {
		t.Errorf("%d unbounded calls cost %d writes: %s", more, n, writes)
	}
	// Nor does what refused calls needed, which is kept with the counters.
	writes.settle(t)
	before, began = writes.of("/turns/"), time.Now()
	for i := range calls {
		if r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: fmt.Sprint("denied-", i), Tool: "files.list", Arguments: home}); code(r) != contract.CodeNoMatchingGrant {
			t.Fatalf("call %d: %s %+v", i, r.Status, r.Error)
		}
	}
	writes.settle(t)
	checkpoints = int64(time.Since(began)/(5*time.Second)) + 1
	if n := writes.of("/turns/") - before; n > checkpoints {
		t.Errorf("%d refused calls cost %d writes of the Turn: %s", calls, n, writes)
	}
	must(t, s.Outcome(t.Context(), done("ok")))
	if got := len(w.ended("unbounded").Status.Refusals); got != v1alpha1.MaxRefusals {
		t.Errorf("%d of %d refused calls are listed, want %d", got, calls, v1alpha1.MaxRefusals)
	}

	grant := &v1alpha1.Grant{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "list"}, grant))
	grant.Spec.Constraints = &v1alpha1.GrantConstraints{MaxUses: new(int64(100000))}
	must(t, server.client.Update(t.Context(), grant))
	s = o.running(w, "bounded", many)
	w.until("bounded", func(t *v1alpha1.Turn) bool { return t.State() == v1alpha1.TurnStateRunning })
	writes.settle(t)
	before, began = writes.total.Load(), time.Now()
	for i := range calls {
		if r := invoke(t, s, fmt.Sprint(i)); r.Status != contract.StatusSucceeded {
			t.Fatalf("call %d: %+v", i, r.Error)
		}
	}
	writes.settle(t)
	checkpoints = int64(time.Since(began)/(5*time.Second)) + 1
	n := writes.total.Load() - before
	t.Logf("%d bounded uses, %d writes: %.2f each", calls, n, float64(n)/calls)
	if float64(n-checkpoints) > 1.3*calls {
		t.Errorf("%d bounded uses cost %d writes, want at most 1.3 each: %s", calls, n, writes)
	}
	must(t, s.Outcome(t.Context(), done("ok")))
}
