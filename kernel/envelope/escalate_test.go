package envelope_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func ask(id, arguments string) contract.ToolCall {
	return kerneltest.Call(id, "sharedos.escalate", arguments)
}

func TestEscalationLatches(t *testing.T) {
	t.Parallel()
	w, plane := world(t)
	var persisted []contract.Escalation
	x := start(t, w, envelope.Options{OnEscalation: func(_ context.Context, id string, e contract.Escalation) error {
		if id != "execution-1" {
			t.Errorf("persisted for %s", id)
		}
		persisted = append(persisted, e)
		return nil
	}})
	r := x.Invoke(t.Context(), ask("ask", `{"reason":"may I delete?","requestedAuthority":{"resource":{"namespace":"files","path":["Other"]},"action":"delete"}}`), nil)
	var output struct {
		Escalated    bool
		Reason, Note string
	}
	if err := json.Unmarshal(r.Output, &output); r.Status != "succeeded" || err != nil || !output.Escalated || output.Reason != "may I delete?" || output.Note == "" {
		t.Fatalf("answer = %s, %v, %+v", r.Output, err, r.Error)
	}
	if len(persisted) != 1 || persisted[0].Validate() != nil {
		t.Fatalf("persisted %+v", persisted)
	}
	for _, call := range []contract.ToolCall{read("c1"), ask("c2", `{"reason":"again"}`), kerneltest.Call("c3", "nonsense", `{}`)} {
		r := x.Invoke(t.Context(), call, nil)
		if r.Status != "denied" || codeOf(r.Error) != "escalation_pending" || *r.Error.Retryable {
			t.Errorf("%s after asking: %+v", call.Tool, r)
		}
	}
	if err := x.Escalate(t.Context(), envelope.Ask{Reason: "more"}); err == nil {
		t.Error("a second escalation was taken")
	}
	outcome := envelope.Outcome{Kind: envelope.OutcomeFailed, Error: &contract.ProtocolError{Code: "harness_exited_without_outcome", Message: "m", Details: contract.Object(`{"exitCode":3}`)}, Metadata: contract.Object(`{"model":"x"}`)}
	result := x.Finish(t.Context(), outcome)
	if result.Status != "escalated" || result.Error != nil || len(plane.Operations()) != 0 || len(persisted) != 1 {
		t.Fatalf("result = %s %+v, %d operations, %d latches", result.Status, result.Error, len(plane.Operations()), len(persisted))
	}
	e := result.Escalation
	if e.Reason != "may I delete?" || e.Reviewer != kerneltest.Alice() || e.Status != "pending" || !e.RequestedAt.Equal(kerneltest.Epoch) {
		t.Errorf("escalation = %+v", e)
	}
	if c := e.RequestedAuthority.Capabilities[0]; !cmp.Equal(c.Resource.Path, contract.Path{"Other"}) || c.Actions[0] != "delete" || e.RequestedAuthority.Requester != kerneltest.Actor() {
		t.Errorf("requested authority = %+v", e.RequestedAuthority)
	}
	want := `{"callsAfterEscalation":3,"harnessOutcome":{"code":"harness_exited_without_outcome","details":{"exitCode":3},"status":"failed"},"runtime":{"model":"x"}}`
	if string(result.Metadata) != want {
		t.Errorf("metadata = %s, want %s", result.Metadata, want)
	}
	if x.Usage().CallsAfterEscalation != 3 || x.Usage().ToolCalls != 0 {
		t.Errorf("usage = %+v", x.Usage())
	}
	wellRecorded(t, w, result)
	asked := 0
	for _, e := range w.Audit.Events() {
		if e.Type == audit.EscalationRequested {
			asked++
			if e.Outcome != audit.Escalated || e.OperationID != "ask" || e.RequestedAuthority == nil {
				t.Errorf("recorded %+v", e)
			}
		}
	}
	if asked != 1 {
		t.Errorf("%d escalations are on record", asked)
	}
}

func TestHowTheHarnessWindsDownIsKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(x *envelope.Execution, w *kerneltest.World)
		want string
	}{
		"completed": {func(x *envelope.Execution, _ *kerneltest.World) { x.Finish(context.Background(), completed(`{"a":1}`)) }, `"harnessOutcome":{"output":{"a":1},"status":"succeeded"}`},
		"deadline":  {func(_ *envelope.Execution, w *kerneltest.World) { w.Clock.Advance(time.Hour) }, `"harnessOutcome":{"code":"turn_cancelled","status":"cancelled"}`},
		"cancelled": {func(x *envelope.Execution, _ *kerneltest.World) { x.Cancel(context.Background(), "x") }, `"harnessOutcome":{"code":"turn_cancelled","status":"cancelled"}`},
		"malformed": {func(x *envelope.Execution, _ *kerneltest.World) { x.Finish(context.Background(), envelope.Outcome{}) }, `"code":"invalid_runtime_outcome"`},
		"escalates": {func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "again"}})
		}, `{"callsAfterEscalation":0}`},
	} {
		w, _ := world(t)
		x := start(t, w, envelope.Options{})
		if err := x.Escalate(t.Context(), envelope.Ask{Reason: "first"}); err != nil {
			t.Fatal(err)
		}
		tt.end(x, w)
		<-x.Done()
		r, _ := x.Ended()
		if r.Status != "escalated" || r.Escalation.Reason != "first" || !strings.Contains(string(r.Metadata), tt.want) {
			t.Errorf("%s: %s %+v %s", name, r.Status, r.Escalation, r.Metadata)
		}
		wellRecorded(t, w, r)
	}
}

func TestAskingBadly(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600)
	for name, tt := range map[string]struct {
		call contract.ToolCall
		code string
	}{
		"no reason":          {ask("c", `{}`), "invalid_tool_arguments"},
		"an empty reason":    {ask("c", `{"reason":""}`), "invalid_tool_arguments"},
		"two reasons":        {ask("c", `{"reason":"a","reason":"b"}`), "invalid_tool_arguments"},
		"a grant inside":     {ask("c", `{"reason":"a","grant":{"id":"g"}}`), "invalid_tool_arguments"},
		"an owner inside":    {ask("c", `{"reason":"a","requestedAuthority":{"resource":{"namespace":"f","path":[],"owner":{"kind":"human","userId":"bob"}},"action":"x"}}`), "invalid_tool_arguments"},
		"a path that climbs": {ask("c", `{"reason":"a","requestedAuthority":{"resource":{"namespace":"f","path":[".."]},"action":"x"}}`), "invalid_tool_arguments"},
		"another trace":      {contract.ToolCall{ID: "c", Tool: "sharedos.escalate", Arguments: contract.Object(`{"reason":"a"}`), TraceID: "x", RequestedAt: contract.At(kerneltest.Epoch)}, "trace_mismatch"},
		"a malformed call":   {contract.ToolCall{Tool: "sharedos.escalate", Arguments: contract.Object(`{"reason":"a"}`), TraceID: kerneltest.TraceID}, "invalid_request"},
		"a long reason":      {ask("c", `{"reason":"`+long+`"}`), ""},
	} {
		w, _ := world(t)
		x := start(t, w, envelope.Options{})
		r := x.Invoke(t.Context(), tt.call, nil)
		if codeOf(r.Error) != tt.code {
			t.Errorf("%s: %+v, want %s", name, r.Error, tt.code)
		}
		if after := x.Invoke(t.Context(), read("after"), nil); (after.Status == "succeeded") != (tt.code != "") {
			t.Errorf("%s: the next call: %+v", name, after.Error)
		}
		if tt.code == "" {
			if e := x.Finish(t.Context(), completed(`1`)).Escalation; len([]rune(e.Reason)) != 512 {
				t.Errorf("%s: %d characters are kept", name, len([]rune(e.Reason)))
			}
		}
	}
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	if err := x.Escalate(t.Context(), envelope.Ask{Reason: "a\xff"}); err == nil {
		t.Error("a reason that is no text was taken")
	}
}

func TestWithoutTheAffordanceNobodyIsAsked(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	w.Grants.Set(kerneltest.Admission())
	x := start(t, w, envelope.Options{})
	if r := x.Invoke(t.Context(), ask("c", `{"reason":"a"}`), nil); r.Status != "denied" || codeOf(r.Error) != "tool_unavailable" {
		t.Errorf("%+v", r)
	}
	if err := x.Escalate(t.Context(), envelope.Ask{Reason: "a"}); err == nil {
		t.Error("an escalation was taken")
	}
	if r := x.Finish(t.Context(), completed(`1`)); r.Status != "succeeded" {
		t.Errorf("%s", r.Status)
	}
}

