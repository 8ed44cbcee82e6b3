package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Health is the answer of GET /health.
type Health struct {
	Status          string `json:"status"`
	ProtocolVersion string `json:"protocolVersion"`
}

// Validate implements [contract.Validator]: a server of another protocol version is
// none to talk to.
func (h Health) Validate() error {
	switch {
	case h.Status != "ok":
		return &contract.FieldError{Path: "status", Rule: contract.RuleValue, Detail: `must be "ok"`}
	case h.ProtocolVersion != contract.Version:
		return &contract.FieldError{Path: "protocolVersion", Rule: contract.RuleValue, Detail: fmt.Sprintf("must be %q", contract.Version)}
	default:
		return nil
	}
}

// Health asks whether the server lives and speaks this protocol: GET /health.
func (c *Client) Health(ctx context.Context, opts ...CallOption) (Health, error) {
	return call(ctx, c, http.MethodGet, "/health", nil, opts, contract.Unmarshal[Health], ok200)
}

// OpenAPI returns the server's description of itself: GET /openapi.json.
func (c *Client) OpenAPI(ctx context.Context, opts ...CallOption) (json.RawMessage, error) {
	return call(ctx, c, http.MethodGet, "/openapi.json", nil, opts, object, ok200)
}

// Authorize asks whether an action would be allowed, without performing it:
// POST /v1/authorize.
func (c *Client) Authorize(ctx context.Context, need contract.CapabilityRequirement, opts ...CallOption) (contract.AuthorizationDecision, error) {
	return call(ctx, c, http.MethodPost, "/v1/authorize", need, opts, contract.Unmarshal[contract.AuthorizationDecision], ok200)
}

// ListTools returns the effective catalogue: GET /v1/tools. Project it with
// [contract.PublishTools] before a model sees it.
func (c *Client) ListTools(ctx context.Context, opts ...CallOption) ([]contract.ToolDefinition, error) {
	return call(ctx, c, http.MethodGet, "/v1/tools", nil, opts, tools, ok200)
}

// Reach says where the context may operate; it describes and never permits:
// GET /v1/reach.
func (c *Client) Reach(ctx context.Context, opts ...CallOption) (contract.ReachResult, error) {
	return call(ctx, c, http.MethodGet, "/v1/reach", nil, opts, contract.Unmarshal[contract.ReachResult], ok200)
}

// ListToolNamespaces returns the tool namespaces, and which are enabled:
// GET /v1/tools/namespaces.
func (c *Client) ListToolNamespaces(ctx context.Context, opts ...CallOption) (contract.ToolNamespaceCatalog, error) {
	return call(ctx, c, http.MethodGet, "/v1/tools/namespaces", nil, opts, contract.Unmarshal[contract.ToolNamespaceCatalog], ok200)
}

// UpdateToolNamespaces applies an idempotent patch and returns what took effect,
// which may be less: PUT /v1/tools/namespaces.
func (c *Client) UpdateToolNamespaces(ctx context.Context, update contract.ToolNamespaceUpdate, opts ...CallOption) (contract.ToolNamespaceCatalog, error) {
	return call(ctx, c, http.MethodPut, "/v1/tools/namespaces", update, opts, contract.Unmarshal[contract.ToolNamespaceCatalog], ok200)
}

// InvokeTool calls a tool: POST /v1/tools/invoke. A denied or failed call is a result.
func (c *Client) InvokeTool(ctx context.Context, invocation contract.ToolCall, opts ...CallOption) (contract.ToolResult, error) {
	return call(ctx, c, http.MethodPost, "/v1/tools/invoke", invocation, opts, contract.Unmarshal[contract.ToolResult],
		func(status int, r contract.ToolResult) error {
			if r.Tool != invocation.Tool {
				return errOther("tool")
			}
			return same(status, "callId", invocation.ID, r.CallID)
		})
}

// InvokeResource operates on a resource plane, beside the tool layer:
// POST /v1/resources/invoke. A denied or failed operation is a result.
func (c *Client) InvokeResource(ctx context.Context, op contract.RemoteResourceOperation, opts ...CallOption) (contract.ResourceResult, error) {
	return call(ctx, c, http.MethodPost, "/v1/resources/invoke", op, opts, contract.Unmarshal[contract.ResourceResult],
		func(status int, r contract.ResourceResult) error {
			return same(status, "operationId", op.OperationID, r.OperationID)
		})
}

// SendMessage sends a message: POST /v1/messages. A delivery that was denied or
// failed is a result.
func (c *Client) SendMessage(ctx context.Context, m contract.MessageEnvelope, opts ...CallOption) (contract.MessageDeliveryResult, error) {
	return call(ctx, c, http.MethodPost, "/v1/messages", m, opts, contract.Unmarshal[contract.MessageDeliveryResult],
		func(status int, r contract.MessageDeliveryResult) error {
			if (status == http.StatusAccepted) != (r.Status == contract.DeliveryAccepted) {
				return fmt.Errorf("status %d does not belong to a delivery that was %s", status, r.Status)
			}
			if status == http.StatusAccepted {
				status = http.StatusOK
			}
			return same(status, "messageId", m.ID, r.MessageID)
		})
}

// ExecuteTurn runs one bounded turn to its end: POST /v1/turns. A turn that was
// denied, failed, cancelled or escalated is a result. Ending ctx cancels the turn.
func (c *Client) ExecuteTurn(ctx context.Context, req contract.RemoteExecutionRequest, opts ...CallOption) (contract.ExecutionResult, error) {
	return call(ctx, c, http.MethodPost, "/v1/turns", req, opts, contract.Unmarshal[contract.ExecutionResult],
		func(status int, r contract.ExecutionResult) error {
			return same(status, "executionId", req.ExecutionID, r.ExecutionID)
		})
}

func tools(body []byte) ([]contract.ToolDefinition, error) {
	return contract.UnmarshalList[contract.ToolDefinition](body, contract.MaxCatalogueTools)
}

func object(body []byte) (json.RawMessage, error) {
	node, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	if node.Kind != strictjson.Object {
		return nil, &contract.FieldError{Rule: strictjson.RuleType, Detail: "must be an object"}
	}
	return body, nil
}

// ok200 accepts the one status of success that most routes have.
func ok200[T any](status int, _ T) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d is none of this route", status)
	}
	return nil
}

// same checks that an answer is one to what was asked.
func same(status int, field, want, got string) error {
	if err := ok200(status, got); err != nil {
		return err
	}
	if got != want {
		return errOther(field)
	}
	return nil
}

func errOther(field string) error {
	return &contract.FieldError{Path: field, Rule: contract.RuleValue, Detail: "is not the request's"}
}
