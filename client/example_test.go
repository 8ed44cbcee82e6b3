package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/sharedos-dev/operator/client"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// exampleServer stands for https://sharedos.internal.example: a real kernel whose
// caller may read below Work, be asked to run, and write to Alice.
func exampleServer() *httptest.Server {
	w := kerneltest.New(
		kerneltest.Admission(),
		kerneltest.MakeGrant("grant-1").Descendants("files", []string{"Work"}, "read").Obj(),
		kerneltest.MakeGrant("grant-2").Exact(contract.NamespaceMessaging, []string{"human", "alice"}, contract.ActionSend).Obj(),
	)
	plane := &kerneltest.Plane{}
	w.Options.Tools, w.Options.Transport, w.Options.Namespaces = kerneltest.FilesTools(plane), post{}, store{}
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
	k, err := kernel.New(w.Options)
	if err != nil {
		panic(err)
	}
	h, err := httpapi.NewHandler(httpapi.Options{
		API:      httpapi.NewKernelAPI(k, turns{envelope.New(k, envelope.Options{})}),
		Resolver: resolver(w.Context()),
	})
	if err != nil {
		panic(err)
	}
	return httptest.NewServer(h)
}

func ExampleNew() {
	server := exampleServer()
	defer server.Close()

	c, err := client.New(server.URL,
		client.WithTokenFunc(func(context.Context) (string, error) { return "minted-for-this-call", nil }),
		client.WithPurpose("atlas-status"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	health, err := c.Health(context.Background())
	fmt.Println(health.Status, health.ProtocolVersion, err)
	// Output: ok 1 <nil>
}

func ExampleClient_Authorize() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	for _, top := range []string{"Work", "Private"} {
		decision, err := c.Authorize(context.Background(), contract.CapabilityRequirement{
			Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{top, "atlas"}}, Action: "read",
		})
		fmt.Println(decision.Allowed, decision.ReasonCode, err)
	}
	// Output:
	// true allowed <nil>
	// false no_matching_grant <nil>
}

func ExampleClient_ListTools() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	tools, err := c.ListTools(context.Background())
	// A model is told no more than this.
	for _, tool := range contract.PublishTools(tools) {
		fmt.Println(tool.Name, tool.Metadata.Namespace, err)
	}
	// Output: files.read files <nil>
}

func ExampleClient_Reach() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	reach, err := c.Reach(context.Background())
	for _, place := range reach.Reach {
		fmt.Println(place.Namespace, place.Path, place.Actions, place.Scope, err)
	}
	// Output:
	// files [Work] [read] descendants <nil>
	// sharedos.execution [agent alice-assistant] [invoke] exact <nil>
	// sharedos.messaging [human alice] [send] exact <nil>
}

func ExampleClient_UpdateToolNamespaces() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	before, err := c.ListToolNamespaces(context.Background())
	fmt.Println(before.Summary.Enabled, err)
	after, err := c.UpdateToolNamespaces(context.Background(), contract.ToolNamespaceUpdate{Disable: []string{"sharedos"}})
	fmt.Println(after.Summary.Enabled, err) // what took effect, which may be less
	// Output:
	// 2 <nil>
	// 1 <nil>
}

func ExampleClient_InvokeTool() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	result, err := c.InvokeTool(context.Background(), contract.ToolCall{
		ID: "call-1", Tool: "files.read", Arguments: contract.Object(`{"path":["Work","atlas"]}`),
		TraceID: "trace-1", RequestedAt: contract.At(kerneltest.Epoch),
	})
	// A denied call is a result, not an error.
	fmt.Println(result.Status, string(result.Output), err)
	// Output: succeeded {"path":["Work","atlas"]} <nil>
}

func ExampleClient_InvokeResource() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	result, err := c.InvokeResource(context.Background(), contract.RemoteResourceOperation{
		OperationID: "op-1", Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Private"}}, Action: "read",
	})
	fmt.Println(result.Status, result.Error.Code, err)
	// Output: denied no_matching_grant <nil>
}

func ExampleClient_SendMessage() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	receipt, err := c.SendMessage(context.Background(), contract.MessageEnvelope{
		Version: contract.Version, ID: "message-1", Sender: contract.Agent("alice-assistant"), Receiver: contract.Human("alice"),
		Purpose: "atlas-status", Payload: contract.Value(`{"text":"Atlas ships."}`), TraceID: "trace-1", CreatedAt: contract.At(kerneltest.Epoch),
	})
	fmt.Println(receipt.Status, err)
	// Output: accepted <nil>
}

func ExampleClient_ExecuteTurn() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL, client.WithToken("token"))

	result, err := c.ExecuteTurn(context.Background(), contract.RemoteExecutionRequest{
		Version: contract.Version, ExecutionID: "execution-1", Agent: contract.Agent("alice-assistant"),
		Message: contract.MessageEnvelope{
			Version: contract.Version, ID: "message-1", Sender: contract.Human("alice"), Receiver: contract.Agent("alice-assistant"),
			Purpose: "atlas-status", Payload: contract.Value(`{"text":"When does Atlas ship?"}`), TraceID: "trace-1", CreatedAt: contract.At(kerneltest.Epoch),
		},
	})
	fmt.Println(result.Status, string(result.Output), len(result.Events), err)
	// Output: succeeded {"answer":"2026-09-30."} 2 <nil>
}

func ExampleError() {
	server := exampleServer()
	defer server.Close()
	c, _ := client.New(server.URL) // no token

	_, err := c.Reach(context.Background(), client.RequestID("request-1"))
	if failed, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(failed.Status, failed.Code, failed.RequestID)
	}
	// Output: 401 unauthenticated request-1
}
