package envelope_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestARecordOfATurn(t *testing.T) {
	t.Parallel()
	w, plane := world(t)
	var live []contract.ExecutionEvent
	x := start(t, w, envelope.Options{OnEvent: func(e contract.ExecutionEvent) { live = append(live, e) }})
	if r := x.Invoke(t.Context(), read("c1"), new(int64(3))); r.Status != "succeeded" || string(r.Output) != `{"path":["Work"]}` {
		t.Fatalf("%+v", r.Error)
	}
	if r := x.Invoke(t.Context(), kerneltest.Call("c2", "files.read", `{"path":["Other"]}`), nil); codeOf(r.Error) != "no_matching_grant" {
		t.Fatalf("%+v", r)
	}
	if r := x.Invoke(t.Context(), kerneltest.Call("c3", strings.Repeat("é", 300), `{"secret":"hunter2"}`), nil); codeOf(r.Error) != "tool_unavailable" {
		t.Fatalf("%+v", r)
	}
	if err := x.Observe(contract.Object(`{"type":"turn.completed"}`)); err != nil {
		t.Fatal(err)
	}
	r := x.Finish(t.Context(), completed(`"done"`))
	want := []contract.EventType{
		"turn.started", "tool.requested", "tool.completed", "tool.requested", "tool.completed", "tool.requested", "tool.completed", "runtime.event", "turn.completed",
	}
	if diff := cmp.Diff(want, types(r.Events)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	for i, data := range map[int]string{
		1: `{"callId":"c1","step":3,"tool":"files.read"}`, 2: `{"callId":"c1","status":"succeeded","tool":"files.read"}`,
		4: `{"callId":"c2","code":"no_matching_grant","status":"denied","tool":"files.read"}`,
		5: `{"callId":"c3","tool":"` + strings.Repeat("é", 256) + `"}`, 7: `{"observation":{"type":"turn.completed"}}`, 8: `{}`,
	} {
		if got := string(r.Events[i].Data); got != data {
			t.Errorf("event %d is %s, want %s", i, got, data)
		}
	}
	var started struct{ Tools []string }
	if err := json.Unmarshal(r.Events[0].Data, &started); err != nil || !cmp.Equal(started.Tools, []string{"files.delete", "files.list", "files.read", "sharedos.escalate"}) {
		t.Errorf("turn.started names %v, %v", started.Tools, err)
	}
	if diff := cmp.Diff(r.Events, live); diff != "" {
		t.Errorf("what was seen live differs: %s", diff)
	}
	if diff := cmp.Diff(envelope.Usage{ToolCalls: 3, Denied: 2}, x.Usage()); diff != "" {
		t.Errorf("usage: %s", diff)
	}
	if len(plane.Operations()) != 1 {
		t.Errorf("%d operations were run", len(plane.Operations()))
	}
	wellRecorded(t, w, r)
	for _, e := range w.Audit.Events() {
		line, err := e.AppendJSON(nil)
		if err != nil || strings.Contains(string(line), "hunter2") {
			t.Errorf("recorded %s, %v", line, err)
		}
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	type call struct {
		step *int64
		want string
	}
	at := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		options contract.ExecutionOptions
		calls   []call
	}{
		"defaults: calls are as many as steps": {contract.ExecutionOptions{}, append(slicesOf(16, call{}), call{nil, "tool_call_limit_exceeded"})},
		"calls":                                {contract.ExecutionOptions{MaxToolCalls: at(2)}, []call{{}, {}, {nil, "tool_call_limit_exceeded"}, {at(0), "tool_call_limit_exceeded"}}},
		"calls default to steps":               {contract.ExecutionOptions{MaxSteps: at(1)}, []call{{}, {nil, "tool_call_limit_exceeded"}}},
		"more calls than steps":                {contract.ExecutionOptions{MaxSteps: at(1), MaxToolCalls: at(3)}, []call{{at(0), ""}, {at(0), ""}, {nil, ""}, {nil, "tool_call_limit_exceeded"}}},
		"a step past the end":                  {contract.ExecutionOptions{MaxSteps: at(4)}, []call{{at(4), "step_limit_exceeded"}, {at(5), "step_limit_exceeded"}, {at(-1), "step_limit_exceeded"}, {at(3), ""}}},
		"a refused step costs no call":         {contract.ExecutionOptions{MaxSteps: at(1)}, []call{{at(9), "step_limit_exceeded"}, {at(0), ""}}},
		"a refused step is not seen":           {contract.ExecutionOptions{MaxSteps: at(2), MaxToolCalls: at(9)}, []call{{at(7), "step_limit_exceeded"}, {at(0), ""}, {at(1), ""}, {at(0), ""}}},
		"renumbered steps":                     {contract.ExecutionOptions{MaxSteps: at(2), MaxToolCalls: at(9)}, []call{{at(1), ""}, {at(0), ""}, {at(1), ""}, {at(2), "step_limit_exceeded"}}},
	}
	for name, tt := range tests {
		w, _ := world(t)
		x := start(t, w, envelope.Options{}, options(tt.options))
		for i, c := range tt.calls {
			r := x.Invoke(t.Context(), read(fmt.Sprintf("c%d", i)), c.step)
			if codeOf(r.Error) != c.want {
				t.Errorf("%s: call %d: %+v, want %q", name, i, r.Error, c.want)
			}
			if c.want != "" && (r.Status != "denied" || r.Error.Retryable == nil || *r.Error.Retryable) {
				t.Errorf("%s: call %d: %s %+v", name, i, r.Status, r.Error)
			}
		}
		if r := x.Finish(t.Context(), completed(`1`)); r.Status != "succeeded" {
			t.Errorf("%s: a refusal by a budget ended the turn: %s", name, r.Status)
		}
	}
}

func slicesOf[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// TestGuessesCostCallsButAskingDoesNot: guessing tool names is bounded too.
func TestGuessesCostCalls(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{}, options(contract.ExecutionOptions{MaxToolCalls: new(int64(1))}))
	if r := x.Invoke(t.Context(), kerneltest.Call("c", "files.raed", `{}`), nil); codeOf(r.Error) != "tool_unavailable" {
		t.Errorf("%+v", r.Error)
	}
	if r := x.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "tool_call_limit_exceeded" {
		t.Errorf("%+v", r.Error)
	}
	if r := x.Invoke(t.Context(), kerneltest.Call("c", "sharedos.escalate", `{"reason":"no calls left"}`), nil); r.Status != "succeeded" {
		t.Errorf("asking for a human costs a call: %+v", r.Error)
	}
}

func TestDraining(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	entered, release := make(chan struct{}), make(chan struct{})
	withTools(w, blocking("files.slow", contract.ClassRead, entered, release))
	x := start(t, w, envelope.Options{DrainGrace: 10 * time.Second}, options(contract.ExecutionOptions{TimeoutMs: new(int64(60000))}))
	w.Clock.Advance(50*time.Second - time.Nanosecond)
	slow := make(chan contract.ToolResult)
	go func() {
		slow <- x.Invoke(context.Background(), kerneltest.Call("slow", "files.slow", `{"path":["Work"]}`), nil)
	}()
	<-entered
	w.Clock.Advance(time.Nanosecond)
	if r := x.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "turn_draining" || r.Status != "denied" {
		t.Errorf("a new call while draining: %+v", r)
	}
	close(release)
	if r := <-slow; r.Status != "succeeded" {
		t.Errorf("a running call while draining: %+v", r.Error)
	}
	w.Clock.Advance(10 * time.Second)
	r, ended := x.Ended()
	if !ended || r.Status != "cancelled" || !*r.Error.Retryable || x.Usage().ToolCalls != 1 {
		t.Errorf("at the deadline: %t %s %+v", ended, r.Status, r.Error)
	}
	x = start(t, w, envelope.Options{DrainGrace: time.Hour}, options(contract.ExecutionOptions{TimeoutMs: new(int64(60000))}))
	if r := x.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "turn_draining" {
		t.Errorf("a grace longer than the turn: %+v", r)
	}
}

// blocking is a tool that says when it runs and waits to be released or cancelled.
func blocking(name string, class contract.ReadWrite, entered chan<- struct{}, release <-chan struct{}) kernel.Tool {
	d := kerneltest.Definition("read", class)
	d.Name = name
	return kernel.Tool{
		Definition: d,
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: "read"}, err
		},
		Handle: func(ctx context.Context, _ kernel.ToolInvocation) (kernel.Output, error) {
			entered <- struct{}{}
			select {
			case <-release:
				return kernel.Output{Value: contract.Value(`"late"`)}, nil
			case <-ctx.Done():
				<-release // honours cancellation only when it is let
				return kernel.Output{Value: contract.Value(`"late"`)}, nil
			}
		},
	}
}

