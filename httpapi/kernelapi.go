package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// NewKernelAPI is the ordinary [API]: every operation is a turn of its own in the
// kernel, and a turn is run by turns. Without turns, POST /v1/turns answers a failed
// turn with code [CodeTurnsNotConfigured].
func NewKernelAPI(k *kernel.Kernel, turns TurnRunner) API { return &kernelAPI{k, turns} }

// CodeTurnsNotConfigured is the code of a turn that nothing can run.
const CodeTurnsNotConfigured = "turn_runner_not_configured"

type kernelAPI struct {
	k     *kernel.Kernel
	turns TurnRunner
}

// Authorize implements [API].
func (a *kernelAPI) Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
	return a.k.Authorize(ctx, ac, need), nil
}

// ListTools implements [API].
func (a *kernelAPI) ListTools(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error) {
	catalogue, err := a.k.Tools(ctx, ac)
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	return catalogue.Definitions(), nil
}

// Reach implements [API].
func (a *kernelAPI) Reach(ctx context.Context, ac contract.AccessContext) (contract.ReachResult, error) {
	return a.k.Reach(ctx, ac), nil
}

// ListToolNamespaces implements [API].
func (a *kernelAPI) ListToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	catalogue, err := a.k.ToolNamespaces(ctx, ac)
	if err != nil {
		return contract.ToolNamespaceCatalog{}, fmt.Errorf("list tool namespaces: %w", err)
	}
	return catalogue, nil
}

// UpdateToolNamespaces implements [API].
func (a *kernelAPI) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error) {
	catalogue, err := a.k.UpdateToolNamespaces(ctx, ac, update)
	if r, ok := errors.AsType[*kernel.Refusal](err); ok && r.Code == contract.CodeInvalidRequest {
		return contract.ToolNamespaceCatalog{}, &InvalidRequestError{Message: r.Message, Err: err}
	}
	if err != nil {
		return contract.ToolNamespaceCatalog{}, fmt.Errorf("update tool namespaces: %w", err)
	}
	return catalogue, nil
}

// InvokeTool implements [API].
func (a *kernelAPI) InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) (contract.ToolResult, error) {
	return a.k.InvokeTool(ctx, ac, call), nil
}

// InvokeResource implements [API].
func (a *kernelAPI) InvokeResource(ctx context.Context, ac contract.AccessContext, op contract.RemoteResourceOperation) (contract.ResourceResult, error) {
	return a.k.InvokeResource(ctx, ac, op.In(&ac)), nil
}

// SendMessage implements [API].
func (a *kernelAPI) SendMessage(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return a.k.SendMessage(ctx, ac, m), nil
}

// ExecuteTurn implements [API]. A runner's result that is malformed, or another
// turn's, is an error.
func (a *kernelAPI) ExecuteTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	if a.turns == nil {
		now := contract.At(a.k.Now())
		return contract.ExecutionResult{
			Version: contract.Version, ExecutionID: req.ExecutionID, TraceID: ac.TraceID, Status: contract.StatusFailed,
			Error: &contract.ProtocolError{
				Code: CodeTurnsNotConfigured, Message: "this server runs no turns: no turn runner is configured",
			},
			Events: []contract.ExecutionEvent{}, StartedAt: now, CompletedAt: now,
		}, nil
	}
	result, err := a.turns.RunTurn(ctx, ac, req)
	if err != nil {
		return contract.ExecutionResult{}, fmt.Errorf("run turn: %w", err)
	}
	if result.Events == nil {
		result.Events = []contract.ExecutionEvent{}
	}
	if err := result.Validate(); err != nil {
		return contract.ExecutionResult{}, fmt.Errorf("turn runner's result: %w", err)
	}
	if result.ExecutionID != req.ExecutionID {
		return contract.ExecutionResult{}, errors.New("turn runner's result: executionId is another turn's")
	}
	return result, nil
}
