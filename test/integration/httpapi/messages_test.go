package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/turns"
)

func (w *world) messages() []v1alpha1.Turn {
	w.t.Helper()
	var list v1alpha1.TurnList
	must(w.t, server.client.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelOrigin: v1alpha1.OriginMessage}))
	return list.Items
}

func TestAMessageBecomesATurn(t *testing.T) {
	o, w := start(t), newWorld(t, "message")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.maySend("bot", "helper")
	w.mayRun("bot", "helper")
	w.mayRun("helper", "helper")
	o.known(t, mine)
	body := encode(envelope("message-1", "bot", "helper"))
	for range 2 { // the second is the same message again
		a := o.post(t, "/v1/messages", mine, body)
		receipt := decode[contract.MessageDeliveryResult](t, a)
		if a.status != http.StatusAccepted || receipt.Status != contract.DeliveryAccepted || receipt.MessageID != "message-1" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	found := w.messages()
	if len(found) != 1 {
		t.Fatalf("%d Turns of one message", len(found))
	}
	if s := found[0].Spec; s.Principal != "helper" || s.Message.From != "bot" || s.Message.ID != "message-1" || s.Harness != "h" || s.Purpose != "work" {
		t.Errorf("the Turn is %+v", s)
	}
	w.until("spec.principal", "helper", hasPod) // it runs
	for name, change := range map[string]func(*contract.MessageEnvelope){
		"payload": func(m *contract.MessageEnvelope) { m.Payload = contract.Value(`"another"`) },
		"replyTo": func(m *contract.MessageEnvelope) { m.ReplyTo = "message-0" },
		"createdAt": func(m *contract.MessageEnvelope) {
			m.CreatedAt = contract.At(m.CreatedAt.Add(time.Second))
		},
		"provenance": func(m *contract.MessageEnvelope) {
			m.Provenance = &contract.Provenance{Source: "elsewhere", ParentIDs: []string{}}
		},
	} {
		other := envelope("message-1", "bot", "helper")
		change(&other)
		a := o.post(t, "/v1/messages", mine, encode(other))
		if receipt := decode[contract.MessageDeliveryResult](t, a); a.status != http.StatusOK || receipt.Status != contract.DeliveryDenied ||
			receipt.Error.Code != contract.CodeInvalidRequest {
			t.Errorf("another %s under the same id: %d %s", name, a.status, a.body)
		}
	}
	if found := w.messages(); len(found) != 1 {
		t.Errorf("%d Turns", len(found))
	}
}

func TestMessagesThatRunNothing(t *testing.T) {
	o, w := start(t), newWorld(t, "unsent")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	for _, agent := range []v1alpha1.PathSegment{"helper", "idle", "nobody"} {
		w.maySend("bot", agent)
	}
	w.grant("bot", "sharedos.messaging", []v1alpha1.PathSegment{"human", "alice"}, "send")
	w.mayRun("bot", "idle")
	w.mayRun("bot", "bot")
	w.mayRun("bot", "nobody")
	w.mayRun("helper", "helper")
	w.principal("idle", func(s *v1alpha1.PrincipalSpec) { s.Harness, s.Identities = "", nil })
	o.known(t, mine)
	toAlice := envelope("m-4", "bot", "alice")
	toAlice.Receiver = contract.Human("alice")
	for name, c := range map[string]struct {
		message contract.MessageEnvelope
		status  string
		code    string
	}{
		"sending without running":      {envelope("m-1", "bot", "helper"), contract.DeliveryDenied, contract.CodeNoMatchingGrant},
		"running without sending":      {envelope("m-2", "bot", "bot"), contract.DeliveryDenied, contract.CodeNoMatchingGrant},
		"an agent without a Harness":   {envelope("m-3", "bot", "idle"), contract.DeliveryFailed, turns.CodeHarnessNotConfigured},
		"somebody who is no agent":     {toAlice, contract.DeliveryFailed, turns.CodeRecipientNotReachable},
		"an agent that does not exist": {envelope("m-5", "bot", "nobody"), contract.DeliveryFailed, turns.CodeRecipientNotReachable},
		"another's name as the sender": {envelope("m-6", "helper", "bot"), contract.DeliveryDenied, contract.CodeMessageContextMismatch},
	} {
		a := o.post(t, "/v1/messages", mine, encode(c.message))
		receipt := decode[contract.MessageDeliveryResult](t, a)
		if a.status != http.StatusOK || receipt.Status != c.status || receipt.Error == nil || receipt.Error.Code != c.code {
			t.Errorf("%s: %d %s; want %s %s", name, a.status, a.body, c.status, c.code)
		}
	}
	if found := w.messages(); len(found) != 0 {
		t.Errorf("a message ran %s", found[0].Spec.Principal)
	}
}

// asking is a turn of bot that is about to ask helper.
func asking(t *testing.T, o *operator, w *world) func(context.Context) contract.ToolResult {
	t.Helper()
	w.mayRun("bot", "bot")
	w.maySend("bot", "helper")
	w.mayRun("bot", "helper")
	w.mayRun("helper", "helper")
	w.create(&v1alpha1.Turn{ObjectMeta: w.meta("asks"), Spec: v1alpha1.TurnSpec{Principal: "bot", Harness: "h", Message: v1alpha1.TurnMessage{Text: "go"}}})
	s := o.session(t, w.until("spec.principal", "bot", hasPod))
	return func(ctx context.Context) contract.ToolResult {
		return s.Invoke(ctx, bridge.InvokeRequest{CallID: "1", Tool: contract.MessagesRequestTool, Arguments: contract.Object(
			`{"recipient":{"kind":"agent","agentId":"helper"},"payload":{"text":"When does Atlas ship?"}}`)})
	}
}

func TestAReplyAnswersTheRequest(t *testing.T) {
	o, w := start(t), newWorld(t, "reply")
	ask := asking(t, o, w)
	answered := make(chan contract.ToolResult, 1)
	go func() { answered <- ask(context.Background()) }()
	turn := w.until("spec.principal", "helper", hasPod)
	if string(turn.Spec.Message.Payload) != `{"text":"When does Atlas ship?"}` || turn.Spec.Message.From != "bot" {
		t.Errorf("the question is %+v", turn.Spec.Message)
	}
	must(t, o.session(t, turn).Outcome(t.Context(), done("2026-09-30")))
	got := <-answered
	var output string
	if err := json.Unmarshal(got.Output, &output); got.Status != contract.StatusSucceeded || err != nil || output != "2026-09-30" {
		t.Errorf("%s %s %+v", got.Status, got.Output, got.Error)
	}
}

func TestAReplyOfATurnThatFailed(t *testing.T) {
	o, w := start(t), newWorld(t, "noreply")
	ask := asking(t, o, w)
	answered := make(chan contract.ToolResult, 1)
	go func() { answered <- ask(context.Background()) }()
	turn := w.until("spec.principal", "helper", hasPod)
	must(t, o.session(t, turn).Outcome(t.Context(), bridge.Outcome{Started: true, Initialized: true, ExitCode: 1}))
	if got := <-answered; got.Status != contract.StatusFailed || got.Error.Code != contract.CodeMessageReplyFailed {
		t.Errorf("%s %+v", got.Status, got.Error)
	}
}

func TestWhoStopsWaitingCancelsTheTurn(t *testing.T) {
	o, w := start(t), newWorld(t, "unanswered")
	ask := asking(t, o, w)
	answered := make(chan contract.ToolResult, 1)
	go func() { answered <- ask(context.Background()) }()
	w.until("spec.principal", "helper", hasPod)
	// The asker's own turn is cancelled, and its call with it.
	asks := &v1alpha1.Turn{}
	must(t, server.client.Get(t.Context(), key(w.namespace, "asks"), asks))
	before := asks.DeepCopy()
	asks.Spec.Cancel = true
	must(t, server.client.Patch(t.Context(), asks, client.MergeFrom(before)))
	if got := <-answered; got.Status == contract.StatusSucceeded {
		t.Errorf("%s %s", got.Status, got.Output)
	}
	turn := w.until("spec.principal", "helper", (*v1alpha1.Turn).IsFinished)
	if turn.Status.Outcome != v1alpha1.TurnCancelled {
		t.Errorf("the recipient's turn is %s", turn.Status.Outcome)
	}
}