func TestLateResultsAreDiscardedAndCancellationReachesHandlers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class     contract.ReadWrite
		retryable bool
	}{"a reader": {contract.ClassRead, true}, "a writer": {contract.ClassWrite, false}} {
		w, _ := world(t)
		entered, cancelled, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		tool := blocking("files.slow", tt.class, entered, release)
		inner := tool.Handle
		tool.Handle = func(ctx context.Context, call kernel.ToolInvocation) (kernel.Output, error) {
			context.AfterFunc(ctx, func() { close(cancelled) })
			return inner(ctx, call)
		}
		withTools(w, tool)
		x := start(t, w, envelope.Options{})
		answer := make(chan contract.ToolResult)
		go func() {
			answer <- x.Invoke(context.Background(), kerneltest.Call("slow", "files.slow", `{"path":["Work"]}`), nil)
		}()
		<-entered
		r := x.Cancel(t.Context(), "x")
		<-cancelled
		if r.Status != "cancelled" || *r.Error.Retryable != tt.retryable || field(t, r.Events, "retryable") != tt.retryable {
			t.Errorf("%s: %s %+v", name, r.Status, r.Error)
		}
		close(release)
		if late := <-answer; late.Status != "failed" || codeOf(late.Error) != "turn_ended" || late.Output != nil {
			t.Errorf("%s: a late result: %+v", name, late)
		}
		final, _ := x.Ended()
		if diff := cmp.Diff([]contract.EventType{"turn.started", "tool.requested", "turn.cancelled"}, types(final.Events)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c := x.Invoke(t.Context(), read("after"), nil); c.Status != "denied" || codeOf(c.Error) != "turn_ended" || *c.Error.Retryable {
			t.Errorf("%s: a call after the ending: %+v", name, c)
		}
		if err := x.Observe(contract.Object(`{}`)); err == nil {
			t.Errorf("%s: an observation after the ending was taken", name)
		}
		recorded := 0
		for _, e := range w.Audit.Events() {
			if e.Type == audit.ToolInvoked {
				recorded++
			}
		}
		if recorded != 2 {
			t.Errorf("%s: %d calls are on record, want the late one and the one after", name, recorded)
		}
	}
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	remove := func(id, path string) contract.ToolCall {
		return kerneltest.Call(id, "files.delete", `{"path":["`+path+`"]}`)
	}
	idempotent := kerneltest.Definition("put", contract.ClassWrite)
	idempotent.Annotations = &contract.ToolAnnotations{Idempotent: new(true)}
	for name, tt := range map[string]struct {
		call contract.ToolCall
		fail bool
		want bool
	}{
		"a read":                     {read("c"), false, true},
		"a failed read":              {read("c"), true, true},
		"a write":                    {remove("c", "Work"), false, false},
		"a failed write":             {remove("c", "Work"), true, false},
		"a denied write":             {remove("c", "Other"), false, true},
		"a write with bad arguments": {kerneltest.Call("c", "files.delete", `{}`), false, false},
		"an idempotent write":        {kerneltest.Call("c", "files.put", `{"path":["Work"]}`), true, true},
	} {
		w, plane := world(t)
		withTools(w, kernel.NewResourceTool(idempotent, plane))
		if tt.fail {
			plane.Answer = func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
				return contract.ResourceResult{}, kerneltest.ErrPort
			}
		}
		x := start(t, w, envelope.Options{})
		x.Invoke(t.Context(), tt.call, nil)
		r := x.Fail(t.Context(), contract.ProtocolError{Code: "c", Message: "m"})
		if *r.Error.Retryable != tt.want {
			t.Errorf("%s: retryable %t, want %t", name, *r.Error.Retryable, tt.want)
		}
	}
}

