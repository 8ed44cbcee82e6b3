package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// probe is a tool whose parts a test replaces.
func probe(change func(tool *kernel.Tool)) kernel.Tool {
	d := kerneltest.Definition("probe", contract.ClassRead)
	d.RequiredCapability = kerneltest.Need("files", "read", "Work")
	tool := kernel.Tool{
		Definition: d,
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: "read"}, err
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`{"ok":true}`)}, nil
		},
	}
	if change != nil {
		change(&tool)
	}
	return tool
}

func requirement(need contract.CapabilityRequirement, err error) func(tool *kernel.Tool) {
	return func(tool *kernel.Tool) {
		tool.Requirement = func(kernel.Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) {
			return need, err
		}
	}
}

func handler(out kernel.Output, err error) func(tool *kernel.Tool) {
	return func(tool *kernel.Tool) {
		tool.Handle = func(context.Context, kernel.ToolInvocation) (kernel.Output, error) { return out, err }
	}
}

func TestInvocationStepByStep(t *testing.T) {
	t.Parallel()
	const inWork = `{"path":["Work","a"]}`
	output := func(v string) kernel.Output { return kernel.Output{Value: contract.Value(v)} }
	withOutputSchema := func(out kernel.Output) func(tool *kernel.Tool) {
		return func(tool *kernel.Tool) {
			tool.Definition.OutputSchema = contract.Object(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
			handler(out, nil)(tool)
		}
	}
	owned := kerneltest.Need("files", "read", "Work")
	owned.Resource.Owner = new(contract.Human("bob"))
	tests := map[string]struct {
		tool   func(tool *kernel.Tool)
		world  func(w *kerneltest.World)
		call   func(c *contract.ToolCall)
		status contract.Status
		code   string
		cause  string
		output string
	}{
		"succeeds":            {status: "succeeded", output: `{"ok":true}`},
		"malformed call":      {call: func(c *contract.ToolCall) { c.ID = "" }, status: "denied", code: "invalid_request", cause: "invalid_call"},
		"no such tool":        {call: func(c *contract.ToolCall) { c.Tool = "files.prob" }, status: "denied", code: "tool_unavailable", cause: "not_registered"},
		"malformed name":      {call: func(c *contract.ToolCall) { c.Tool = "files probe\n😀" }, status: "denied", code: "tool_unavailable", cause: "not_registered"},
		"disabled":            {tool: func(tool *kernel.Tool) { tool.Definition.Namespace = "off" }, status: "denied", code: "tool_unavailable", cause: "namespace_disabled"},
		"undiscoverable":      {tool: func(tool *kernel.Tool) { tool.Definition.RequiredCapability.Action = "write" }, status: "denied", code: "tool_unavailable", cause: "not_discoverable"},
		"provider fails":      {world: failingProvider(kerneltest.ErrPort), status: "failed", code: "tool_catalog_unavailable", cause: "tool_provider_failed"},
		"another trace":       {call: func(c *contract.ToolCall) { c.TraceID = "other"; c.Arguments = contract.Object(`{}`) }, status: "denied", code: "trace_mismatch"},
		"not an object":       {call: func(c *contract.ToolCall) { c.Arguments = contract.Object(`[]`) }, status: "failed", code: "invalid_tool_arguments", cause: "not_an_object"},
		"no arguments":        {call: func(c *contract.ToolCall) { c.Arguments = nil }, status: "failed", code: "invalid_tool_arguments", cause: "not_an_object"},
		"two of one key":      {call: func(c *contract.ToolCall) { c.Arguments = contract.Object(`{"path":["Work"],"path":["Other"]}`) }, status: "failed", code: "invalid_tool_arguments", cause: "not_an_object"},
		"against the schema":  {call: func(c *contract.ToolCall) { c.Arguments = contract.Object(`{"path":"Work"}`) }, status: "failed", code: "invalid_tool_arguments", cause: "schema"},
		"an unknown argument": {call: func(c *contract.ToolCall) { c.Arguments = contract.Object(`{"path":[],"grant":{}}`) }, status: "failed", code: "invalid_tool_arguments", cause: "schema"},
		"requirement fails":   {tool: requirement(kerneltest.Need("files", "read", "Work"), errors.New("secret")), status: "failed", code: "tool_requirement_resolution_failed"},
		"requirement panics": {tool: func(tool *kernel.Tool) {
			tool.Requirement = func(kernel.Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) {
				panic("secret")
			}
		}, status: "failed", code: "tool_requirement_resolution_failed"},
		"another owner":         {tool: requirement(owned, nil), status: "denied", code: "invalid_request"},
		"a malformed path":      {tool: requirement(kerneltest.Need("files", "read", "Work", ".."), nil), status: "denied", code: "invalid_request"},
		"another plane":         {tool: requirement(kerneltest.Need("repo", "read", "Work"), nil), status: "failed", code: "invalid_tool_requirement"},
		"another action":        {tool: requirement(kerneltest.Need("files", "list", "Work"), nil), status: "failed", code: "invalid_tool_requirement"},
		"above the ceiling":     {tool: requirement(kerneltest.Need("files", "read"), nil), status: "failed", code: "invalid_tool_requirement"},
		"beside the ceiling":    {tool: requirement(kerneltest.Need("files", "read", "Workshop"), nil), status: "failed", code: "invalid_tool_requirement"},
		"no grant":              {call: func(c *contract.ToolCall) { c.Arguments = contract.Object(`{"path":["Work","b"]}`) }, status: "denied", code: "no_matching_grant"},
		"host refuses":          {world: func(w *kerneltest.World) { w.Options.Ceiling = atExecution(false, nil) }, status: "denied", code: "host_policy_denied"},
		"host policy is down":   {world: func(w *kerneltest.World) { w.Options.Ceiling = atExecution(true, kerneltest.ErrPort) }, status: "denied", code: "host_policy_unavailable"},
		"decision not recorded": {world: failAudit(audit.AuthorizationChecked), status: "failed", code: "audit_unavailable"},
		"result not recorded":   {world: failAudit(audit.ToolInvoked), status: "failed", code: "audit_unavailable"},
		"handler fails":         {tool: handler(kernel.Output{}, errors.New("secret")), status: "failed", code: "tool_execution_failed", cause: "handler_error"},
		"handler panics": {tool: func(tool *kernel.Tool) {
			tool.Handle = func(context.Context, kernel.ToolInvocation) (kernel.Output, error) { panic("secret") }
		}, status: "failed", code: "tool_execution_failed", cause: "handler_error"},
		"handler names a code":   {tool: handler(kernel.Output{}, &kernel.Failure{Err: contract.ProtocolError{Code: "version_conflict", Message: "m"}}), status: "failed", code: "version_conflict", cause: "handler"},
		"handler denies":         {tool: handler(kernel.Output{}, &kernel.Failure{Status: "denied", Err: contract.ProtocolError{Code: "c", Message: "m"}}), status: "denied", code: "c", cause: "handler"},
		"handler escalates":      {tool: handler(kernel.Output{}, &kernel.Failure{Status: "escalated", Err: contract.ProtocolError{Code: "c", Message: "m"}}), status: "failed", code: "invalid_tool_result", cause: "malformed_failure"},
		"handler's bad code":     {tool: handler(kernel.Output{}, &kernel.Failure{Err: contract.ProtocolError{Code: "", Message: "m"}}), status: "failed", code: "invalid_tool_result", cause: "malformed_failure"},
		"nothing":                {tool: handler(kernel.Output{}, nil), status: "failed", code: "invalid_tool_result", cause: "malformed_output"},
		"not JSON":               {tool: handler(output(`{"a":}`), nil), status: "failed", code: "invalid_tool_result", cause: "malformed_output"},
		"too many values":        {tool: handler(output("["+strings.Repeat("1,", strictjson.MaxPayloadValues)+"1]"), nil), status: "failed", code: "invalid_tool_result", cause: "too_many_values"},
		"two readings":           {tool: handler(output(`{"a":1,"a":2}`), nil), status: "failed", code: "invalid_tool_result", cause: "malformed_output"},
		"bad metadata":           {tool: handler(kernel.Output{Value: contract.Value(`1`), Metadata: contract.Object(`[]`)}, nil), status: "failed", code: "invalid_tool_result", cause: "malformed_metadata"},
		"for another call":       {tool: handler(kernel.Output{Value: contract.Value(`1`), CallID: "call-2"}, nil), status: "failed", code: "invalid_tool_result", cause: "other_call"},
		"for this call":          {tool: handler(kernel.Output{Value: contract.Value(`null`), CallID: "call-1"}, nil), status: "succeeded", output: `null`},
		"exact digits":           {tool: handler(output(`{"id":1234567890123456789,"f":1.10}`), nil), status: "succeeded", output: `{"id":1234567890123456789,"f":1.10}`},
		"output fits its schema": {tool: withOutputSchema(output(`{"n":12345678901234567890}`)), status: "succeeded", output: `{"n":12345678901234567890}`},
		"output breaks it":       {tool: withOutputSchema(output(`{"n":"1"}`)), status: "failed", code: "invalid_tool_result", cause: "output_schema"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(kerneltest.MakeGrant("g").Descendants("files", []string{"Work", "a"}, "read").Obj())
			w.Options.Tools = []kernel.Tool{probe(tt.tool)}
			if tt.world != nil {
				tt.world(w)
			}
			turn := w.Turn(t)
			call := kerneltest.Call("call-1", "files.probe", inWork)
			if tt.call != nil {
				tt.call(&call)
			}
			r := turn.Invoke(t.Context(), call)
			got := ""
			if r.Error != nil {
				got = r.Error.Code
			}
			if r.Status != tt.status || got != tt.code || string(r.Output) != tt.output || r.CallID != call.ID || r.Tool != call.Tool {
				t.Fatalf("result = %+v, error %+v; want %s %s %s", r, r.Error, tt.status, tt.code, tt.output)
			}
			if r.Error != nil && (strings.Contains(r.Error.Message, "secret") || r.Error.Message == "" || strings.Contains(string(r.Error.Details), "secret")) {
				t.Errorf("message %q tells too much or nothing", r.Error.Message)
			}
			if call.ID != "" && r.Validate() != nil {
				t.Errorf("the result is malformed: %v", r.Validate())
			}
			if tt.code == "audit_unavailable" {
				return
			}
			e := lastEvent(t, w, audit.ToolInvoked)
			if e.Outcome != audit.Outcome(tt.status) || e.Reason != tt.code || e.Cause != tt.cause || e.Tool != call.Tool || e.OperationID != call.ID || e.Source != audit.SourceKernel {
				t.Errorf("recorded %s, reason %q, cause %q, tool %q, operation %q, source %q", e.Outcome, e.Reason, e.Cause, e.Tool, e.OperationID, e.Source)
			}
			if tt.status == "succeeded" && (e.GrantID != "g" || e.Resource == nil || e.Action != "read" || e.AuthorityHash != turn.AuthorityHash()) {
				t.Errorf("recorded %+v", e)
			}
			if tt.cause == "not_discoverable" && (len(e.RejectedGrants) != 1 || e.GrantsResolved == nil) {
				t.Errorf("rejected grants = %v", e.RejectedGrants)
			}
		})
	}
}

