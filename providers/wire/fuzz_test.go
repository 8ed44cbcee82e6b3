package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/providers/wire"
)

// FuzzParseOperation: whatever is accepted is valid, is inside its own world, and
// means the same when written and read again.
func FuzzParseOperation(f *testing.F) {
	f.Add([]byte(`{"operationId":"o","resource":{"namespace":"files","path":["a"]},"action":"list","input":{"x":1e400},` +
		`"context":{"namespaceId":"w","actor":{"kind":"agent","agentId":"a"},"owner":{"kind":"human","userId":"u"}}}`))
	f.Add([]byte(`{"operationId":"o","resource":{"namespace":"files","path":[]},"action":"list","context":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		op, err := wire.ParseOperation(data)
		if err != nil {
			return
		}
		if op.Context == nil || op.Context.NamespaceID == "" || op.Context.Owner.Validate() != nil || op.Context.Actor.Validate() != nil {
			t.Fatalf("accepted without a context: %q", data)
		}
		if op.Resource.Owner != nil && *op.Resource.Owner != op.Context.Owner {
			t.Fatalf("accepted another owner: %q", data)
		}
		again, err := json.Marshal(wire.Operation{
			OperationID: op.OperationID, Resource: op.Resource, Action: op.Action, Input: op.Input, Metadata: op.Metadata,
			Context: wire.Context{NamespaceID: op.Context.NamespaceID, Actor: op.Context.Actor, Owner: op.Context.Owner},
		})
		if err != nil {
			t.Fatalf("accepted operation does not encode: %v", err)
		}
		reread, err := wire.ParseOperation(again)
		if err != nil {
			t.Fatalf("accepted operation is refused when written again: %v", err)
		}
		reread.Input, reread.Metadata, op.Input, op.Metadata = nil, nil, nil, nil
		if diff := cmp.Diff(op, reread); diff != "" {
			t.Fatalf("reading twice differs:\n%s", diff)
		}
	})
}

// FuzzParseResult: whatever is accepted answers the operation and is valid.
func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"operationId":"o","status":"succeeded","output":{"a":[1]},"completedAt":"2026-12-01T09:00:00Z"}`))
	f.Add([]byte(`{"operationId":"o","status":"failed","error":{"code":"c","message":"m"},"completedAt":"2026-12-01T09:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := wire.ParseResult(data, "o")
		if err != nil {
			return
		}
		if result.OperationID != "o" || result.Validate() != nil {
			t.Fatalf("accepted %q", data)
		}
		if (result.Status == contract.StatusSucceeded) != (result.Error == nil) {
			t.Fatalf("accepted a contradiction: %q", data)
		}
	})
}