func TestCallsBeforeTheStartAreRefused(t *testing.T) {
	t.Parallel()
	w, plane := world(t)
	x := open(t, w, envelope.Options{})
	if r := x.Invoke(t.Context(), read("c"), nil); r.Status != "denied" || codeOf(r.Error) != "turn_not_started" {
		t.Errorf("%+v", r)
	}
	if err := x.Observe(contract.Object(`{}`)); err == nil {
		t.Error("an observation before the start was taken")
	}
	w.Clock.Advance(time.Hour) // the deadline counts from the start
	x.Start(t.Context())
	x.Start(t.Context())
	if r := x.Invoke(t.Context(), read("c"), nil); r.Status != "succeeded" || len(plane.Operations()) != 1 {
		t.Errorf("after the start: %+v", r.Error)
	}
	r := x.Finish(t.Context(), completed(`1`))
	if !r.StartedAt.Equal(kerneltest.Epoch.Add(time.Hour)) || len(r.Events) != 4 {
		t.Errorf("started at %s with %v", r.StartedAt, types(r.Events))
	}
}

func TestObservationsAreBounded(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{})
	for _, bad := range []string{``, `[]`, `{"a":1,"a":1}`, `{"a":"` + strings.Repeat("x", envelope.MaxObservation) + `"}`} {
		if err := x.Observe(contract.Object(bad)); err == nil {
			t.Errorf("observed %.30q", bad)
		}
	}
	for range envelope.MaxObservations {
		if err := x.Observe(contract.Object(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Observe(contract.Object(`{}`)); err == nil {
		t.Error("there is no end to observations")
	}
}

func TestRefusalsInTheRecordAreBounded(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{}, options(contract.ExecutionOptions{MaxToolCalls: new(int64(1))}))
	x.Invoke(t.Context(), read("c"), nil)
	for range envelope.MaxRefusals + 5 {
		if r := x.Invoke(t.Context(), read("c"), nil); codeOf(r.Error) != "tool_call_limit_exceeded" {
			t.Fatalf("%+v", r)
		}
	}
	if r := x.Invoke(t.Context(), kerneltest.Call("c", "sharedos.escalate", `{}`), nil); codeOf(r.Error) != "tool_call_limit_exceeded" {
		t.Errorf("asking past the limit of the record: %+v", r.Error)
	}
	r := x.Finish(t.Context(), completed(`1`))
	if want := 2 + 2 + 2*envelope.MaxRefusals; len(r.Events) != want {
		t.Errorf("%d events, want %d", len(r.Events), want)
	}
	recorded := 0
	for _, e := range w.Audit.Events() {
		if e.Type == audit.ToolInvoked {
			recorded++
		}
	}
	if want := envelope.MaxRefusals + 7; recorded != want {
		t.Errorf("%d calls are on record, want %d", recorded, want)
	}
}

func TestTheEffectiveCatalogueIsAllowedAndRequested(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	asking := func(names ...string) func(r *contract.ExecutionRequest) {
		return func(r *contract.ExecutionRequest) {
			r.Tools = []contract.ToolDefinition{}
			for _, name := range names {
				d := kerneltest.Definition("x", contract.ClassRead)
				d.Name, d.RequiredCapability = name, kerneltest.Need("sharedos", "anything") // what it claims does not matter
				r.Tools = append(r.Tools, d)
			}
		}
	}
	x := start(t, w, envelope.Options{}, asking("files.read", "files.absent"))
	c := x.Catalog()
	if err := c.Validate(); err != nil || len(c.Tools) != 1 || c.Tools[0].Name != "files.read" || c.ExecutionID != "execution-1" {
		t.Errorf("catalogue = %+v, %v", c, err)
	}
	if r := x.Invoke(t.Context(), kerneltest.Call("c", "files.list", `{"path":["Work"]}`), nil); codeOf(r.Error) != "tool_unavailable" {
		t.Errorf("a tool that was not requested: %+v", r)
	}
	if e := lastInvoked(t, w); e.Cause != "not_offered" || e.Source != audit.SourceEnvelope {
		t.Errorf("recorded cause %q from %s", e.Cause, e.Source)
	}
	a := x.Admission()
	if a.ToolCount != 1 || a.CatalogHash != c.CatalogHash || len(a.Grants) != 3 || !a.At.Equal(kerneltest.Epoch) || len(a.AuthorityHash) != 64 {
		t.Errorf("admission = %+v", a)
	}
	if diff := cmp.Diff([]contract.ReachEntry{{Namespace: "files", Path: contract.Path{"Work"}, Actions: []string{"*"}, Scope: "descendants"}}, a.Reach.Reach); diff != "" {
		t.Errorf("reach beyond the tools: %s", diff)
	}
	if none := open(t, w, envelope.Options{}, asking()).Catalog(); len(none.Tools) != 0 {
		t.Errorf("asking for nothing offered %+v", none.Tools)
	}
	if !x.Repeatable("files.read") || x.Repeatable("files.delete") {
		t.Error("what may be repeated is wrong")
	}
}

func lastInvoked(t *testing.T, w *kerneltest.World) audit.Event {
	t.Helper()
	events := w.Audit.Events()
	for _, event := range slices.Backward(events) {
		if event.Type == audit.ToolInvoked {
			return event
		}
	}
	t.Fatal("no call is on record")
	return audit.Event{}
}

func TestTheRequestIsSanitised(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	x := start(t, w, envelope.Options{}, func(r *contract.ExecutionRequest) {
		r.State = contract.Value(`{"cursor":12345678901234567890}`)
		r.Message.ReplyTo, r.Message.Provenance = "m0", &contract.Provenance{Source: "s", ParentIDs: []string{"p"}}
	})
	req := x.Request()
	if req.ExecutionID != "execution-1" || req.Agent != kerneltest.Actor() || req.MaxSteps != 16 || req.MaxCalls != 16 || req.Timeout != 2*time.Minute ||
		string(req.State) != `{"cursor":12345678901234567890}` || req.Message.ReplyTo != "m0" || len(req.Catalogue.Tools) != 4 {
		t.Errorf("request = %+v", req)
	}
	req.Message.Payload[0], req.State[0], req.Reach.Reach[0].Path[0], req.Message.Provenance.ParentIDs[0] = 'X', 'X', "X", "X"
	again := x.Request()
	if again.Message.Payload[0] == 'X' || again.State[0] == 'X' || again.Reach.Reach[0].Path[0] == "X" || again.Message.Provenance.ParentIDs[0] == "X" {
		t.Error("a runtime can change the request")
	}
}