func failingProvider(err error) func(w *kerneltest.World) {
	return func(w *kerneltest.World) {
		w.Options.Providers = []kernel.ToolProvider{kerneltest.ToolsFunc(func(context.Context, contract.AccessContext) ([]kernel.Tool, error) { return nil, err })}
	}
}

// atExecution is a ceiling that has an opinion only about execution.
func atExecution(permits bool, err error) kernel.HostCeiling {
	return kernel.HostCeilingFunc(func(q kernel.CeilingQuery) (bool, error) {
		if q.Discovery {
			return true, nil
		}
		return permits, err
	})
}

// failAudit makes the sink fail for one type of event.
func failAudit(kind audit.Type) func(w *kerneltest.World) {
	return func(w *kerneltest.World) {
		w.Audit.Fail = func(e audit.Event) error {
			if e.Type == kind {
				return kerneltest.ErrPort
			}
			return nil
		}
	}
}

func TestTheDecisionIsOnRecordBeforeTheHandlerRuns(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("g").MaxUses(2).Obj())
	var seen []audit.Event
	w.Options.Tools = []kernel.Tool{probe(func(tool *kernel.Tool) {
		tool.Handle = func(_ context.Context, call kernel.ToolInvocation) (kernel.Output, error) {
			seen = w.Audit.Events()
			return kernel.Output{Value: call.Arguments.Member("path")}, nil
		}
	})}
	turn := w.Turn(t)
	if r := turn.Invoke(t.Context(), kerneltest.Call("call-1", "files.probe", `{"path":["Work"]}`)); r.Status != "succeeded" || string(r.Output) != `["Work"]` {
		t.Fatalf("result = %+v", r)
	}
	last := seen[len(seen)-1]
	if last.Type != audit.AuthorizationChecked || last.Outcome != audit.Allowed || last.OperationID != "call-1" || !last.Consumed || last.GrantID != "g" {
		t.Errorf("the handler ran after %+v", last)
	}
	// A handler that must not run does not.
	seen = nil
	w.Audit.Fail = func(audit.Event) error { return kerneltest.ErrPort }
	r := turn.Call(t.Context(), kerneltest.Call("call-2", "files.probe", `{"path":["Work"]}`))
	if !r.AuditFailed || r.Result.Error.Code != "audit_unavailable" || seen != nil {
		t.Errorf("report = %+v; the handler ran: %t", r, seen != nil)
	}
}

