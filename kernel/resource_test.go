package kernel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func operation(action string, path ...string) contract.ResourceOperation {
	return contract.ResourceOperation{OperationID: "op-1", Resource: kerneltest.Need("files", action, path...).Resource, Action: action, Input: contract.Value(`{"n":12345678901234567890}`)}
}

func TestResourceOperations(t *testing.T) {
	t.Parallel()
	done := contract.ResourceResult{OperationID: "op-1", Status: "succeeded", Output: contract.Value(`1`), CompletedAt: contract.At(kerneltest.Epoch)}
	answer := func(r contract.ResourceResult, err error) func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
		return func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) { return r, err }
	}
	other := done
	other.OperationID = "op-2"
	malformed := done
	malformed.Output = nil
	denied := contract.ResourceResult{OperationID: "op-1", Status: "denied", Error: &contract.ProtocolError{Code: "version_conflict", Message: "m"}, CompletedAt: contract.At(kerneltest.Epoch)}
	tests := map[string]struct {
		op     contract.ResourceOperation
		answer func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error)
		world  func(w *kerneltest.World)
		status contract.Status
		code   string
	}{
		"succeeds":               {op: operation("read", "Work", "a"), status: "succeeded"},
		"no grant":               {op: operation("write", "Work", "a"), status: "denied", code: "no_matching_grant"},
		"malformed":              {op: operation("read", "Work", "/"), status: "denied", code: "invalid_request"},
		"provider denies":        {op: operation("read", "Work"), answer: answer(denied, nil), status: "denied", code: "version_conflict"},
		"provider fails":         {op: operation("read", "Work"), answer: answer(done, errors.New("secret")), status: "failed", code: "resource_execution_failed"},
		"provider panics":        {op: operation("read", "Work"), answer: func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) { panic("x") }, status: "failed", code: "resource_execution_failed"},
		"provider names a code":  {op: operation("read", "Work"), answer: answer(done, &kernel.Failure{Err: contract.ProtocolError{Code: "too_large", Message: "m"}}), status: "failed", code: "too_large"},
		"provider's denial":      {op: operation("read", "Work"), answer: answer(done, &kernel.Failure{Status: "denied", Err: contract.ProtocolError{Code: "no", Message: "m"}}), status: "denied", code: "no"},
		"provider's bad code":    {op: operation("read", "Work"), answer: answer(done, &kernel.Failure{}), status: "failed", code: "resource_execution_failed"},
		"another operation's":    {op: operation("read", "Work"), answer: answer(other, nil), status: "failed", code: "invalid_resource_result"},
		"malformed result":       {op: operation("read", "Work"), answer: answer(malformed, nil), status: "failed", code: "invalid_resource_result"},
		"no provider":            {op: operation("read", "Work"), world: func(w *kerneltest.World) { w.Options.Resources = nil }, status: "failed", code: "resource_provider_not_configured"},
		"no provider, no grant":  {op: operation("read", "Other"), world: func(w *kerneltest.World) { w.Options.Resources = nil }, status: "denied", code: "no_matching_grant"},
		"decision not recorded":  {op: operation("read", "Work"), world: failAudit(audit.AuthorizationChecked), status: "failed", code: "audit_unavailable"},
		"operation not recorded": {op: operation("read", "Work"), world: failAudit(audit.ResourceInvoked), status: "failed", code: "audit_unavailable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(readGrant("g").MaxUses(5).Obj())
			plane := &kerneltest.Plane{Answer: tt.answer}
			w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
			if tt.world != nil {
				tt.world(w)
			}
			forged := w.Context()
			forged.Actor = contract.Agent("mallory")
			tt.op.Context = &forged
			r := w.Turn(t).InvokeResource(t.Context(), tt.op)
			code := ""
			if r.Error != nil {
				code = r.Error.Code
			}
			if r.Status != tt.status || code != tt.code || r.OperationID != "op-1" || r.Validate() != nil {
				t.Fatalf("result = %+v, %+v; want %s %s", r, r.Error, tt.status, tt.code)
			}
			for _, op := range plane.Operations() {
				if op.Context == nil || op.Context.Actor != kerneltest.Actor() || string(op.Input) != `{"n":12345678901234567890}` {
					t.Errorf("the provider was given %+v", op)
				}
			}
			if tt.code == "audit_unavailable" {
				return
			}
			e := lastEvent(t, w, audit.ResourceInvoked)
			if e.Outcome != audit.Outcome(tt.status) || e.Reason != tt.code || e.OperationID != "op-1" || (e.Resource == nil) != (tt.code == "invalid_request") {
				t.Errorf("recorded %+v", e)
			}
			wantUses := int64(1)
			if plane.Operations() == nil {
				wantUses = 0
			}
			if w.Uses.Spent("g") != wantUses {
				t.Errorf("%d uses were spent, want %d", w.Uses.Spent("g"), wantUses)
			}
		})
	}
}

