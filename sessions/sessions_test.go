package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/sessions"
)

// fixture is a registry over the kernel's test world.
type fixture struct {
	world    *kerneltest.World
	registry *sessions.Registry
	changes  atomic.Int64
	changed  chan struct{}
	runs     atomic.Int64
	block    chan struct{} // when set, a handler waits for it
	entered  chan struct{} // says that a handler runs
}

var subject = sessions.Subject{
	Key: sessions.Key{Namespace: kerneltest.NamespaceID, Turn: "t"}, UID: "uid-1", Harness: "custom",
	CallTimeout: time.Minute, StartTimeout: 2 * time.Minute,
}

func newFixture(t *testing.T, more ...contract.Grant) *fixture {
	t.Helper()
	f := &fixture{changed: make(chan struct{}, 1024), entered: make(chan struct{}, 1024)}
	work := kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "*").Obj()
	f.world = kerneltest.New(append([]contract.Grant{kerneltest.Admission(), kerneltest.Escalation(), work}, more...)...)
	f.world.Options.Tools = []kernel.Tool{f.tool("read", contract.ClassRead), f.tool("delete", contract.ClassWrite)}
	f.registry = sessions.New(sessions.Options{
		Kernel: f.world.Kernel(t),
		OnChange: func(sessions.Key) {
			f.changes.Add(1)
			f.changed <- struct{}{}
		},
	})
	return f
}

// tool counts its runs, waits while the fixture blocks, and answers its count.
func (f *fixture) tool(verb string, class contract.ReadWrite) kernel.Tool {
	return kernel.Tool{
		Definition: kerneltest.Definition(verb, class),
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: verb}, err
		},
		Handle: func(ctx context.Context, _ kernel.ToolInvocation) (kernel.Output, error) {
			n := f.runs.Add(1)
			f.entered <- struct{}{}
			if f.block != nil {
				select {
				case <-f.block:
				case <-ctx.Done():
					return kernel.Output{}, ctx.Err()
				}
			}
			return kernel.Output{Value: json.RawMessage(strconv.FormatInt(n, 10))}, nil
		},
	}
}

func (f *fixture) open(t *testing.T) *sessions.Session {
	t.Helper()
	s, err := f.registry.Open(t.Context(), subject, f.world.Request())
	if err != nil {
		t.Fatal(err)
	}
	if result, ended := s.Execution().Ended(); ended {
		t.Fatalf("refused: %+v", result.Error)
	}
	return s
}

func call(id, tool string) bridge.InvokeRequest {
	return bridge.InvokeRequest{CallID: id, Tool: tool, Arguments: contract.Object(`{"path":["Work"]}`)}
}

// persist plays the controller: it stores whatever state comes up until the test ends.
func (f *fixture) persist(t *testing.T, s *sessions.Session) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-f.changed:
				s.Persisted(s.State().Revision)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

func TestOnlyTheBoundPodAttaches(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	code := func(err error) string {
		var e *bridge.Error
		if !errors.As(err, &e) {
			return ""
		}
		return e.Code
	}
	first := sessions.Pod{Name: "p", UID: "pod-1"}
	if got := code(s.Attach(first)); got != bridge.CodeTurnNotReady {
		t.Errorf("before a pod is stored: %q, want %q", got, bridge.CodeTurnNotReady)
	}
	if c := s.State().Candidate; c == nil || *c != first {
		t.Errorf("candidate: %+v, want %+v", c, first)
	}
	s.Bind(first)
	if err := s.Attach(first); err != nil {
		t.Errorf("the bound pod: %v", err)
	}
	s.Bind(sessions.Pod{Name: "p", UID: "pod-2"})
	if got := code(s.Attach(sessions.Pod{Name: "p", UID: "pod-2"})); got != bridge.CodePodNotBound {
		t.Errorf("another pod: %q, want %q", got, bridge.CodePodNotBound)
	}
	if !s.Bound("pod-1") || s.Bound("pod-2") || s.Bound("") {
		t.Error("the binding moved")
	}
	s.Execution().Cancel(t.Context(), "test")
	if got := code(s.Attach(first)); got != bridge.CodeTurnEnded {
		t.Errorf("after the end: %q, want %q", got, bridge.CodeTurnEnded)
	}
}

func TestARejectedCandidateMakesRoom(t *testing.T) {
	s := newFixture(t).open(t)
	_ = s.Attach(sessions.Pod{Name: "a", UID: "1"})
	_ = s.Attach(sessions.Pod{Name: "b", UID: "2"})
	if c := s.State().Candidate; c == nil || c.UID != "1" {
		t.Fatalf("candidate %+v, want the first", c)
	}
	s.Reject("2")
	s.Reject("1")
	_ = s.Attach(sessions.Pod{Name: "b", UID: "2"})
	if c := s.State().Candidate; c == nil || c.UID != "2" {
		t.Errorf("candidate %+v, want the second", c)
	}
}

