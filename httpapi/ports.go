package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// API is what the routes call. A denied operation is an answer, not an error; the
// errors that mean something are [*PermissionError] (403) and [*InvalidRequestError]
// (400), and any other is a 500 without detail. An implementation ends its work
// with ctx, which ends when the client is gone.
type API interface {
	Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error)
	ListTools(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error)
	Reach(ctx context.Context, ac contract.AccessContext) (contract.ReachResult, error)
	ListToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error)
	UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error)
	InvokeTool(ctx context.Context, ac contract.AccessContext, call contract.ToolCall) (contract.ToolResult, error)
	InvokeResource(ctx context.Context, ac contract.AccessContext, op contract.RemoteResourceOperation) (contract.ResourceResult, error)
	SendMessage(ctx context.Context, ac contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error)
	ExecuteTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error)
}

// ContextResolver is the one place identity enters: it says who is calling, from
// the head of the request alone. The request it is given has no body, and its
// context ends with the client's interest.
//
// Its errors are [ErrUnauthenticated] (401, the same whatever was asked for),
// [*PermissionError] (403) and [*InvalidRequestError] (400, an unlisted purpose,
// say); any other is a 500 without detail. The context it returns is validated
// again: a malformed one is a 500 invalid_access_context.
type ContextResolver interface {
	ResolveContext(r *http.Request) (contract.AccessContext, error)
}

// ContextResolverFunc adapts a function to [ContextResolver].
type ContextResolverFunc func(r *http.Request) (contract.AccessContext, error)

// ResolveContext implements [ContextResolver].
func (f ContextResolverFunc) ResolveContext(r *http.Request) (contract.AccessContext, error) {
	return f(r)
}

// TurnRunner runs one bounded turn to its end. A turn that was denied, failed or
// cancelled is a result. The runner stops the turn when ctx ends.
type TurnRunner interface {
	RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error)
}

// ErrUnauthenticated is a resolver's answer to a caller it does not know. It may be
// wrapped: the cause reaches [Options.OnError] and never the caller.
var ErrUnauthenticated = errors.New("unauthenticated")

// PermissionError refuses a caller that is known: 403 permission_denied. The kernel
// was not asked.
type PermissionError struct {
	// Message is for the caller; empty is a general sentence.
	Message string
	// Err is the cause, for [Options.OnError] only.
	Err error
}

// Error implements error.
func (e *PermissionError) Error() string { return describe("permission denied", e.Message, e.Err) }

// Unwrap returns the cause.
func (e *PermissionError) Unwrap() error { return e.Err }

// InvalidRequestError refuses a request for its shape: 400 invalid_request.
type InvalidRequestError struct {
	// Message is for the caller: the field or header, the rule it broke, the fix.
	Message string
	// Err is the cause, for [Options.OnError] only.
	Err error
}

// Error implements error.
func (e *InvalidRequestError) Error() string { return describe("invalid request", e.Message, e.Err) }

// Unwrap returns the cause.
func (e *InvalidRequestError) Unwrap() error { return e.Err }

func describe(what, message string, cause error) string {
	if message != "" {
		what += ": " + message
	}
	if cause != nil {
		what += ": " + cause.Error()
	}
	return what
}
