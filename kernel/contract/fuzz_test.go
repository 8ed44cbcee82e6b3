package contract_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// stable checks that what was accepted survives being written and read again.
func stable[T any](t *testing.T, data []byte) {
	t.Helper()
	v, err := contract.Unmarshal[T](data)
	if err != nil {
		return
	}
	once, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("accepted what cannot be written: %q: %v", data, err)
	}
	again, err := contract.Unmarshal[T](once)
	if err != nil {
		t.Fatalf("wrote %s, which is refused: %v", once, err)
	}
	twice, err := json.Marshal(again)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("not stable: %s then %s, %v", once, twice, err)
	}
}

func FuzzGrant(f *testing.F) {
	f.Add([]byte(grantJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.Grant](t, data) })
}

func FuzzAccessContext(f *testing.F) {
	f.Add([]byte(contextJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.AccessContext](t, data) })
}

func FuzzToolDefinition(f *testing.F) {
	f.Add([]byte(definitionJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.ToolDefinition](t, data) })
}

func FuzzMessageEnvelope(f *testing.F) {
	f.Add([]byte(messageJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.MessageEnvelope](t, data) })
}

func FuzzExecutionRequest(f *testing.F) {
	f.Add([]byte(requestJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.ExecutionRequest](t, data) })
}

func FuzzExecutionResult(f *testing.F) {
	f.Add([]byte(resultJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.ExecutionResult](t, data) })
}

func FuzzCapabilityRequest(f *testing.F) {
	f.Add([]byte(capabilityRequestJSON))
	f.Fuzz(func(t *testing.T, data []byte) { stable[contract.CapabilityRequest](t, data) })
}

func FuzzTimestamp(f *testing.F) {
	f.Add(`"2026-12-01T09:00:00.123+02:00"`)
	f.Add(`"2026-12-01T9:00:00,5Z"`)
	f.Fuzz(func(t *testing.T, data string) { stable[contract.Timestamp](t, []byte(data)) })
}

func FuzzSegment(f *testing.F) {
	for _, s := range []string{"Work", "..", "a/b", "\u2028", "émile", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if contract.ValidateSegment(s) != nil {
			return
		}
		if s == "" || s == "." || s == ".." || bytes.ContainsAny([]byte(s), "/\\\x00\x7f\n\r\t") {
			t.Fatalf("accepted %q", s)
		}
	})
}