func TestAnEscalationThatIsNotKeptHasNotHappened(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	fail := true
	x := start(t, w, envelope.Options{OnEscalation: func(context.Context, string, contract.Escalation) error {
		if fail {
			return errors.New("secret")
		}
		return nil
	}})
	r := x.Invoke(t.Context(), ask("c", `{"reason":"a"}`), nil)
	if r.Status != "failed" || codeOf(r.Error) != "escalation_not_recorded" || strings.Contains(r.Error.Message, "secret") {
		t.Fatalf("%+v", r)
	}
	if r := x.Invoke(t.Context(), read("c"), nil); r.Status != "succeeded" {
		t.Errorf("the turn goes on: %+v", r.Error)
	}
	fail = false
	if r := x.Invoke(t.Context(), ask("c", `{"reason":"b"}`), nil); r.Status != "succeeded" {
		t.Errorf("asking again: %+v", r.Error)
	}
	if r := x.Finish(t.Context(), completed(`1`)); r.Escalation == nil || r.Escalation.Reason != "b" {
		t.Errorf("%+v", r.Escalation)
	}
}

func TestAnEscalationWithoutARecordEndsTheTurn(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	failAudit(w, audit.EscalationRequested)
	if r := x.Invoke(t.Context(), ask("c", `{"reason":"a"}`), nil); r.Status != "failed" || r.Output != nil {
		t.Errorf("%+v", r)
	}
	if r, ended := x.Ended(); !ended || r.Status != "failed" || codeOf(r.Error) != "audit_unavailable" {
		t.Errorf("%t %s %+v", ended, r.Status, r.Error)
	}
}

// TestAskingAndLeaving ends the turn while its escalation is being persisted: that
// it asked stands, whoever ends it, and nothing waits for the host.
func TestAskingAndLeaving(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(x *envelope.Execution, w *kerneltest.World){
		"completed": func(x *envelope.Execution, _ *kerneltest.World) { x.Finish(context.Background(), completed(`1`)) },
		"escalates": func(x *envelope.Execution, _ *kerneltest.World) {
			x.Finish(context.Background(), envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "again"}})
		},
		"deadline": func(_ *envelope.Execution, w *kerneltest.World) { w.Clock.Advance(time.Hour) },
	} {
		w, _ := world(t)
		entered := make(chan struct{})
		x := start(t, w, envelope.Options{OnEscalation: func(ctx context.Context, _ string, _ contract.Escalation) error {
			close(entered)
			<-ctx.Done() // the host persists only with the ending
			return ctx.Err()
		}})
		answer := make(chan contract.ToolResult)
		go func() { answer <- x.Invoke(context.Background(), ask("c", `{"reason":"first"}`), nil) }()
		<-entered
		if c := x.Checkpoint(); c.Escalation == nil || c.Escalation.Reason != "first" {
			t.Errorf("%s: a checkpoint while persisting holds %+v", name, c.Escalation)
		}
		if r := x.Invoke(t.Context(), read("meanwhile"), nil); codeOf(r.Error) != "escalation_pending" {
			t.Errorf("%s: a call meanwhile: %+v", name, r)
		}
		end(x, w)
		r, _ := x.Ended()
		if r.Status != "escalated" || r.Escalation == nil || r.Escalation.Reason != "first" {
			t.Errorf("%s: %s %+v", name, r.Status, r.Error)
		}
		if a := <-answer; codeOf(a.Error) != "turn_ended" {
			t.Errorf("%s: the call was answered %+v", name, a)
		}
		wellRecorded(t, w, r)
	}
}

// TestLeavingBeforeItIsOnRecord ends the turn while the record itself is written.
func TestLeavingBeforeItIsOnRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		status contract.Status
	}{"kept": {nil, "escalated"}, "not kept": {kerneltest.ErrPort, "failed"}} {
		w, _ := world(t)
		x := start(t, w, envelope.Options{})
		entered, release := make(chan struct{}), make(chan struct{})
		w.Audit.Fail = func(e audit.Event) error {
			if e.Type != audit.EscalationRequested {
				return nil
			}
			close(entered)
			<-release
			return tt.err
		}
		var all sync.WaitGroup
		all.Go(func() { x.Invoke(context.Background(), ask("c", `{"reason":"first"}`), nil) })
		<-entered
		all.Go(func() { x.Finish(context.Background(), completed(`1`)) })
		close(release)
		all.Wait()
		r, _ := x.Ended()
		// Whichever comes first, the asking is not lost silently.
		if r.Status != tt.status || (tt.err != nil && codeOf(r.Error) != "audit_unavailable") {
			t.Errorf("%s: %s %+v", name, r.Status, r.Error)
		}
		wellRecorded(t, w, r)
	}
}