func TestHandlersSeeFrozenArguments(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("g").Obj())
	var got kernel.ToolInvocation
	w.Options.Tools = []kernel.Tool{probe(func(tool *kernel.Tool) {
		inner := tool.Requirement
		tool.Requirement = func(args kernel.Arguments, ac contract.AccessContext) (contract.CapabilityRequirement, error) {
			need, err := inner(args, ac)
			copy(args.Raw(), `XXXX`)
			args.Value()["path"] = []any{"Secret"}
			args.Member("path")[0] = 'X'
			ac.EnabledToolNamespaces[0] = "changed"
			return need, err
		}
		tool.Handle = func(_ context.Context, call kernel.ToolInvocation) (kernel.Output, error) {
			got = call
			return kernel.Output{Value: contract.Value(`1`)}, nil
		}
	})}
	raw := contract.Object(`{"path":["Work"]}`)
	call := kerneltest.Call("call-1", "files.probe", "")
	call.Arguments = raw
	turn := w.Turn(t)
	if r := turn.Invoke(t.Context(), call); r.Status != "succeeded" {
		t.Fatalf("%+v", r.Error)
	}
	if string(got.Arguments.Raw()) != `{"path":["Work"]}` || got.CallID != "call-1" || got.Tool != "files.probe" || got.Now.IsZero() {
		t.Errorf("the handler was given %+v", got)
	}
	if diff := cmp.Diff(kerneltest.Need("files", "read", "Work"), got.Requirement); diff != "" {
		t.Errorf("requirement: %s", diff)
	}
	if diff := cmp.Diff(w.Context(), got.Context); diff != "" {
		t.Errorf("context: %s", diff)
	}
	copy(raw, `{"path":["Evil"]}`)
	if string(got.Arguments.Raw()) != `{"path":["Work"]}` {
		t.Error("the caller can change parsed arguments")
	}
}

func TestCancellationReachesTheHandlerAndStopsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("g").MaxUses(3).Obj())
	ran := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Options.Tools = []kernel.Tool{probe(func(tool *kernel.Tool) {
		tool.Handle = func(ctx context.Context, _ kernel.ToolInvocation) (kernel.Output, error) {
			ran++
			cancel()
			<-ctx.Done()
			return kernel.Output{}, ctx.Err()
		}
	})}
	turn := w.Turn(t)
	if r := turn.Invoke(ctx, kerneltest.Call("call-1", "files.probe", `{"path":["Work"]}`)); r.Error == nil || r.Error.Code != "tool_execution_failed" || ran != 1 {
		t.Errorf("cancelled while running: %+v, ran %d times", r.Error, ran)
	}
	r := turn.Call(ctx, kerneltest.Call("call-2", "files.probe", `{"path":["Work"]}`))
	if r.Result.Error == nil || r.Result.Error.Code != "tool_execution_failed" || r.AuditFailed || ran != 1 || w.Uses.Spent("g") != 1 {
		t.Errorf("cancelled before: %+v, ran %d times, %d uses spent", r, ran, w.Uses.Spent("g"))
	}
	if e := lastEvent(t, w, audit.ToolInvoked); e.Cause != "cancelled" || e.OperationID != "call-2" {
		t.Errorf("recorded cause %q", e.Cause)
	}
	// A caller that goes away during the decision is not a broken sink.
	again, stop := context.WithCancel(t.Context())
	defer stop()
	w.Audit.Fail = func(e audit.Event) error {
		if e.Type == audit.AuthorizationChecked {
			stop()
		}
		return nil
	}
	r = turn.Call(again, kerneltest.Call("call-3", "files.probe", `{"path":["Work"]}`))
	if r.AuditFailed || r.Result.Error.Code != "tool_execution_failed" || ran != 1 {
		t.Errorf("cancelled during the decision: %+v, ran %d times", r, ran)
	}
}

