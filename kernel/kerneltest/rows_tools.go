package kerneltest

import (
	"context"
	"strconv"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// scripted is a read tool in files with a requirement or a handler of the test's.
func scripted(name string, need func(args kernel.Arguments) contract.CapabilityRequirement, out kernel.Output) kernel.Tool {
	d := Definition("read", contract.ClassRead)
	d.Name, d.RequiredCapability = name, Need("files", "read", "Work")
	return kernel.Tool{
		Definition: d,
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			return need(args), nil
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) { return out, nil },
	}
}

func fixed(need contract.CapabilityRequirement) func(kernel.Arguments) contract.CapabilityRequirement {
	return func(kernel.Arguments) contract.CapabilityRequirement { return need }
}

func toolRows() []Row {
	fine := kernel.Output{Value: contract.Value(`{"ok":true}`)}
	return []Row{{
		ID: "outside-the-ceiling", Violation: "a tool resolves a requirement outside its ceiling", Expected: "failed invalid_tool_requirement",
		Run: func(t *Trial) {
			w, _ := stage(MakeGrant("wide").Descendants("files", nil, "*").Descendants("repo", nil, "*").Obj())
			needs := map[string]contract.CapabilityRequirement{
				"files.x1": Need("repo", "read", "Work"), "files.x2": Need("files", "delete", "Work"), "files.x3": Need("files", "read"),
				"files.x4": Need("files", "read", "Workshop"), "files.x5": Need("files", "*", "Work"),
			}
			for name, need := range needs {
				w.Options.Tools = append(w.Options.Tools, scripted(name, fixed(need), fine))
			}
			w.Options.Tools = append(w.Options.Tools, scripted("files.ok", fixed(Need("files", "read", "Work", "a")), fine))
			seat := t.Enter(w)
			for name := range needs {
				t.Attempt(name, seat.Call("c-"+name, name, pathArgs("Work"), nil), failed, contract.CodeInvalidToolRequirement)
			}
			t.Control("within it", seat.Call("control", "files.ok", pathArgs("Work"), nil))
		},
	}, {
		ID: "bad-results", Violation: "provider returns a mismatched or malformed result", Expected: "failed invalid_tool_result",
		Run: func(t *Trial) {
			w, plane := stage()
			need := fixed(Need("files", "read", "Work"))
			outputs := map[string]kernel.Output{
				"files.x1": {}, "files.x2": {Value: contract.Value(`{"a":`)}, "files.x3": {Value: contract.Value(`{"a":1,"a":2}`)},
				"files.x4": {Value: contract.Value(`1`), CallID: "another"}, "files.x5": {Value: contract.Value(`1`), Metadata: contract.Object(`[]`)}, "files.x6": {Value: contract.Value("\"\xff\"")},
			}
			for name, out := range outputs {
				w.Options.Tools = append(w.Options.Tools, scripted(name, need, out))
			}
			shaped := scripted("files.x7", need, kernel.Output{Value: contract.Value(`{"n":"not a number"}`)})
			shaped.Definition.OutputSchema = contract.Object(`{"type":"object","properties":{"n":{"type":"number"}}}`)
			w.Options.Tools = append(w.Options.Tools, shaped)
			outputs["files.x7"] = kernel.Output{}
			seat := t.Enter(w)
			for name := range outputs {
				t.Attempt(name, seat.Call("c-"+name, name, pathArgs("Work"), nil), failed, contract.CodeInvalidToolResult)
			}
			plane.Answer = func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
				return contract.ResourceResult{OperationID: "another", Status: contract.StatusSucceeded, Output: contract.Value(`1`), CompletedAt: contract.At(Epoch)}, nil
			}
			t.Attempt("another operation's result", seat.Call("c8", "files.read", pathArgs("Work"), nil), failed, contract.CodeInvalidToolResult)
			plane.Answer = nil
			t.control(seat, "control")
		},
	}, {
		ID: "brokered-tool", Violation: "reach a brokered tool the store does not admit", Expected: "tool_unavailable",
		Run: func(t *Trial) {
			w, _ := stage(MakeGrant("brokered").Descendants("github", []string{"mine"}, "read").Obj())
			brokered := func(name, namespace, plane string) kernel.Tool {
				tool := scripted(name, func(args kernel.Arguments) contract.CapabilityRequirement {
					path, _ := args.Path("path")
					return Need(plane, "read", path...)
				}, fine)
				tool.Definition.Namespace, tool.Definition.Source, tool.Definition.RequiredCapability = namespace, "mcp", Need(plane, "read")
				return tool
			}
			w.Options.Providers = []kernel.ToolProvider{ToolsFunc(func(context.Context, contract.AccessContext) ([]kernel.Tool, error) {
				return []kernel.Tool{brokered("github.issues", "brokered", "github"), brokered("gitlab.issues", "brokered", "gitlab"), brokered("github.admin", "not-enabled", "github")}, nil
			})}
			seat := t.Enter(w)
			t.Attempt("without a grant", seat.Call("c1", "gitlab.issues", pathArgs("mine"), nil), denied, contract.CodeToolUnavailable)
			t.Attempt("in a namespace that is not enabled", seat.Call("c2", "github.admin", pathArgs("mine"), nil), denied, contract.CodeToolUnavailable)
			t.Attempt("an upstream tool that was not offered", seat.Call("c3", "github.delete", pathArgs("mine"), nil), denied, contract.CodeToolUnavailable)
			t.Attempt("past the grant", seat.Call("c4", "github.issues", pathArgs("theirs"), nil), denied, contract.CodeNoMatchingGrant)
			t.Holds("they are not listed", !listed(seat, "gitlab.issues") && !listed(seat, "github.admin"), "listed: %v", seat.Tools())
			t.Control("what is admitted", seat.Call("c5", "github.issues", pathArgs("mine", "1"), nil))
		},
	}, {
		ID: "moved-ceiling", Violation: "a per-context provider moves a tool's ceiling mid-turn", Expected: "answered from the served catalogue",
		NotApplicable: map[string]string{DoorHTTP: httpHasNoTurn},
		Run: func(t *Trial) {
			w, plane := stage(MakeGrant("wide").Descendants("files", nil, "*").Obj())
			ceiling, asked := Need("files", "read", "Work"), 0
			w.Options.Providers = []kernel.ToolProvider{ToolsFunc(func(context.Context, contract.AccessContext) ([]kernel.Tool, error) {
				asked++
				tool := openTool("files.moving", plane)
				tool.Definition.RequiredCapability = ceiling
				return []kernel.Tool{tool}, nil
			})}
			seat := t.Enter(w)
			t.Holds("it is listed", listed(seat, "files.moving"), "listed: %v", seat.Tools())
			ceiling = Need("files", "read")
			for i, path := range []string{"Other", "Secret"} {
				t.Attempt(path, seat.Call("c"+strconv.Itoa(i), "files.moving", pathArgs(path), nil), failed, contract.CodeInvalidToolRequirement)
			}
			t.Control("below the served ceiling", seat.Call("control", "files.moving", pathArgs("Work"), nil))
			t.Holds("the provider was asked once", asked == 1, "it was asked %d times", asked)
		},
	}}
}
