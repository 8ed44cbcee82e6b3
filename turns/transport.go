package turns

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// CodeRecipientNotReachable is the code of a message whose recipient is no agent that
// can act: nothing takes messages for it.
const CodeRecipientNotReachable = "recipient_not_reachable"

// Transport is the [kernel.MessageTransport] of a cluster. A message to an agent
// becomes the agent's Turn, which is as durable as anything in the cluster: the
// receipt says accepted once it exists. A message that comes twice is one Turn.
type Transport struct {
	Desk *Desk
	// Kernel says whether the sender may run the recipient. It is not the kernel that
	// this is the transport of, which does not exist yet.
	Kernel *kernel.Kernel
	// Replies is told of the Turn of a message whose reply somebody waits for.
	Replies *Replies
}

var _ kernel.MessageTransport = (*Transport)(nil)

// Send implements [kernel.MessageTransport]. The kernel has authorized the sending;
// running the recipient takes sharedos.execution beside it.
func (t *Transport) Send(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	directory, err := people(ctx, t.Desk.Live, ac.NamespaceID)
	if err != nil {
		return contract.MessageDeliveryResult{}, err
	}
	from, known := nameOf(directory, ac.Actor)
	if !known {
		return contract.MessageDeliveryResult{}, fmt.Errorf("sender: %w", translate.ErrPrincipalNotFound)
	}
	order := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{
		Namespace: ac.NamespaceID, Name: nameFor(v1alpha1.OriginMessage, contract.CanonicalActor(m.Sender), m.ID),
		Labels: map[string]string{v1alpha1.LabelOrigin: v1alpha1.OriginMessage},
	}}
	earlier, err := t.Desk.find(ctx, client.ObjectKeyFromObject(order))
	if err != nil {
		return contract.MessageDeliveryResult{}, err
	}
	agent, refused := t.recipient(ctx, &ac, &m, directory, earlier)
	if refused != nil {
		return t.undelivered(&m, refused), nil
	}
	order.Spec = v1alpha1.TurnSpec{
		Principal: v1alpha1.ObjectName(agent.Principal.Name), Purpose: v1alpha1.Purpose(m.Purpose),
		Message: translate.TurnMessage(&m, from), Harness: agent.Principal.Spec.Harness,
	}
	if earlier != nil {
		return t.again(&m, order, earlier)
	}
	stop := t.Replies.expectTurn(&m, client.ObjectKeyFromObject(order))
	want := order.DeepCopy()
	made, err := t.Desk.create(ctx, order)
	if err != nil {
		stop()
	}
	if message, ok := misfit(err); ok {
		return t.undelivered(&m, &refusal{contract.StatusFailed, contract.CodeInvalidRequest, message}), nil
	}
	if err != nil {
		return contract.MessageDeliveryResult{}, err
	}
	if !made {
		return t.again(&m, want, order)
	}
	t.Replies.made(&m, order)
	return t.accepted(&m, order)
}

// again answers for a message whose id has a Turn: it is the same message, or another
// one that took its id.
func (t *Transport) again(m *contract.MessageEnvelope, want, is *v1alpha1.Turn) (contract.MessageDeliveryResult, error) {
	if want.Spec.Principal != is.Spec.Principal || want.Spec.Purpose != is.Spec.Purpose || !equality.Semantic.DeepEqual(want.Spec.Message, is.Spec.Message) {
		return t.undelivered(m, &refusal{contract.StatusDenied, contract.CodeInvalidRequest, "id: another message has it; choose another"}), nil
	}
	return t.accepted(m, is)
}

// recipient is the agent that the message is to run, if the sender may run it. Until
// that is known the sender learns nothing of the agent; and no use is spent on what
// cannot happen or has happened.
func (t *Transport) recipient(
	ctx context.Context, ac *contract.AccessContext, m *contract.MessageEnvelope, d *translate.Directory, earlier *v1alpha1.Turn,
) (translate.Identity, *refusal) {
	if m.Receiver.Kind != contract.KindAgent {
		return translate.Identity{}, unreachable()
	}
	agent, exists := agentAt(d, m.Receiver)
	fault := obstacle(&agent, m.Purpose)
	if !exists {
		agent = translate.Identity{Actor: m.Receiver, Authority: ac.Authority, Owner: ac.Owner}
		fault = unreachable()
	} else if err := fits("payload", m.Payload); err != nil && fault == nil {
		fault = &refusal{contract.StatusDenied, contract.CodeInvalidRequest, err.Error()}
	}
	if decision := mayRun(ctx, t.Kernel, *ac, agent, fault == nil && earlier == nil); !decision.Allowed {
		return agent, denied(decision.ReasonCode)
	}
	return agent, fault
}

func unreachable() *refusal {
	return &refusal{contract.StatusFailed, CodeRecipientNotReachable, "the recipient is no agent that can act"}
}

func (t *Transport) accepted(m *contract.MessageEnvelope, turn *v1alpha1.Turn) (contract.MessageDeliveryResult, error) {
	metadata, err := json.Marshal(map[string]string{"turn": turn.Name, "executionId": turn.EffectiveExecutionID()})
	if err != nil {
		return contract.MessageDeliveryResult{}, fmt.Errorf("encode the receipt: %w", err)
	}
	return contract.MessageDeliveryResult{
		MessageID: m.ID, Timestamp: contract.At(t.Kernel.Now()), Status: contract.DeliveryAccepted, Metadata: metadata,
	}, nil
}

func (t *Transport) undelivered(m *contract.MessageEnvelope, why *refusal) contract.MessageDeliveryResult {
	status := contract.DeliveryDenied
	if why.status == contract.StatusFailed {
		status = contract.DeliveryFailed
	}
	return contract.MessageDeliveryResult{
		MessageID: m.ID, Timestamp: contract.At(t.Kernel.Now()), Status: status,
		Error: &contract.ProtocolError{Code: why.code, Message: why.message},
	}
}
