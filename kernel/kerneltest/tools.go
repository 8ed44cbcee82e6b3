package kerneltest

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// PathSchema is the input schema of a tool that takes only a path.
const PathSchema = `{"type":"object","required":["path"],"additionalProperties":false,` +
	`"properties":{"path":{"type":"array","maxItems":64,"items":{"type":"string"}}}}`

// Definition is a files tool of the given verb, whose action is the verb.
func Definition(verb string, class contract.ReadWrite) contract.ToolDefinition {
	return contract.ToolDefinition{
		Name: "files." + verb, Description: "The files." + verb + " tool.", Namespace: "files", Source: "sharedos",
		ReadWrite: class, InputSchema: contract.Object(PathSchema), RequiredCapability: Need("files", verb),
	}
}

// Plane is a resource provider that remembers what it was asked to do.
type Plane struct {
	mu  sync.Mutex
	ops []contract.ResourceOperation
	// Answer, when set, replaces the ordinary answer.
	Answer func(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error)
}

// Invoke implements [kernel.ResourceProvider]: it echoes the path.
func (p *Plane) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	p.mu.Lock()
	p.ops = append(p.ops, op)
	p.mu.Unlock()
	if p.Answer != nil {
		return p.Answer(ctx, op)
	}
	output, err := json.Marshal(map[string]any{"path": op.Resource.Path})
	if err != nil {
		return contract.ResourceResult{}, err
	}
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded, Output: output, CompletedAt: contract.At(Epoch),
	}, nil
}

// Operations returns what was executed, in order.
func (p *Plane) Operations() []contract.ResourceOperation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]contract.ResourceOperation(nil), p.ops...)
}

// FilesTools are files.read, files.list (read) and files.delete (write, destructive).
func FilesTools(plane *Plane) []kernel.Tool {
	yes := true
	remove := Definition("delete", contract.ClassWrite)
	remove.Annotations = &contract.ToolAnnotations{Destructive: &yes}
	return []kernel.Tool{
		kernel.NewResourceTool(Definition("read", contract.ClassRead), plane),
		kernel.NewResourceTool(Definition("list", contract.ClassRead), plane),
		kernel.NewResourceTool(remove, plane),
	}
}

// ToolsFunc adapts a function to [kernel.ToolProvider].
type ToolsFunc func(ctx context.Context, ac contract.AccessContext) ([]kernel.Tool, error)

// Tools implements [kernel.ToolProvider].
func (f ToolsFunc) Tools(ctx context.Context, ac contract.AccessContext) ([]kernel.Tool, error) {
	return f(ctx, ac)
}