func TestResourceToolsHandOnTheRest(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.MakeGrant("g").Descendants("files", nil, "*").Obj())
	plane := &kerneltest.Plane{}
	read := kerneltest.Definition("read", contract.ClassRead)
	read.InputSchema = contract.Object(`{}`)
	w.Options.Tools = []kernel.Tool{kernel.NewResourceTool(read, plane)}
	turn := w.Turn(t)
	r := turn.Invoke(t.Context(), kerneltest.Call("call-1", "files.read", `{"limit":1.50,"path":["a"],"q\"":"é"}`))
	if r.Status != "succeeded" {
		t.Fatalf("%+v", r.Error)
	}
	op := plane.Operations()[0]
	if string(op.Input) != `{"limit":1.50,"q\"":"é"}` || op.OperationID != "call-1" || op.Action != "read" || op.Context.Actor != kerneltest.Actor() {
		t.Errorf("operation = %+v, input %s", op, op.Input)
	}
	if diff := cmp.Diff(contract.Path{"a"}, op.Resource.Path); diff != "" {
		t.Error(diff)
	}
	for args, code := range map[string]string{`{}`: "tool_requirement_resolution_failed", `{"path":[1]}`: "tool_requirement_resolution_failed", `{"path":["a",".."]}`: "invalid_request"} {
		if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.read", args)); r.Error == nil || r.Error.Code != code {
			t.Errorf("%s: %+v, want %s", args, r.Error, code)
		}
	}
	id := func(s contract.Status, e *contract.ProtocolError, out string) contract.ResourceResult {
		return contract.ResourceResult{OperationID: "call-1", Status: s, Error: e, Output: contract.Value(out), CompletedAt: contract.At(kerneltest.Epoch)}
	}
	conflict := &contract.ProtocolError{Code: "version_conflict", Message: "m"}
	for name, tt := range map[string]struct {
		r      contract.ResourceResult
		err    error
		status contract.Status
		code   string
	}{
		"failed":            {id("failed", conflict, ""), nil, "failed", "version_conflict"},
		"denied":            {id("denied", conflict, ""), nil, "denied", "version_conflict"},
		"error":             {id("failed", conflict, ""), errors.New("x"), "failed", "tool_execution_failed"},
		"no status":         {contract.ResourceResult{OperationID: "call-1"}, nil, "failed", "invalid_tool_result"},
		"no output":         {id("succeeded", nil, ""), nil, "failed", "invalid_tool_result"},
		"failed, no error":  {id("failed", nil, ""), nil, "failed", "invalid_tool_result"},
		"another operation": {contract.ResourceResult{OperationID: "op-9", Status: "succeeded", Output: contract.Value(`1`), CompletedAt: contract.At(kerneltest.Epoch)}, nil, "failed", "invalid_tool_result"},
	} {
		plane.Answer = func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
			return tt.r, tt.err
		}
		if r := turn.Invoke(t.Context(), kerneltest.Call("call-1", "files.read", `{"path":["a"]}`)); r.Status != tt.status || r.Error.Code != tt.code {
			t.Errorf("%s: %s %+v", name, r.Status, r.Error)
		}
	}
}
