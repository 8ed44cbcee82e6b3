package kernel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

var bobsAssistant = contract.Agent("bob-assistant")

// mayMessage lets the actor send to Bob's assistant.
func mayMessage() *kerneltest.GrantBuilder {
	return kerneltest.MakeGrant("send").Exact(contract.NamespaceMessaging, contract.AddressPath(bobsAssistant), contract.ActionSend)
}

// post is a transport and a reply router.
type post struct {
	send     func(m contract.MessageEnvelope) (contract.MessageDeliveryResult, error)
	expect   func(m contract.MessageEnvelope) (kernel.PendingReply, error)
	reply    func(m contract.MessageEnvelope) (contract.MessageEnvelope, error)
	sent     []contract.MessageEnvelope
	prepared int
	closed   int
}

func (p *post) Send(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	p.sent = append(p.sent, m)
	if p.send != nil {
		return p.send(m)
	}
	return contract.MessageDeliveryResult{MessageID: m.ID, Timestamp: m.CreatedAt, Status: contract.DeliveryAccepted}, nil
}

func (p *post) Expect(_ context.Context, m contract.MessageEnvelope) (kernel.PendingReply, error) {
	if p.expect != nil {
		return p.expect(m)
	}
	p.prepared++
	return pending{p, m}, nil
}

type pending struct {
	*post
	m contract.MessageEnvelope
}

func (p pending) Await(ctx context.Context) (contract.MessageEnvelope, error) {
	if err := ctx.Err(); err != nil {
		return contract.MessageEnvelope{}, err
	}
	if p.reply != nil {
		return p.reply(p.m)
	}
	return replyTo(p.m), nil
}

func (p pending) Close() { p.closed++ }

func replyTo(m contract.MessageEnvelope) contract.MessageEnvelope {
	return contract.MessageEnvelope{
		Version: "1", ID: "reply-1", Sender: m.Receiver, Receiver: m.Sender, Purpose: m.Purpose,
		Payload: contract.Value(`{"ships":20260930}`), TraceID: m.TraceID, CreatedAt: m.CreatedAt, ReplyTo: m.ID,
	}
}

func message() contract.MessageEnvelope {
	return contract.MessageEnvelope{
		Version: "1", ID: "message-9", Sender: kerneltest.Actor(), Receiver: bobsAssistant, Purpose: kerneltest.Purpose,
		Payload: contract.Value(`"hi"`), TraceID: kerneltest.TraceID, CreatedAt: contract.At(kerneltest.Epoch),
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	receipt := func(r contract.MessageDeliveryResult, err error) *post {
		return &post{send: func(contract.MessageEnvelope) (contract.MessageDeliveryResult, error) { return r, err }}
	}
	done := contract.MessageDeliveryResult{MessageID: "message-9", Timestamp: contract.At(kerneltest.Epoch), Status: "delivered"}
	other := done
	other.MessageID = "x"
	bad := done
	bad.Status = "lost"
	refused := done
	refused.Status, refused.Error = "denied", &contract.ProtocolError{Code: "blocked", Message: "m"}
	tests := map[string]struct {
		change    func(m *contract.MessageEnvelope)
		transport *post
		world     func(w *kerneltest.World)
		status    string
		code      string
		outcome   audit.Outcome
		sent      bool
	}{
		"accepted":               {status: "accepted", outcome: "succeeded", sent: true},
		"delivered":              {transport: receipt(done, nil), status: "delivered", outcome: "succeeded", sent: true},
		"transport denies":       {transport: receipt(refused, nil), status: "denied", code: "blocked", outcome: "denied", sent: true},
		"another sender":         {change: func(m *contract.MessageEnvelope) { m.Sender = bobsAssistant }, status: "denied", code: "message_context_mismatch", outcome: "denied"},
		"another purpose":        {change: func(m *contract.MessageEnvelope) { m.Purpose = "x" }, status: "denied", code: "message_context_mismatch", outcome: "denied"},
		"another trace":          {change: func(m *contract.MessageEnvelope) { m.TraceID = "x" }, status: "denied", code: "message_context_mismatch", outcome: "denied"},
		"malformed":              {change: func(m *contract.MessageEnvelope) { m.Payload = nil }, status: "denied", code: "invalid_request", outcome: "denied"},
		"another receiver":       {change: func(m *contract.MessageEnvelope) { m.Receiver = contract.Agent("carol-assistant") }, status: "denied", code: "no_matching_grant", outcome: "denied"},
		"same id, other kind":    {change: func(m *contract.MessageEnvelope) { m.Receiver = contract.Human("bob-assistant") }, status: "denied", code: "no_matching_grant", outcome: "denied"},
		"a receiver with a path": {change: func(m *contract.MessageEnvelope) { m.Receiver = contract.Agent("bob/../x") }, status: "denied", code: "invalid_request", outcome: "denied"},
		"transport fails":        {transport: receipt(done, errors.New("secret")), status: "failed", code: "message_delivery_failed", outcome: "failed", sent: true},
		"transport panics":       {transport: &post{send: func(contract.MessageEnvelope) (contract.MessageDeliveryResult, error) { panic("x") }}, status: "failed", code: "message_delivery_failed", outcome: "failed", sent: true},
		"another's receipt":      {transport: receipt(other, nil), status: "failed", code: "invalid_message_receipt", outcome: "failed", sent: true},
		"malformed receipt":      {transport: receipt(bad, nil), status: "failed", code: "invalid_message_receipt", outcome: "failed", sent: true},
		"no transport":           {world: func(w *kerneltest.World) { w.Options.Transport = nil }, status: "failed", code: "message_transport_not_configured", outcome: "failed"},
		"decision not recorded":  {world: failAudit(audit.AuthorizationChecked), status: "failed", code: "audit_unavailable", outcome: "failed"},
		"sending not recorded":   {world: failAudit(audit.MessageSent), status: "failed", code: "audit_unavailable", sent: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(mayMessage().MaxUses(1).Obj())
			p := tt.transport
			if p == nil {
				p = &post{}
			}
			w.Options.Transport = p
			if tt.world != nil {
				tt.world(w)
			}
			m := message()
			if tt.change != nil {
				tt.change(&m)
			}
			r := w.Turn(t).Send(t.Context(), m)
			code := ""
			if r.Error != nil {
				code = r.Error.Code
			}
			if r.Status != tt.status || code != tt.code || r.MessageID != m.ID || r.Validate() != nil {
				t.Fatalf("receipt = %+v, %+v; want %s %s", r, r.Error, tt.status, tt.code)
			}
			if (len(p.sent) == 1) != tt.sent || (w.Uses.Spent("send") == 1) != (tt.sent || name == "decision not recorded") {
				t.Errorf("sent %d messages, spent %d uses", len(p.sent), w.Uses.Spent("send"))
			}
			if tt.outcome == "" || name == "decision not recorded" {
				return
			}
			if e := lastEvent(t, w, audit.MessageSent); e.Outcome != tt.outcome || e.Reason != tt.code || e.MessageID != m.ID || (e.Receiver == nil) != (name == "malformed") {
				t.Errorf("recorded %+v", e)
			}
		})
	}
}

