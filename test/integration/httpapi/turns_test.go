package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/turns"
)

// reply is the end of a call that runs beside the test.
type reply struct {
	answer
	err error
}

func (o *operator) beside(ctx context.Context, path, token, body string, headers ...string) <-chan reply {
	out := make(chan reply, 1)
	go func() {
		a, err := o.call(ctx, http.MethodPost, path, token, body, headers...)
		out <- reply{a, err}
	}()
	return out
}

func (r reply) result(t *testing.T) contract.ExecutionResult {
	t.Helper()
	must(t, r.err)
	return decode[contract.ExecutionResult](t, r.answer)
}

func TestATurnIsMadeAndWaitedFor(t *testing.T) {
	o, w := start(t), newWorld(t, "wait")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.mayRun("bot", "bot")
	w.grant("bot", "files", []v1alpha1.PathSegment{"Work"}, "list")
	o.known(t, mine)
	asked := o.beside(t.Context(), "/v1/turns", mine, request("execution-1", "bot", "bot", func(r *contract.RemoteExecutionRequest) {
		r.State, r.Options = contract.Value(`{"step":9007199254740993}`), &contract.ExecutionOptions{MaxToolCalls: new(int64(200)), MaxSteps: new(int64(200))}
		r.Message.ReplyTo, r.Message.Provenance = "m-0", &contract.Provenance{Source: "inbox", ParentIDs: []string{"m-0"}}
	}))
	turn := w.until("spec.executionId", "execution-1", hasPod)
	if turn.Spec.State != `{"step":9007199254740993}` || turn.Spec.Message.Payload != `{"n":9007199254740993}` || turn.Spec.Message.ReplyTo != "m-0" ||
		turn.Spec.Message.Provenance == nil || turn.Spec.Message.From != "bot" || turn.Labels[v1alpha1.LabelOrigin] != v1alpha1.OriginHTTP {
		t.Errorf("the Turn does not keep the whole request: %+v", turn.Spec)
	}
	s := o.session(t, turn)
	const calls = 80 // more events than a status keeps
	for i := range calls {
		r := s.Invoke(t.Context(), bridge.InvokeRequest{CallID: fmt.Sprint(i), Tool: "files.list", Arguments: contract.Object(`{"path":["Work"]}`)})
		if r.Status != contract.StatusSucceeded {
			t.Fatalf("call %d: %+v", i, r.Error)
		}
	}
	must(t, s.Outcome(t.Context(), done("2026-09-30")))
	got := (<-asked).result(t)
	if got.Status != contract.StatusSucceeded || string(got.Output) != `"2026-09-30"` || got.ExecutionID != "execution-1" || got.TraceID != "trace-1" {
		t.Errorf("result %+v", got)
	}
	if len(got.Events) != 2*calls+2 {
		t.Fatalf("%d events, want all %d", len(got.Events), 2*calls+2)
	}
	for i, e := range got.Events {
		if e.Sequence != int64(i) {
			t.Fatalf("event %d has the sequence %d", i, e.Sequence)
		}
	}
	if first, last := got.Events[0].Type, got.Events[len(got.Events)-1].Type; first != contract.EventTurnStarted || last != contract.EventTurnCompleted {
		t.Errorf("from %s to %s", first, last)
	}
}

