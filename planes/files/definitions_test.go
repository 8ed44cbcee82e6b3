package files_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/planes/files"
)

// row is one row of the tool table.
type row struct {
	Action      string
	Class       contract.ReadWrite
	Destructive bool
}

func TestTheTableOfTools(t *testing.T) {
	want := map[string]row{
		"files.list":             {"list", contract.ClassRead, false},
		"files.stat":             {"stat", contract.ClassRead, false},
		"files.read":             {"read", contract.ClassRead, false},
		"files.search":           {"search", contract.ClassRead, false},
		"files.grep":             {"grep", contract.ClassRead, false},
		"files.create":           {"create", contract.ClassWrite, false},
		"files.replace":          {"replace", contract.ClassWrite, true},
		"files.append":           {"append", contract.ClassWrite, false},
		"files.delete":           {"delete", contract.ClassWrite, true},
		"files.snapshot.create":  {"snapshot:create", contract.ClassWrite, false},
		"files.snapshot.list":    {"snapshot:list", contract.ClassRead, false},
		"files.snapshot.restore": {"snapshot:restore", contract.ClassWrite, true},
	}
	got := map[string]row{}
	var names []string
	for _, d := range files.Definitions() {
		got[d.Name] = row{d.RequiredCapability.Action, d.ReadWrite, *d.Annotations.Destructive}
		names = append(names, d.Name)
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if len(d.OutputSchema) == 0 || d.Namespace != "files" || d.RequiredCapability.Resource.Namespace != "files" {
			t.Errorf("%s: no output schema or another namespace: %+v", d.Name, d)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(names) {
		t.Errorf("names are not sorted: %v", names)
	}
}

// everything is a world whose actor may do anything below files.
func everything(plane *kerneltest.Plane, actions ...string) *kerneltest.World {
	w := kerneltest.New(kerneltest.MakeGrant("all").Descendants("files", []string{"Work"}, actions...).Obj())
	w.Options.Tools = files.Tools(plane)
	return w
}

func TestArgumentsAreJudgedBySchema(t *testing.T) {
	plane := &kerneltest.Plane{Answer: func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		return contract.ResourceResult{
			OperationID: op.OperationID, Status: contract.StatusFailed, CompletedAt: contract.At(kerneltest.Epoch),
			Error: &contract.ProtocolError{Code: "reached", Message: "Reached."},
		}, nil
	}}
	turn := everything(plane, "*").Turn(t)
	for i, tc := range []struct{ tool, arguments, want string }{
		{"files.list", `{"path":["Work"]}`, "reached"},
		{"files.list", `{}`, contract.CodeInvalidToolArguments},
		{"files.list", `{"path":["Work"],"x":1}`, contract.CodeInvalidToolArguments},
		{"files.list", `{"path":"Work"}`, contract.CodeInvalidToolArguments},
		{"files.list", `{"path":[]}`, contract.CodeNoMatchingGrant},
		{"files.read", `{"path":["Private"]}`, contract.CodeNoMatchingGrant},
		{"files.search", `{"path":["Work"],"query":""}`, contract.CodeInvalidToolArguments},
		{"files.search", `{"path":["Work"],"query":"a","limit":101}`, contract.CodeInvalidToolArguments},
		{"files.search", `{"path":["Work"],"query":"a","limit":100}`, "reached"},
		{"files.grep", `{"path":["Work"],"pattern":"a","contextBefore":101}`, contract.CodeInvalidToolArguments},
		{"files.grep", `{"path":["Work"],"pattern":"a","mode":"glob"}`, contract.CodeInvalidToolArguments},
		{"files.grep", `{"path":["Work"],"pattern":"a","mode":"regex","caseSensitive":true,"contextAfter":100}`, "reached"},
		{"files.create", `{"path":[],"content":"a"}`, contract.CodeInvalidToolArguments},
		{"files.create", `{"path":["Work","a"]}`, contract.CodeInvalidToolArguments},
		{"files.create", `{"path":["Work","a"],"content":"a","metadata":{"k":1}}`, "reached"},
		{"files.create", `{"path":["Work","a"],"content":"a","expectedVersion":"x"}`, contract.CodeInvalidToolArguments},
		{"files.replace", `{"path":["Work","a"],"content":"a","metadata":{}}`, contract.CodeInvalidToolArguments},
		{"files.replace", `{"path":["Work","a"],"content":"a","expectedVersion":"x"}`, "reached"},
		{"files.append", `{"path":["Work","a"],"content":"YQ==","encoding":"base64","expectedVersion":"x","metadata":{}}`, "reached"},
		{"files.delete", `{"path":["Work","a"],"recursive":true}`, "reached"},
		{"files.snapshot.create", `{"path":["Work"],"label":"before"}`, "reached"},
		{"files.snapshot.list", `{"path":["Work"],"limit":0}`, contract.CodeInvalidToolArguments},
		{"files.snapshot.restore", `{"path":["Work"]}`, contract.CodeInvalidToolArguments},
		{"files.snapshot.restore", `{"path":["Work"],"snapshotId":"s"}`, "reached"},
	} {
		result := turn.Invoke(t.Context(), kerneltest.Call(fmt.Sprintf("call-%d", i), tc.tool, tc.arguments))
		if result.Error == nil || result.Error.Code != tc.want {
			t.Errorf("%s %s: %+v, want %s", tc.tool, tc.arguments, result.Error, tc.want)
		}
	}
}

func TestOperationIsExactlyTheCall(t *testing.T) {
	plane := &kerneltest.Plane{}
	turn := everything(plane, "snapshot:restore").Turn(t)
	turn.Invoke(t.Context(), kerneltest.Call("call-1", "files.snapshot.restore", `{"path":["Work","a"],"snapshotId":"s-1"}`))
	ops := plane.Operations()
	if len(ops) != 1 {
		t.Fatalf("%d operations, want 1", len(ops))
	}
	want := contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "a"}}
	if diff := cmp.Diff(want, ops[0].Resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if ops[0].Action != "snapshot:restore" || string(ops[0].Input) != `{"snapshotId":"s-1"}` || ops[0].Context.Owner != kerneltest.Alice() {
		t.Errorf("operation = %+v", ops[0])
	}
}