func TestDenialsOfCallsTellWhatIsNeeded(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.MakeGrant("g").Descendants("files", []string{"Work", "a"}, "read").Obj())
	w.Options.Tools = []kernel.Tool{probe(nil)}
	r := w.Turn(t).Invoke(t.Context(), kerneltest.Call("call-1", "files.probe", `{"path":["Work","b"]}`))
	var details struct{ RequiredAuthority contract.CapabilityRequest }
	if err := json.Unmarshal(r.Error.Details, &details); err != nil || details.RequiredAuthority.Validate() != nil {
		t.Fatalf("details = %s, %v", r.Error.Details, err)
	}
	if diff := cmp.Diff(contract.Path{"Work", "b"}, details.RequiredAuthority.Capabilities[0].Resource.Path); diff != "" {
		t.Error(diff)
	}
	if e := lastEvent(t, w, audit.AuthorizationChecked); e.RequestedAuthority == nil || e.RequestedAuthority.ID != details.RequiredAuthority.ID || e.OperationID != "call-1" {
		t.Errorf("recorded %+v", e.RequestedAuthority)
	}
}

func TestAuditNeverHoldsArgumentsOrOutputs(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	w := kerneltest.New(readGrant("g").Obj())
	w.Options.Tools = []kernel.Tool{probe(func(tool *kernel.Tool) {
		tool.Definition.InputSchema = contract.Object(`{}`)
		tool.Handle = func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`"` + secret + `"`), Metadata: contract.Object(`{"k":"` + secret + `"}`)}, nil
		}
	})}
	turn := w.Turn(t)
	for i, args := range []string{`{"path":["Work"],"password":"` + secret + `"}`, `["` + secret + `"]`, `{"path":"` + secret + `"}`} {
		turn.Invoke(t.Context(), kerneltest.Call("call-"+string(rune('a'+i)), "files.probe", args))
	}
	for _, e := range w.Audit.Events() {
		line, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(line), secret) {
			t.Errorf("recorded %s", line)
		}
	}
}

func TestRefusedByTheEnvelope(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("g").Obj())
	hidden := probe(func(tool *kernel.Tool) {
		tool.Definition.Name, tool.Definition.RequiredCapability = "files.hidden", kerneltest.Need("files", "write")
	})
	off := probe(func(tool *kernel.Tool) { tool.Definition.Name, tool.Definition.Namespace = "off.tool", "off" })
	w.Options.Tools = []kernel.Tool{probe(nil), hidden, off}
	turn := w.Turn(t)
	for tool, cause := range map[string]string{"files.probe": "not_offered", "files.hidden": "not_discoverable", "off.tool": "namespace_disabled", "other": "not_registered"} {
		r := turn.Refuse(t.Context(), kerneltest.Call("c", tool, `{}`), contract.StatusDenied, contract.ProtocolError{Code: "tool_unavailable", Message: "m"})
		e := lastEvent(t, w, audit.ToolInvoked)
		if r.Result.Error.Code != "tool_unavailable" || e.Cause != cause || e.Source != audit.SourceEnvelope {
			t.Errorf("%s: %+v, recorded cause %q from %s", tool, r.Result.Error, e.Cause, e.Source)
		}
	}
	r := turn.Refuse(t.Context(), kerneltest.Call(strings.Repeat("é", 300), strings.Repeat("x", 300), `{}`), contract.StatusDenied, contract.ProtocolError{Code: "turn_draining", Message: "m"})
	if e := lastEvent(t, w, audit.ToolInvoked); len([]rune(e.OperationID)) != 256 || len(e.Tool) != 256 || r.AuditFailed {
		t.Errorf("a long name was recorded with %d and %d characters", len([]rune(e.OperationID)), len(e.Tool))
	}
}