func TestTurnsThatAreNotMade(t *testing.T) {
	o, w := start(t), newWorld(t, "refused")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	for _, agent := range []v1alpha1.PathSegment{"bot", "idle", "nobody", "focused"} {
		w.mayRun("bot", agent)
	}
	w.principal("idle", func(s *v1alpha1.PrincipalSpec) { s.Harness, s.Identities = "", nil })
	w.principal("focused", func(s *v1alpha1.PrincipalSpec) { s.Purposes, s.Identities = []v1alpha1.Purpose{"play"}, nil })
	// An agent of another's: what Alice grants proves nothing about it.
	w.create(&v1alpha1.Principal{ObjectMeta: w.meta("carol"), Spec: v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, "carol")}})
	w.principal("hers", func(s *v1alpha1.PrincipalSpec) { s.Authority, s.Owner, s.Identities = "carol", "carol", nil })
	w.mayRun("bot", "hers")
	o.known(t, mine)
	for name, c := range map[string]struct {
		body   string
		status contract.Status
		code   string
	}{
		"no grant for somebody else's agent": {request("r-1", "bot", "helper"), contract.StatusDenied, contract.CodeNoMatchingGrant},
		"a grant of the wrong side":          {request("r-2", "bot", "hers"), contract.StatusDenied, contract.CodeNoMatchingGrant},
		"no such agent":                      {request("r-3", "bot", "nobody"), contract.StatusDenied, contract.CodeInvalidRequest},
		"neither agent nor grant":            {request("r-4", "bot", "void"), contract.StatusDenied, contract.CodeNoMatchingGrant},
		"no Harness":                         {request("r-5", "bot", "idle"), contract.StatusFailed, turns.CodeHarnessNotConfigured},
		"a purpose that the agent has not":   {request("r-6", "bot", "focused"), contract.StatusDenied, contract.CodeInvalidRequest},
		"another's name as the sender":       {request("r-7", "helper", "bot"), contract.StatusDenied, contract.CodeMessageContextMismatch},
		"nobody's name as the sender":        {request("r-8", "void", "bot"), contract.StatusDenied, contract.CodeMessageContextMismatch},
		"another receiver": {
			request("r-9", "bot", "bot", func(r *contract.RemoteExecutionRequest) { r.Message.Receiver = contract.Agent("helper") }),
			contract.StatusDenied, contract.CodeReceiverMismatch,
		},
		"another purpose": {
			request("r-10", "bot", "bot", func(r *contract.RemoteExecutionRequest) { r.Message.Purpose = "play" }),
			contract.StatusDenied, contract.CodeMessageContextMismatch,
		},
	} {
		got := reply{answer: o.post(t, "/v1/turns", mine, c.body)}.result(t)
		if got.Status != c.status || got.Error == nil || got.Error.Code != c.code || len(got.Events) != 1 {
			t.Errorf("%s: %s %+v, %d events; want %s %s", name, got.Status, got.Error, len(got.Events), c.status, c.code)
		}
	}
	var list v1alpha1.TurnList
	must(t, server.client.List(t.Context(), &list))
	for i := range list.Items {
		if list.Items[i].Namespace == w.namespace {
			t.Errorf("a Turn was made: %+v", list.Items[i].Spec)
		}
	}
	large := request("r-11", "bot", "bot", func(r *contract.RemoteExecutionRequest) { r.State = contract.Value(`"` + string(make240k()) + `"`) })
	if a := o.post(t, "/v1/turns", mine, large); a.status != http.StatusBadRequest || a.code() != "invalid_request" {
		t.Errorf("more than a Turn keeps: %d %s", a.status, a.body)
	}
}

// make240k is a little more text than a Turn keeps.
func make240k() []byte {
	out := make([]byte, 262145)
	for i := range out {
		out[i] = 'x'
	}
	return out
}

func TestAnotherAgentMayBeRunWithAGrant(t *testing.T) {
	o, w := start(t), newWorld(t, "other")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.mayRun("bot", "helper")
	w.mayRun("helper", "helper")
	o.known(t, mine)
	asked := o.beside(t.Context(), "/v1/turns", mine, request("execution-2", "bot", "helper"))
	turn := w.until("spec.executionId", "execution-2", hasPod)
	if turn.Spec.Principal != "helper" || turn.Spec.Message.From != "bot" {
		t.Errorf("the Turn is %+v", turn.Spec)
	}
	must(t, o.session(t, turn).Outcome(t.Context(), done("ok")))
	if got := (<-asked).result(t); got.Status != contract.StatusSucceeded {
		t.Errorf("result %+v %+v", got.Status, got.Error)
	}
}

func TestATurnThatItsAdmissionRefuses(t *testing.T) {
	o, w := start(t), newWorld(t, "unadmitted")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	got := reply{answer: o.post(t, "/v1/turns", mine, request("execution-3", "bot", "bot"))}.result(t)
	if got.Status != contract.StatusDenied || got.Error == nil || got.Error.Code != contract.CodeNoMatchingGrant {
		t.Errorf("result %s %+v", got.Status, got.Error)
	}
	if len(got.Events) != 1 || got.Events[0].Type != contract.EventTurnDenied {
		t.Errorf("events %+v", got.Events)
	}
}

