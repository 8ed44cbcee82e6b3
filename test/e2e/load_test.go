package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// callEvery is the pause between two calls of a Turn under load.
const callEvery = time.Second

// probeEvery is the pause between two calls of the probe: as much as a pause can seem
// longer than it was.
const probeEvery = 200 * time.Millisecond

// load are Turns that append a line of their own to a file of their own, again and
// again, and one, the probe, that reads under a bounded Grant: the API server counts
// what it was allowed.
type load struct {
	w     *kit.World
	turns []string
	each  int // calls of a Turn
}

// startLoad starts n Turns and waits until all run.
func startLoad(t *testing.T, w *kit.World, n, each int) *load {
	t.Helper()
	began := time.Now()
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "work", "files", []string{"Work", "atlas"}, "append"))
	must(t, w.BoundedGrant(t.Context(), "probe", "files", []string{"Work", "atlas"}, 1_000_000, "read"))
	l := &load{w: w, turns: make([]string, n), each: each}
	for i := range l.turns {
		l.turns[i] = fmt.Sprintf("t%02d", i)
		script := kit.Script{PauseSeconds: callEvery.Seconds()}
		for c := range each {
			script.Calls = append(script.Calls, kit.Call{Tool: "files.append", Arguments: map[string]any{
				"path": l.file(i), "content": l.line(c),
			}})
		}
		_, err := w.Turn(t.Context(), l.turns[i], script, calls(each))
		must(t, err)
	}
	for _, name := range l.turns {
		_, err := w.Until(t.Context(), name, 10*time.Minute, func(t *v1alpha1.Turn) bool {
			return t.State() == v1alpha1.TurnStateRunning || t.IsFinished()
		})
		must(t, err)
	}
	l.probe(t)
	t.Logf("%d turns run after %s", n, time.Since(began).Round(time.Second))
	return l
}

// calls lets a Turn make so many calls, in ten minutes, and start as slowly as many
// pods at once do.
func calls(n int) func(*v1alpha1.TurnSpec) {
	return func(s *v1alpha1.TurnSpec) {
		s.Options = &v1alpha1.ExecutionOptions{MaxToolCalls: new(int64(n)), TimeoutMs: new(int64(600_000))}
		s.StartTimeoutMs = new(int64(600_000))
	}
}

func (l *load) file(turn int) []string {
	return []string{"Work", "atlas", fmt.Sprintf("log-%02d.md", turn)}
}

func (l *load) line(call int) string { return fmt.Sprintf("call %03d\n", call) }

// probe starts the Turn that calls more often, and waits for its first call.
func (l *load) probe(t *testing.T) {
	t.Helper()
	n := int(time.Duration(l.each) * callEvery / probeEvery / 2)
	script := kit.Script{PauseSeconds: probeEvery.Seconds()}
	for range n {
		script.Calls = append(script.Calls, kit.Read("Work", "atlas", "status.md"))
	}
	_, err := l.w.Turn(t.Context(), "probe", script, calls(n))
	must(t, err)
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		return l.w.Uses(ctx, "probe") > 0, nil
	})
	must(t, err)
}

// watch watches how the probe's Grant is used. What it returns is the
// longest time so far during which no call was allowed; asking ends the watch.
func (l *load) watch(t *testing.T) func() time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	gaps := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		last, uses := time.Now(), int64(0)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			if now := l.w.Uses(ctx, "probe"); now > uses {
				longest, last, uses = max(longest, time.Since(last)), time.Now(), now
			}
			return false, nil
		})
		gaps <- longest
	}()
	longest := time.Duration(-1)
	stop := func() time.Duration {
		cancel()
		if longest < 0 {
			longest = (<-gaps).Round(time.Millisecond)
		}
		return longest
	}
	t.Cleanup(func() { stop() })
	return stop
}

// outcomes are the calls of many Turns as their harnesses saw them answered.
type outcomes struct {
	succeeded, failed int
	codes             []string
	// answered are the indexes of the calls that succeeded, by Turn.
	answered [][]int
}

// finish waits for all Turns. Each succeeds, having made all of its calls: whatever
// happened to the manager, its harness saw no more than a pause.
func (l *load) finish(t *testing.T) outcomes {
	t.Helper()
	out := outcomes{answered: make([][]int, len(l.turns))}
	for i, name := range l.turns {
		turn, err := l.w.Until(t.Context(), name, 8*time.Minute, (*v1alpha1.Turn).IsFinished)
		must(t, err)
		if turn.Status.Outcome != v1alpha1.TurnSucceeded {
			t.Errorf("turn %s: %s %+v, although its harness only saw a pause", name, turn.State(), turn.Status.Error)
			continue
		}
		report, err := l.w.Report(t.Context(), turn)
		must(t, err)
		if len(report.Calls) != l.each || turn.Status.Usage == nil || turn.Status.Usage.ToolCalls != int64(l.each) {
			t.Errorf("turn %s: %d calls, usage %+v, want %d", name, len(report.Calls), turn.Status.Usage, l.each)
		}
		for c, call := range report.Calls {
			if !call.IsError {
				out.succeeded++
				out.answered[i] = append(out.answered[i], c)
				continue
			}
			out.failed++
			if !slices.Contains(out.codes, call.Code) {
				out.codes = append(out.codes, call.Code)
			}
		}
	}
	return out
}

func (o outcomes) noneFailed(t *testing.T) {
	t.Helper()
	if o.failed != 0 {
		t.Errorf("%d calls failed: %v; a harness may see a pause and no error", o.failed, o.codes)
	}
}

// truthful checks why calls failed.
func (o outcomes) truthful(t *testing.T) {
	t.Helper()
	for _, code := range o.codes {
		if code != "kernel_unavailable" {
			t.Errorf("a call failed with %q; only kernel_unavailable is true of a killed kernel", code)
		}
	}
}

// onceEach reads the files, with another Turn: each line is there at most once, and
// every line whose call was answered is there.
func (l *load) onceEach(t *testing.T, o outcomes) {
	t.Helper()
	script := kit.Script{}
	for i := range l.turns {
		script.Calls = append(script.Calls, kit.Call{Tool: "files.read", Arguments: map[string]any{"path": l.file(i)}})
	}
	_, err := l.w.Turn(t.Context(), "reader", script, calls(len(script.Calls)))
	must(t, err)
	turn, err := l.w.Finish(t.Context(), "reader")
	must(t, err)
	report, err := l.w.Report(t.Context(), turn)
	must(t, err)
	for i, call := range report.Calls {
		if call.IsError {
			t.Errorf("the file of turn %s cannot be read: %s", l.turns[i], call.Text)
			continue
		}
		for c := range l.each {
			n := strings.Count(call.Text, strings.TrimSpace(l.line(c)))
			if answered := slices.Contains(o.answered[i], c); n > 1 || n == 0 && answered {
				t.Errorf("turn %s: call %d ran %d times; it was answered with success: %t", l.turns[i], c, n, answered)
			}
		}
	}
}

// nothingLeft checks that no pod runs and no Secret is there.
func nothingLeft(t *testing.T, w *kit.World) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := cluster.Client.List(ctx, &pods, client.InNamespace(w.Namespace))
		return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending
		}), err
	})
	if err != nil {
		t.Errorf("pods outlive their turns: %v", err)
	}
	var secrets corev1.SecretList
	must(t, cluster.Client.List(t.Context(), &secrets, client.InNamespace(w.Namespace)))
	if len(secrets.Items) != 0 {
		t.Errorf("%d Secrets are left", len(secrets.Items))
	}
}