func TestMessagesRequest(t *testing.T) {
	t.Parallel()
	const args = `{"recipient":{"kind":"agent","agentId":"bob-assistant"},"payload":{"n":12345678901234567890}}`
	changed := func(change func(m *contract.MessageEnvelope)) *post {
		return &post{reply: func(m contract.MessageEnvelope) (contract.MessageEnvelope, error) {
			r := replyTo(m)
			change(&r)
			return r, nil
		}}
	}
	tests := map[string]struct {
		args   string
		post   *post
		status contract.Status
		code   string
	}{
		"answers":             {args, &post{}, "succeeded", ""},
		"nobody may be asked": {`{"recipient":{"kind":"human","userId":"bob"},"payload":1}`, &post{}, "denied", "no_matching_grant"},
		"forged sender":       {`{"recipient":{"kind":"agent","agentId":"bob-assistant"},"payload":1,"sender":{"kind":"human","userId":"alice"}}`, &post{}, "failed", "invalid_tool_arguments"},
		"two ids":             {`{"recipient":{"kind":"agent","agentId":"bob-assistant","userId":"x"},"payload":1}`, &post{}, "failed", "invalid_tool_arguments"},
		"an untrimmed id":     {`{"recipient":{"kind":"agent","agentId":" bob"},"payload":1}`, &post{}, "failed", "tool_requirement_resolution_failed"},
		"not prepared":        {args, &post{expect: func(contract.MessageEnvelope) (kernel.PendingReply, error) { return nil, errors.New("x") }}, "failed", "message_request_not_prepared"},
		"prepared nothing":    {args, &post{expect: func(contract.MessageEnvelope) (kernel.PendingReply, error) { return nil, nil }}, "failed", "message_request_not_prepared"},
		"not accepted": {args, &post{send: func(m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
			return contract.MessageDeliveryResult{MessageID: m.ID, Timestamp: m.CreatedAt, Status: "denied", Error: &contract.ProtocolError{Code: "c", Message: "m"}}, nil
		}}, "failed", "message_request_not_accepted"},
		"not sent": {args, &post{send: func(contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
			return contract.MessageDeliveryResult{}, errors.New("x")
		}}, "failed", "message_request_not_accepted"},
		"no reply": {args, &post{reply: func(contract.MessageEnvelope) (contract.MessageEnvelope, error) {
			return contract.MessageEnvelope{}, errors.New("x")
		}}, "failed", "message_reply_resolution_failed"},
		"reply to another":     {args, changed(func(m *contract.MessageEnvelope) { m.ReplyTo = "x" }), "failed", "invalid_message_reply"},
		"reply of another":     {args, changed(func(m *contract.MessageEnvelope) { m.Sender = contract.Agent("mallory") }), "failed", "invalid_message_reply"},
		"reply for another":    {args, changed(func(m *contract.MessageEnvelope) { m.Receiver = bobsAssistant }), "failed", "invalid_message_reply"},
		"reply in other trace": {args, changed(func(m *contract.MessageEnvelope) { m.TraceID = "x" }), "failed", "invalid_message_reply"},
		"malformed reply":      {args, changed(func(m *contract.MessageEnvelope) { m.Payload = nil }), "failed", "invalid_message_reply"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(mayMessage().MaxUses(5).Obj())
			w.Options.Transport, w.Options.Replies = tt.post, tt.post
			turn := w.Turn(t)
			r := turn.Invoke(t.Context(), kerneltest.Call("call-1", "messages.request", tt.args))
			code := ""
			if r.Error != nil {
				code = r.Error.Code
			}
			if r.Status != tt.status || code != tt.code {
				t.Fatalf("result = %+v, %+v; want %s %s", r, r.Error, tt.status, tt.code)
			}
			if tt.post.prepared != tt.post.closed {
				t.Errorf("%d replies awaited, %d closed", tt.post.prepared, tt.post.closed)
			}
			if strings.HasPrefix(code, "message_re") && code != "message_request_not_prepared" || code == "invalid_message_reply" || code == "" {
				if w.Uses.Spent("send") != 1 {
					t.Errorf("%d uses were spent, want 1", w.Uses.Spent("send"))
				}
				if e := lastEvent(t, w, audit.MessageSent); e.MessageID != tt.post.sent[0].ID || e.Tool != "messages.request" || e.OperationID != "call-1" {
					t.Errorf("recorded %+v", e)
				}
			}
			if code != "" {
				return
			}
			if string(r.Output) != `{"ships":20260930}` {
				t.Errorf("output = %s", r.Output)
			}
			want := message()
			want.ID, want.Payload = tt.post.sent[0].ID, contract.Value(`{"n":12345678901234567890}`)
			if diff := cmp.Diff(want, tt.post.sent[0]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestMessagesRequestNeedsBothPorts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options func(o *kernel.Options)
		want    bool
	}{
		"both":      {func(o *kernel.Options) { o.Transport, o.Replies = &post{}, &post{} }, true},
		"transport": {func(o *kernel.Options) { o.Transport = &post{} }, false},
		"replies":   {func(o *kernel.Options) { o.Replies = &post{} }, false},
	} {
		w := kerneltest.New(mayMessage().Obj())
		tt.options(&w.Options)
		c, err := w.Turn(t).Catalog(t.Context())
		if err != nil || c.Has("messages.request") != tt.want {
			t.Errorf("%s: %v, %v", name, c.Names(), err)
		}
	}
}

func TestAwaitingAReplyEndsWithTheCall(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(mayMessage().Obj())
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	p := &post{}
	p.send = func(m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
		cancel()
		return contract.MessageDeliveryResult{MessageID: m.ID, Timestamp: m.CreatedAt, Status: "accepted"}, nil
	}
	w.Options.Transport, w.Options.Replies = p, p
	r := w.Turn(t).Invoke(ctx, kerneltest.Call("c", "messages.request", `{"recipient":{"kind":"agent","agentId":"bob-assistant"},"payload":null}`))
	if r.Error == nil || r.Error.Code != "message_reply_resolution_failed" || p.closed != 1 {
		t.Errorf("result = %+v, closed %d", r.Error, p.closed)
	}
}

func TestEscalateReachedInTheKernelDoesNothing(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.Escalation())
	r := w.Turn(t).Invoke(t.Context(), kerneltest.Call("c", "sharedos.escalate", `{"reason":"why"}`))
	if r.Status != "failed" || r.Error.Code != "escalation_not_terminated" {
		t.Errorf("result = %+v", r)
	}
	if r := kerneltest.New().Turn(t).Invoke(t.Context(), kerneltest.Call("c", "sharedos.escalate", `{"reason":"why"}`)); r.Error.Code != "tool_unavailable" {
		t.Errorf("without a grant: %+v", r.Error)
	}
}
