// Package turn runs one real turn, kernel and envelope included, whose tools suit
// tests of the MCP boundary.
package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/mcp"
)

// Turn is a running turn with a bridge opened inside it.
type Turn struct {
	Bridge *mcp.TurnBridge
	Server *mcp.Server

	leave  chan struct{}
	result chan contract.ExecutionResult
}

// Options add to the turn of [Open].
type Options struct {
	// Tools come beside files.read, files.list and sharedos.escalate; whoever offers
	// one grants it.
	Tools []kernel.Tool
	// Capabilities, when not empty, are granted in the place of what Tools need.
	Capabilities []contract.Capability
	// Instructions are handed to the client.
	Instructions string
	// MaxToolCalls is the budget; the default is 1,000.
	MaxToolCalls int64
}

// The parties.
var (
	agent = contract.Agent("alice-assistant")
	alice = contract.Human("alice")
)

const (
	world   = "team-atlas"
	purpose = "atlas-status"
	trace   = "trace-1"
)

// Open starts a turn that may read below Work and escalate. It must be ended.
func Open(ctx context.Context, opts Options) (*Turn, error) {
	var ids atomic.Int64
	k, err := kernel.New(kernel.Options{
		Grants: grants(opts), Audit: &audit.Memory{}, Clock: time.Now,
		NewID: func() string { return "id-" + strconv.FormatInt(ids.Add(1), 10) },
		Tools: append(files(), opts.Tools...),
	})
	if err != nil {
		return nil, fmt.Errorf("build kernel: %w", err)
	}
	t := &Turn{leave: make(chan struct{}), result: make(chan contract.ExecutionResult, 1)}
	ready := make(chan error, 1)
	runtime := runtimeFunc(func(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
		t.Bridge = mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: req.Catalogue, Host: host})
		defer t.Bridge.Close()
		var err error
		t.Server, err = mcp.NewServer(mcp.ServerOptions{Invoker: t.Bridge, Instructions: opts.Instructions})
		ready <- err
		select {
		case <-t.leave:
		case <-ctx.Done():
		}
		return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`"done"`)}, nil
	})
	go func() { t.result <- envelope.New(k, envelope.Options{}).Run(ctx, request(opts), runtime) }()
	select {
	case err = <-ready:
	case result := <-t.result:
		err = fmt.Errorf("the turn ended as %s", result.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("open turn: %w", err)
	}
	return t, nil
}

// End leaves the turn and returns its result.
func (t *Turn) End() contract.ExecutionResult {
	close(t.leave)
	return <-t.result
}

type runtimeFunc func(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error)

// Run implements [envelope.Runtime].
func (f runtimeFunc) Run(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
	return f(ctx, req, host)
}

func request(opts Options) contract.ExecutionRequest {
	now := contract.At(time.Now())
	calls, timeout := opts.MaxToolCalls, int64(contract.MaxTimeoutMs)
	if calls == 0 {
		calls = 1000
	}
	namespaces := []string{"files", kernel.ToolNamespaceSharedOS}
	for i := range opts.Tools {
		if name := opts.Tools[i].Definition.Namespace; !slices.Contains(namespaces, name) {
			namespaces = append(namespaces, name)
		}
	}
	return contract.ExecutionRequest{
		Version: contract.Version, ExecutionID: "execution-1", Agent: agent,
		Context: &contract.AccessContext{
			NamespaceID: world, Actor: agent, Authority: alice, Owner: alice, Purpose: purpose, TraceID: trace,
			EnabledToolNamespaces: namespaces, Now: now,
		},
		Message: contract.MessageEnvelope{
			Version: contract.Version, ID: "message-1", Sender: alice, Receiver: agent, Purpose: purpose,
			Payload: contract.Value(`{"text":"When does Atlas ship?"}`), TraceID: trace, CreatedAt: now,
		},
		Options: &contract.ExecutionOptions{MaxToolCalls: &calls, TimeoutMs: &timeout},
	}
}

// source answers with the same grants always.
type source []contract.Grant

// Load implements [kernel.GrantSource].
func (s source) Load(context.Context, contract.AccessContext) ([]contract.Grant, error) {
	return s, nil
}

func grants(opts Options) source {
	tools := opts.Tools
	grant := func(id string, need contract.CapabilityRequirement, scope contract.Scope) contract.Grant {
		return contract.Grant{
			ID: id, NamespaceID: world, Subject: agent, Issuer: alice, IssuedAt: contract.At(time.Unix(0, 0)),
			Capabilities: []contract.Capability{{Resource: need.Resource, Actions: []string{need.Action}, Scope: scope}},
		}
	}
	list := append(make(source, 0, 4+len(tools)),
		grant("admission", need(contract.NamespaceExecution, contract.ActionInvoke, contract.AddressPath(agent)...), contract.ScopeExact),
		grant("escalation", need(contract.NamespaceSharedOS, contract.ActionRequest, "escalation"), contract.ScopeExact),
		grant("read", need("files", "read", "Work"), contract.ScopeDescendants),
		grant("list", need("files", "list", "Work"), contract.ScopeDescendants),
	)
	if len(opts.Capabilities) > 0 {
		return append(list, contract.Grant{
			ID: "chosen", NamespaceID: world, Subject: agent, Issuer: alice, IssuedAt: contract.At(time.Unix(0, 0)), Capabilities: opts.Capabilities,
		})
	}
	for i := range tools {
		list = append(list, grant("tool-"+strconv.Itoa(i), tools[i].Definition.RequiredCapability, contract.ScopeDescendants))
	}
	return list
}

func need(namespace, action string, path ...string) contract.CapabilityRequirement {
	return contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: namespace, Path: append(contract.Path{}, path...)}, Action: action,
	}
}

const pathSchema = `{"type":"object","required":["path"],"additionalProperties":false,` +
	`"properties":{"path":{"type":"array","maxItems":64,"items":{"type":"string"},"description":"The path, one string per segment."}}}`

// files are files.read, with text, and files.list, with an output schema.
func files() []kernel.Tool {
	at := func(args kernel.Arguments) (contract.Path, error) {
		var in struct {
			Path contract.Path `json:"path"`
		}
		err := args.Decode(&in)
		return in.Path, err
	}
	tool := func(verb, output string, handle func(contract.Path) any) kernel.Tool {
		def := contract.ToolDefinition{
			Name: "files." + verb, Description: "The files." + verb + " tool.", Namespace: "files", Source: "sharedos",
			ReadWrite: contract.ClassRead, InputSchema: contract.Object(pathSchema), RequiredCapability: need("files", verb),
		}
		if output != "" {
			def.OutputSchema = contract.Object(output)
		}
		return kernel.Tool{
			Definition: def,
			Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
				path, err := at(args)
				return need("files", verb, path...), err
			},
			Handle: func(_ context.Context, call kernel.ToolInvocation) (kernel.Output, error) {
				path, err := at(call.Arguments)
				if err != nil {
					return kernel.Output{}, err
				}
				value, err := json.Marshal(handle(path))
				return kernel.Output{Value: value}, err
			},
		}
	}
	return []kernel.Tool{
		tool("read", "", func(path contract.Path) any { return "Atlas ships on Friday. (" + path[len(path)-1] + ")" }),
		tool("list", `{"type":"object","required":["entries"],"properties":{"entries":{"type":"array","items":{"type":"string"}}}}`,
			func(contract.Path) any { return map[string]any{"entries": []string{"atlas", "plan.md"}} }),
	}
}
