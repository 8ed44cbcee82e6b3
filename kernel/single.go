package kernel

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// A kernel call outside any turn is a turn of one operation.

func (k *Kernel) one(ctx context.Context, ac contract.AccessContext) (*Turn, *Refusal) {
	t, err := k.open(ctx, ac, nil, true)
	if err == nil {
		return t, nil
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = refusal(contract.CodeAuthorityUnavailable)
	}
	return nil, r
}

// status is denied for a refusal and failed where nothing could be recorded.
func (r *Refusal) status() contract.Status {
	if r.Code == contract.CodeAuditUnavailable {
		return contract.StatusFailed
	}
	return contract.StatusDenied
}

// refused records an operation that no turn could be opened for.
func (k *Kernel) refused(ctx context.Context, ac contract.AccessContext, r *Refusal, e audit.Event) *Refusal {
	if r.Code == contract.CodeAuditUnavailable || ac.Validate() != nil {
		return r
	}
	e.Outcome, e.Reason, e.FailClosed = audit.Denied, r.Code, failsClosed(r.Code)
	if err := k.Record(context.WithoutCancel(ctx), ac, e); err != nil {
		return refusal(contract.CodeAuditUnavailable)
	}
	return r
}

// Authorize is [Turn.Authorize] in a turn of one operation.
func (k *Kernel) Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) contract.AuthorizationDecision {
	t, r := k.one(ctx, ac)
	if r != nil {
		r = k.refused(ctx, ac, r, audit.Event{
			Type: audit.AuthorizationChecked, Resource: safeResource(cloneResource(need.Resource)), Action: need.Action,
		})
		return contract.AuthorizationDecision{ReasonCode: r.Code}
	}
	return t.Authorize(ctx, need)
}

// Tools is [Turn.Catalog] in a turn of one operation.
func (k *Kernel) Tools(ctx context.Context, ac contract.AccessContext) (*Catalogue, error) {
	t, r := k.one(ctx, ac)
	if r != nil {
		return nil, k.refused(ctx, ac, r, audit.Event{Type: audit.ToolCatalogListed})
	}
	return t.Catalog(ctx)
}

// Reach is [Turn.Reach] in a turn of one operation.
func (k *Kernel) Reach(ctx context.Context, ac contract.AccessContext) contract.ReachResult {
	t, r := k.one(ctx, ac)
	if r != nil {
		return contract.ReachResult{Status: reachUnavailable, ReasonCode: contract.CodeAuthorityUnavailable}
	}
	return t.Reach(ctx)
}

// InvokeTool is [Turn.Invoke] in a turn of one operation.
func (k *Kernel) InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) contract.ToolResult {
	t, r := k.one(ctx, ac)
	if r != nil {
		r = k.refused(ctx, ac, r, audit.Event{Type: audit.ToolInvoked, Tool: call.Tool, OperationID: call.ID})
		return contract.ToolResult{
			CallID: call.ID, Tool: call.Tool, Status: r.status(), Error: protocolError(r.Code),
			CompletedAt: contract.At(k.opts.Clock()),
		}
	}
	return t.Invoke(ctx, call)
}

// InvokeResource is [Turn.InvokeResource] in a turn of one operation.
func (k *Kernel) InvokeResource(ctx context.Context, ac contract.AccessContext, op contract.ResourceOperation) contract.ResourceResult {
	t, r := k.one(ctx, ac)
	if r != nil {
		r = k.refused(ctx, ac, r, audit.Event{
			Type: audit.ResourceInvoked, OperationID: op.OperationID, Action: op.Action,
			Resource: safeResource(cloneResource(op.Resource)),
		})
		return contract.ResourceResult{
			OperationID: op.OperationID, Status: r.status(), Error: protocolError(r.Code),
			CompletedAt: contract.At(k.opts.Clock()),
		}
	}
	return t.InvokeResource(ctx, op)
}

// SendMessage is [Turn.Send] in a turn of one operation.
func (k *Kernel) SendMessage(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) contract.MessageDeliveryResult {
	t, r := k.one(ctx, ac)
	if r != nil {
		r = k.refused(ctx, ac, r, audit.Event{Type: audit.MessageSent, MessageID: m.ID, OperationID: m.ID})
		status := contract.DeliveryDenied
		if r.status() == contract.StatusFailed {
			status = contract.DeliveryFailed
		}
		return contract.MessageDeliveryResult{
			MessageID: m.ID, Status: status, Error: protocolError(r.Code), Timestamp: contract.At(k.opts.Clock()),
		}
	}
	return t.Send(ctx, m)
}