func TestAnExecutionIDRunsOnce(t *testing.T) {
	o, w := start(t), newWorld(t, "once")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.mayRun("bot", "bot")
	o.known(t, mine)
	body := request("execution-4", "bot", "bot")
	asked := []<-chan reply{o.beside(t.Context(), "/v1/turns", mine, body), o.beside(t.Context(), "/v1/turns", mine, body)}
	turn := w.until("spec.executionId", "execution-4", hasPod)
	var second reply
	waiting := asked[0]
	select {
	case second = <-asked[0]:
		waiting = asked[1]
	case second = <-asked[1]:
	}
	refused := func(r reply) {
		t.Helper()
		if got := r.result(t); got.Status != contract.StatusDenied || got.Error.Code != contract.CodeInvalidRequest {
			t.Errorf("the second of an execution id: %s %+v", got.Status, got.Error)
		}
	}
	refused(second)
	must(t, o.session(t, turn).Outcome(t.Context(), done("once")))
	if got := (<-waiting).result(t); got.Status != contract.StatusSucceeded {
		t.Errorf("the first: %s %+v", got.Status, got.Error)
	}
	refused(reply{answer: o.post(t, "/v1/turns", mine, body)})
	if found := w.turns("spec.executionId", "execution-4"); len(found) != 1 {
		t.Errorf("%d Turns", len(found))
	}
}

func TestAClientThatGoesAwayCancelsItsTurn(t *testing.T) {
	o, w := start(t), newWorld(t, "away")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.mayRun("bot", "bot")
	o.known(t, mine)
	ctx, cancel := context.WithCancel(t.Context())
	asked := o.beside(ctx, "/v1/turns", mine, request("execution-5", "bot", "bot"))
	w.until("spec.executionId", "execution-5", hasPod)
	cancel()
	if r := <-asked; r.err == nil {
		t.Errorf("the client got %d %s", r.status, r.body)
	}
	turn := w.until("spec.executionId", "execution-5", (*v1alpha1.Turn).IsFinished)
	if !turn.Spec.Cancel || turn.Status.Outcome != v1alpha1.TurnCancelled {
		t.Errorf("cancel %t, outcome %s", turn.Spec.Cancel, turn.Status.Outcome)
	}
}

func TestAManagerThatStopsLeavesTheTurn(t *testing.T) {
	o, w := start(t), newWorld(t, "restart")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.mayRun("bot", "bot")
	o.known(t, mine)
	asked := o.beside(t.Context(), "/v1/turns", mine, request("execution-6", "bot", "bot"))
	w.until("spec.executionId", "execution-6", hasPod)
	o.stop()
	if r := <-asked; r.err == nil && (r.status != http.StatusInternalServerError || r.code() != "internal_error") {
		t.Errorf("the client got %d %s, want to be cut off or a 500", r.status, r.body)
	}
	next := start(t)
	turn := w.until("spec.executionId", "execution-6", hasPod)
	if turn.Spec.Cancel || turn.IsFinished() {
		t.Fatalf("the Turn did not go on: cancel %t, %s", turn.Spec.Cancel, turn.State())
	}
	must(t, next.session(t, turn).Outcome(t.Context(), done("later")))
	if turn = w.until("spec.executionId", "execution-6", (*v1alpha1.Turn).IsFinished); turn.Status.Outcome != v1alpha1.TurnSucceeded {
		t.Errorf("outcome %s %+v", turn.Status.Outcome, turn.Status.Error)
	}
	next.known(t, mine)
	got := reply{answer: next.post(t, "/v1/turns", mine, request("execution-6", "bot", "bot"))}.result(t)
	if got.Status != contract.StatusDenied || got.Error.Code != contract.CodeInvalidRequest {
		t.Errorf("asked again: %s %+v", got.Status, got.Error)
	}
}
