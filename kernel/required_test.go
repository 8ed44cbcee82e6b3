package kernel_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestReportsOfDeniedCallsTellWhatIsNeeded: the host is told for every denial whose
// question was established, the caller only when no grant matched.
func TestReportsOfDeniedCallsTellWhatIsNeeded(t *testing.T) {
	t.Parallel()
	place := func(scope contract.Scope, action string, path ...string) *contract.Capability {
		return &contract.Capability{
			Resource: contract.ResourceRef{Namespace: "files", Path: path}, Actions: []string{action}, Scope: scope,
		}
	}
	asked := place(contract.ScopeExact, "read", "Work", "a")
	denies := handler(kernel.Output{}, &kernel.Failure{Status: "denied", Err: contract.ProtocolError{Code: "c", Message: "m"}})
	otherOwner := kerneltest.Need("files", "read", "Work")
	otherOwner.Resource.Owner = new(contract.Human("bob"))
	for name, tt := range map[string]struct {
		tool    func(tool *kernel.Tool)
		world   func(w *kerneltest.World)
		path    string
		want    *contract.Capability
		told    bool
		refused bool
	}{
		"allowed":                     {},
		"no grant":                    {path: `["Work","b"]`, want: place(contract.ScopeExact, "read", "Work", "b"), told: true},
		"the host refuses":            {world: func(w *kerneltest.World) { w.Options.Ceiling = atExecution(false, nil) }, want: asked},
		"the handler denies":          {tool: denies, want: asked},
		"the envelope refuses":        {refused: true},
		"nothing is registered":       {tool: func(tool *kernel.Tool) { tool.Definition.Name = "files.other" }},
		"the namespace is off":        {tool: func(tool *kernel.Tool) { tool.Definition.Namespace = "off" }},
		"no grant opens the tool":     {tool: func(tool *kernel.Tool) { tool.Definition.RequiredCapability.Action = "write" }, want: place(contract.ScopeDescendants, "write", "Work")},
		"… as the envelope finds":     {tool: func(tool *kernel.Tool) { tool.Definition.RequiredCapability.Action = "write" }, want: place(contract.ScopeDescendants, "write", "Work"), refused: true},
		"a question of nobody here":   {tool: requirement(otherOwner, nil)},
		"it failed":                   {tool: handler(kernel.Output{}, kerneltest.ErrPort)},
		"the denial is not on record": {world: failAudit(audit.ToolInvoked), path: `["Work","b"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(kerneltest.MakeGrant("g").Descendants("files", []string{"Work", "a"}, "read").Obj())
			w.Options.Tools = []kernel.Tool{probe(tt.tool)}
			if tt.world != nil {
				tt.world(w)
			}
			turn, path := w.Turn(t), `["Work","a"]`
			if tt.path != "" {
				path = tt.path
			}
			call := kerneltest.Call("call-1", "files.probe", `{"path":`+path+`}`)
			var r kernel.Report
			if tt.refused {
				r = turn.Refuse(t.Context(), call, contract.StatusDenied, contract.ProtocolError{Code: contract.CodeToolUnavailable, Message: "m"})
			} else {
				r = turn.Call(t.Context(), call)
			}
			var got *contract.Capability
			if r.Required != nil {
				got = &r.Required.Capabilities[0]
				if err := r.Required.Validate(); err != nil || r.Required.Purpose != turn.Context().Purpose || r.Required.Requester != turn.Context().Actor {
					t.Errorf("%+v, %v", r.Required, err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("required: -want +got\n%s", diff)
			}
			var details struct{ RequiredAuthority *contract.CapabilityRequest }
			if r.Result.Error != nil && r.Result.Error.Details != nil {
				if err := json.Unmarshal(r.Result.Error.Details, &details); err != nil {
					t.Fatal(err)
				}
			}
			if told := details.RequiredAuthority != nil; told != tt.told {
				t.Errorf("the caller was told: %t, want %t", told, tt.told)
			}
		})
	}
}