func TestACallIDRunsOnce(t *testing.T) {
	f := newFixture(t)
	f.block = make(chan struct{})
	s := f.open(t)
	s.Ready(t.Context())
	const repeats = 16
	results := make(chan contract.ToolResult, repeats)
	var wg sync.WaitGroup
	for range repeats {
		wg.Go(func() { results <- s.Invoke(t.Context(), call("c-1", "files.delete")) })
	}
	close(f.block)
	wg.Wait()
	close(results)
	for r := range results {
		if r.Status != contract.StatusSucceeded || string(r.Output) != "1" || r.CallID != "c-1" {
			t.Errorf("a repeat got %+v", r)
		}
	}
	if n := f.runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
	if r := s.Invoke(t.Context(), call("c-2", "files.delete")); string(r.Output) != "2" {
		t.Errorf("another id: %+v", r)
	}
}

func TestALostRepeatableCallMayRunAgain(t *testing.T) {
	for tool, want := range map[string]int64{"files.read": 2, "files.delete": 1} {
		t.Run(tool, func(t *testing.T) {
			f := newFixture(t)
			f.block = make(chan struct{})
			s := f.open(t)
			s.Ready(t.Context())
			ctx, cancel := context.WithCancel(t.Context())
			lost := make(chan contract.ToolResult)
			go func() { lost <- s.Invoke(ctx, call("c", tool)) }()
			<-f.entered
			cancel()
			<-lost
			close(f.block)
			s.Invoke(t.Context(), call("c", tool))
			if n := f.runs.Load(); n != want {
				t.Errorf("the handler ran %d times, want %d", n, want)
			}
		})
	}
}

func TestAnOutcomeWaitsUntilItIsStored(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	s.Ready(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Outcome(ctx, bridge.Outcome{Started: true, Initialized: true}); !errors.Is(err, context.Canceled) {
		t.Fatalf("nothing was stored, yet: %v", err)
	}
	f.persist(t, s)
	// The report comes again, with something else in it: the first one counts.
	if err := s.Outcome(t.Context(), bridge.Outcome{Started: true, ExitCode: 3}); err != nil {
		t.Fatalf("stored, yet: %v", err)
	}
	result := s.State().Result
	if result == nil || result.Status != contract.StatusSucceeded {
		t.Errorf("result %+v, want the first report's success", result)
	}
}

// TestAnEndingThatIsStoredIsEnough: the controller may see the ending, store it and
// forget the session before the report that caused it begins to wait.
func TestAnEndingThatIsStoredIsEnough(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	s.Ready(t.Context())
	report := bridge.Outcome{Started: true, Initialized: true}
	s.Execution().Finish(t.Context(), sessions.EnvelopeOutcome(report, false))
	s.Persisted(s.State().Revision)
	f.registry.Forget(t.Context(), subject.Key)
	if err := s.Outcome(t.Context(), report); err != nil {
		t.Errorf("the ending is stored, yet: %v", err)
	}
}

func TestOutOfMemoryHasAnErrorOfItsOwn(t *testing.T) {
	o := sessions.EnvelopeOutcome(bridge.Outcome{Started: true, Initialized: true, ExitCode: 137, OOMKilled: true}, false)
	if o.Error == nil || o.Error.Code != sessions.CodeHarnessExited || !strings.Contains(o.Error.Message, "OOMKilled") ||
		string(o.Error.Details) != `{"exitCode":137,"reason":"OOMKilled"}` {
		t.Errorf("%+v", o.Error)
	}
}

func TestAnEscalationWaitsUntilItIsStored(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	s.Ready(t.Context())
	ask := bridge.InvokeRequest{CallID: "ask", Tool: contract.EscalateTool, Arguments: contract.Object(`{"reason":"may I?"}`)}
	for len(f.changed) > 0 {
		<-f.changed // what opening and starting had to say
	}
	answer := make(chan contract.ToolResult, 1)
	go func() { answer <- s.Invoke(t.Context(), ask) }()
	<-f.changed
	if e := s.Execution().Checkpoint().Escalation; e == nil || e.Reason != "may I?" {
		t.Errorf("nothing to store yet: %+v", e)
	}
	select {
	case r := <-answer:
		t.Fatalf("answered %+v before it was stored", r)
	default:
	}
	s.Persisted(s.State().Revision)
	if r := <-answer; r.Status != contract.StatusSucceeded {
		t.Errorf("answered %+v once it was stored", r)
	}
	if r := s.Invoke(t.Context(), call("late", "files.read")); r.Error == nil || r.Error.Code != contract.CodeEscalationPending {
		t.Errorf("a call after the ask: %+v", r)
	}
}

func TestForgettingReleasesWaiters(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	s.Ready(t.Context())
	waiting := make(chan error)
	go func() { waiting <- s.Outcome(t.Context(), bridge.Outcome{Started: true, Initialized: true}) }()
	<-s.Done()
	f.registry.Forget(t.Context(), subject.Key)
	if err := <-waiting; !errors.Is(err, sessions.ErrAbandoned) {
		t.Errorf("%v, want ErrAbandoned", err)
	}
	if found, _ := f.registry.ByTurn(t.Context(), subject.Key); found != nil || f.registry.Len() != 0 {
		t.Error("the session is still there")
	}
}

func TestResumedTurnKeepsCountsAndDropsGrants(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	s.Ready(t.Context())
	s.Invoke(t.Context(), call("1", "files.read"))
	point := s.Execution().Checkpoint()
	again, err := f.registry.Resume(t.Context(), subject, f.world.Request(), point)
	if err != nil {
		t.Fatal(err)
	}
	if result, ended := again.Execution().Ended(); ended {
		t.Fatalf("not resumed: %+v", result.Error)
	}
	if u := again.Execution().Usage(); u.ToolCalls != 1 {
		t.Errorf("usage %+v, want the one call", u)
	}
	if !again.Resumed() || s.Resumed() {
		t.Error("which of the two was resumed?")
	}
	// A grant that changed meanwhile is dropped, and with it a tool: the catalogue
	// no longer hashes to the same value, so the turn fails.
	f.world.Grants.Set(kerneltest.Admission(), kerneltest.Escalation(),
		kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "read").Obj())
	lost, err := f.registry.Resume(t.Context(), subject, f.world.Request(), point)
	if err != nil {
		t.Fatal(err)
	}
	if result, ended := lost.Execution().Ended(); !ended || result.Error.Code != contract.CodeCatalogChanged {
		t.Errorf("resumed under another grant: %+v", result)
	}
}

