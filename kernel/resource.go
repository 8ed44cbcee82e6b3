package kernel

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// InvokeResource runs one operation on a resource plane, beside the tool layer:
// tool namespaces do not gate it, grants do. The operation's own context is
// replaced by the turn's.
func (t *Turn) InvokeResource(ctx context.Context, op contract.ResourceOperation) contract.ResourceResult {
	ctx, end := t.k.span(ctx, Span{Name: "resource", TraceID: t.ac.TraceID})
	result, record := t.operate(ctx, op)
	record.Type, record.OperationID = audit.ResourceInvoked, op.OperationID
	record.Outcome, record.AuthorityHash = audit.Outcome(result.Status), t.auth.hash
	record.Resource, record.Action = safeResource(cloneResource(op.Resource)), op.Action
	if result.Error != nil {
		record.Reason, record.FailClosed = result.Error.Code, failsClosed(result.Error.Code)
	}
	if err := t.follow(ctx, record); err != nil {
		result = t.resourceAnswer(op, contract.StatusFailed, protocolError(contract.CodeAuditUnavailable))
	}
	code := ""
	if result.Error != nil {
		code = result.Error.Code
	}
	end(result.Status, code)
	return result
}

func (t *Turn) resourceAnswer(op contract.ResourceOperation, status contract.Status, failure *contract.ProtocolError) contract.ResourceResult {
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: status, Error: failure, CompletedAt: contract.At(t.k.opts.Clock()),
	}
}

// operate authorizes and executes; the event it returns holds what only it knows.
func (t *Turn) operate(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, audit.Event) {
	var e audit.Event
	fail := func(code string) (contract.ResourceResult, audit.Event) {
		return t.resourceAnswer(op, contract.StatusFailed, protocolError(code)), e
	}
	op.Context = nil
	if op.Validate() != nil {
		e.Cause = "invalid_operation"
		return t.resourceAnswer(op, contract.StatusDenied, protocolError(contract.CodeInvalidRequest)), e
	}
	provider := t.k.opts.Resources[op.Resource.Namespace]
	m := modeConsume
	if provider == nil {
		m = modeCheck // nothing can happen, so no use is spent on it
	}
	need := contract.CapabilityRequirement{Resource: op.Resource, Action: op.Action}
	decision := t.answer(ctx, need, m, op.OperationID)
	e.GrantID = decision.MatchedGrantID
	switch {
	case decision.ReasonCode == contract.CodeAuditUnavailable:
		return fail(contract.CodeAuditUnavailable)
	case !decision.Allowed:
		failure := protocolError(decision.ReasonCode)
		failure.Details = detailsOf(decision.RequiredAuthority)
		return t.resourceAnswer(op, contract.StatusDenied, failure), e
	case provider == nil:
		return fail(contract.CodeResourceProviderMissing)
	}
	ac := t.Context()
	op.Context = &ac
	op.Resource = cloneResource(op.Resource)
	result, err := guarded(func() (contract.ResourceResult, error) { return provider.Invoke(ctx, op) })
	if err != nil {
		var failure *Failure
		if errors.As(err, &failure) && failure.Err.Validate() == nil {
			coded := failure.Err
			status := contract.StatusFailed
			if failure.Status == contract.StatusDenied {
				status = contract.StatusDenied
			}
			return t.resourceAnswer(op, status, &coded), e
		}
		return fail(contract.CodeResourceExecutionFailed)
	}
	if result.OperationID != op.OperationID || result.Validate() != nil {
		return fail(contract.CodeInvalidResourceResult)
	}
	return result, e
}
