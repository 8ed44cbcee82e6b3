package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// route is one row of the table that routing, the OpenAPI document and the reference
// come from.
type route struct {
	method, path string
	// operation is the OpenAPI operationId and the client's method.
	operation   string
	summary     string
	description string
	// public routes resolve no context.
	public bool
	// request is the body's type; nil reads no body.
	request reflect.Type
	// response is the type of a 2xx body; list says that it is an array of them.
	response reflect.Type
	list     bool
	// accepted says that a 202 is possible beside the 200.
	accepted bool
	// serve does the work and returns the status and body of a 2xx.
	serve func(x *exchange, body []byte) (int, any, *failure)
}

// health is the body of GET /health.
type health struct {
	Status          string `json:"status"`
	ProtocolVersion string `json:"protocolVersion"`
}

// routes is the table. A path's methods are in the order of the Allow header.
func routes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/health", operation: "health", public: true,
			summary:     "Liveness and protocol version",
			description: "Resolves no context, and is safe for a load balancer's probe.",
			response:    reflect.TypeFor[health](),
			serve: func(*exchange, []byte) (int, any, *failure) {
				return http.StatusOK, health{Status: "ok", ProtocolVersion: contract.Version}, nil
			},
		},
		{
			method: http.MethodGet, path: "/openapi.json", operation: "openapi",
			summary:     "This document",
			description: "Unlike /health it resolves a context.",
			response:    reflect.TypeFor[contract.Object](),
			serve: func(x *exchange, _ []byte) (int, any, *failure) {
				return http.StatusOK, encoded(x.h.document), nil
			},
		},
		taking(route{
			method: http.MethodPost, path: "/v1/authorize", operation: "authorize",
			summary:     "Ask whether an action would be allowed",
			description: "Nothing is performed and no bounded use is spent. A refusal is a 200: the decision is the payload.",
		}, API.Authorize, nil),
		listing(route{
			method: http.MethodGet, path: "/v1/tools", operation: "listTools",
			summary:     "The effective catalogue of tools",
			description: "Registered, enabled by namespace, and allowed by some grant. Being listed is not permission to invoke.",
		}, API.ListTools),
		giving(route{
			method: http.MethodGet, path: "/v1/reach", operation: "reach",
			summary:     "Where the context may operate",
			description: "Descriptive, never permissive, without the authority behind it. A reach that cannot be established is a 200 with status unavailable.",
		}, API.Reach),
		giving(route{
			method: http.MethodGet, path: "/v1/tools/namespaces", operation: "listToolNamespaces",
			summary:     "Tool namespaces, and which are enabled",
			description: "Being enabled is product control, not authority.",
		}, API.ListToolNamespaces),
		taking(route{
			method: http.MethodPut, path: "/v1/tools/namespaces", operation: "updateToolNamespaces",
			summary:     "Enable and disable tool namespaces",
			description: "An idempotent patch. The answer is what took effect, which may be less than what was asked for.",
		}, API.UpdateToolNamespaces, nil),
		taking(route{
			method: http.MethodPost, path: "/v1/tools/invoke", operation: "invokeTool",
			summary:     "Call a tool",
			description: "The exact resource is derived from the parsed arguments and authorized on its own. A denied or failed call is a 200: read its status.",
		}, API.InvokeTool, func(c *contract.ToolCall) string { return c.TraceID }),
		taking(route{
			method: http.MethodPost, path: "/v1/resources/invoke", operation: "invokeResource",
			summary:     "Operate on a resource plane directly",
			description: "Beside the tool layer: tool namespaces do not gate it, grants do. A denied or failed operation is a 200: read its status.",
		}, API.InvokeResource, nil),
		delivering(taking(route{
			method: http.MethodPost, path: "/v1/messages", operation: "sendMessage",
			summary:     "Send a message",
			description: "Messages coordinate and never carry authority. 202 when the delivery was accepted; delivered, denied and failed are a 200.",
		}, API.SendMessage, func(m *contract.MessageEnvelope) string { return m.TraceID })),
		taking(route{
			method: http.MethodPost, path: "/v1/turns", operation: "executeTurn",
			summary:     "Run one bounded agent turn",
			description: "The server lists the visible tools itself. One request, one answer: the events come with the result. A client that leaves cancels the turn.",
		}, API.ExecuteTurn, func(r *contract.RemoteExecutionRequest) string { return r.Message.TraceID }),
	}
}

// outcome is what a call of the API amounts to.
func outcome(answer any, err error) (int, any, *failure) {
	if err != nil {
		return 0, nil, failureOf(err)
	}
	return http.StatusOK, answer, nil
}

// giving completes a route that takes no body.
func giving[R any](rt route, call func(API, context.Context, contract.AccessContext) (R, error)) route {
	rt.response = reflect.TypeFor[R]()
	rt.serve = func(x *exchange, _ []byte) (int, any, *failure) {
		answer, err := call(x.h.opts.API, x.r.Context(), x.ac)
		return outcome(answer, err)
	}
	return rt
}

// listing completes a route that answers with an array.
func listing[R any](rt route, call func(API, context.Context, contract.AccessContext) ([]R, error)) route {
	rt.response, rt.list = reflect.TypeFor[R](), true
	rt.serve = func(x *exchange, _ []byte) (int, any, *failure) {
		answer, err := call(x.h.opts.API, x.r.Context(), x.ac)
		if answer == nil {
			answer = []R{}
		}
		return outcome(answer, err)
	}
	return rt
}

// taking completes a route whose body is one object of the contract. Trace, where
// there is one, is the object's own trace.
func taking[Q, R any](rt route, call func(API, context.Context, contract.AccessContext, Q) (R, error), trace func(*Q) string) route {
	rt.request, rt.response = reflect.TypeFor[Q](), reflect.TypeFor[R]()
	rt.serve = func(x *exchange, body []byte) (int, any, *failure) {
		request, failed := parse[Q](body)
		if failed != nil {
			return 0, nil, failed
		}
		if trace != nil {
			x.traced(trace(&request))
		}
		answer, err := call(x.h.opts.API, x.r.Context(), x.ac, request)
		return outcome(answer, err)
	}
	return rt
}

// delivering makes a receipt that was only accepted a 202.
func delivering(rt route) route {
	serve := rt.serve
	rt.accepted = true
	rt.serve = func(x *exchange, body []byte) (int, any, *failure) {
		status, answer, failed := serve(x, body)
		if receipt, ok := answer.(contract.MessageDeliveryResult); ok && receipt.Status == contract.DeliveryAccepted {
			status = http.StatusAccepted
		}
		return status, answer, failed
	}
	return rt
}
