package kernel

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Send delivers one message, authorized against its receiver. A message
// coordinates; it never carries authority.
func (t *Turn) Send(ctx context.Context, m contract.MessageEnvelope) contract.MessageDeliveryResult {
	ctx, end := t.k.span(ctx, Span{Name: "message", TraceID: t.ac.TraceID})
	need := sendRequirement(m.Receiver, t.ac.Owner)
	e := audit.Event{
		Type: audit.MessageSent, MessageID: m.ID, Receiver: &m.Receiver, OperationID: m.ID,
		Resource: safeResource(need.Resource), Action: need.Action, AuthorityHash: t.auth.hash,
	}
	receipt := t.deliverAuthorized(ctx, m, need, &e)
	e.Outcome = deliveryOutcome(receipt.Status)
	if receipt.Error != nil {
		e.Reason, e.FailClosed = receipt.Error.Code, failsClosed(receipt.Error.Code)
	}
	if err := t.follow(ctx, e); err != nil {
		receipt = t.undelivered(m, contract.DeliveryFailed, contract.CodeAuditUnavailable)
	}
	end(contract.Status(e.Outcome), e.Reason)
	return receipt
}

// sendRequirement is what sending to a receiver needs.
func sendRequirement(receiver, owner contract.Address) contract.CapabilityRequirement {
	return contract.CapabilityRequirement{
		Resource: contract.ResourceRef{
			Namespace: contract.NamespaceMessaging, Path: contract.AddressPath(receiver), Owner: &owner,
		},
		Action: contract.ActionSend,
	}
}

func deliveryOutcome(status string) audit.Outcome {
	switch status {
	case contract.DeliveryAccepted, contract.DeliveryDelivered:
		return audit.Succeeded
	case contract.DeliveryDenied:
		return audit.Denied
	default:
		return audit.Failed
	}
}

func (t *Turn) undelivered(m contract.MessageEnvelope, status, code string) contract.MessageDeliveryResult {
	return contract.MessageDeliveryResult{
		MessageID: m.ID, Timestamp: contract.At(t.k.opts.Clock()), Status: status, Error: protocolError(code),
	}
}

func (t *Turn) deliverAuthorized(ctx context.Context, m contract.MessageEnvelope, need contract.CapabilityRequirement, e *audit.Event) contract.MessageDeliveryResult {
	switch {
	case m.Validate() != nil:
		e.Receiver = nil
		return t.undelivered(m, contract.DeliveryDenied, contract.CodeInvalidRequest)
	case m.Sender != t.ac.Actor || m.Purpose != t.ac.Purpose || m.TraceID != t.ac.TraceID:
		return t.undelivered(m, contract.DeliveryDenied, contract.CodeMessageContextMismatch)
	case t.k.opts.Transport == nil:
		return t.undelivered(m, contract.DeliveryFailed, contract.CodeMessageTransportMissing)
	}
	decision := t.answer(ctx, need, modeConsume, m.ID)
	e.GrantID = decision.MatchedGrantID
	switch {
	case decision.ReasonCode == contract.CodeAuditUnavailable:
		return t.undelivered(m, contract.DeliveryFailed, contract.CodeAuditUnavailable)
	case !decision.Allowed:
		receipt := t.undelivered(m, contract.DeliveryDenied, decision.ReasonCode)
		receipt.Error.Details = detailsOf(decision.RequiredAuthority)
		return receipt
	}
	receipt, code := t.k.deliver(ctx, t.Context(), m)
	if code != "" {
		return t.undelivered(m, contract.DeliveryFailed, code)
	}
	return receipt
}

// deliver hands an authorized message to the transport and checks its receipt.
func (k *Kernel) deliver(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, string) {
	receipt, err := guarded(func() (contract.MessageDeliveryResult, error) { return k.opts.Transport.Send(ctx, ac, m) })
	switch {
	case err != nil:
		return receipt, contract.CodeMessageDeliveryFailed
	case receipt.MessageID != m.ID || receipt.Validate() != nil:
		return receipt, contract.CodeInvalidMessageReceipt
	default:
		return receipt, ""
	}
}