func TestAnExecutionIDIsOneTurns(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	thief := subject
	thief.Key.Turn, thief.UID = "thief", "uid-2"
	if _, err := f.registry.Open(t.Context(), thief, f.world.Request()); !errors.Is(err, sessions.ErrExecutionTaken) {
		t.Fatalf("the id was taken over: %v", err)
	}
	if found, _ := f.registry.ByExecution(t.Context(), subject.Key.Namespace, f.world.Request().ExecutionID); found != s {
		t.Error("the id leads to another session")
	}
	f.registry.Forget(t.Context(), subject.Key)
	if _, err := f.registry.Open(t.Context(), thief, f.world.Request()); err != nil {
		t.Errorf("the id is free again, yet: %v", err)
	}
}

func TestEnvelopeOutcome(t *testing.T) {
	ok := bridge.Outcome{Started: true, Initialized: true, Output: []byte("done"), OutputSize: 4}
	for name, c := range map[string]struct {
		outcome bridge.Outcome
		json    bool
		code    string
		output  string
		says    string
	}{
		"success":            {outcome: ok, output: `"done"`},
		"not started":        {outcome: bridge.Outcome{Message: "no such file"}, code: sessions.CodeHarnessNotStarted},
		"exit code":          {outcome: bridge.Outcome{Started: true, Initialized: true, ExitCode: 2}, code: sessions.CodeHarnessExited},
		"never connected":    {outcome: bridge.Outcome{Started: true}, code: sessions.CodeHarnessExited},
		"JSON":               {outcome: bridge.Outcome{Started: true, Initialized: true, Output: []byte(`{"a":1}`), OutputSize: 7}, json: true, output: `{"a":1}`},
		"not JSON":           {outcome: ok, json: true, code: contract.CodeInvalidRuntimeOutcome},
		"JSON that was cut":  {outcome: bridge.Outcome{Started: true, Initialized: true, Output: []byte(`[1]`), OutputSize: 9}, json: true, code: contract.CodeInvalidRuntimeOutcome, says: "printed 9 bytes"},
		"not UTF-8, as text": {outcome: bridge.Outcome{Started: true, Initialized: true, Output: []byte{0xff}, OutputSize: 1}, output: `"\ufffd"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := sessions.EnvelopeOutcome(c.outcome, c.json)
			code := ""
			if got.Error != nil {
				code = got.Error.Code
				if !strings.Contains(got.Error.Message, c.says) {
					t.Errorf("message %q, want %q in it", got.Error.Message, c.says)
				}
			}
			if code != c.code || (c.output != "" && string(got.Output) != c.output) {
				t.Errorf("code %q output %s, want %q %s", code, got.Output, c.code, c.output)
			}
		})
	}
}
