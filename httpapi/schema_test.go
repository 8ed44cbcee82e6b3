package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// samples are one rich object of every type that the document describes and the
// contract can parse.
func samples() map[string]struct {
	text  string
	parse func([]byte) error
} {
	const request = `{"id":"r","namespaceId":"n","requester":{"kind":"agent","agentId":"a"},"owner":{"kind":"service","serviceId":"s"},"capabilities":[{"resource":{"namespace":"n","path":["p"],"owner":{"kind":"group","conversationId":"c"}},"actions":["read","*"],"scope":"exact"}],"purpose":"p","constraints":{"purposes":["p"],"notBefore":"2026-01-01T00:00:00.000Z","expiresAt":"2026-01-02T00:00:00.000Z","maxUses":3,"delegationDepth":0},"requestedAt":"2026-01-01T00:00:00.000Z","metadata":{}}`
	const failure = `{"code":"c","message":"m","retryable":true,"details":{}}`
	const at = `"2026-01-01T00:00:00.000Z"`
	return map[string]struct {
		text  string
		parse func([]byte) error
	}{
		"CapabilityRequirement":   {`{"resource":{"namespace":"n","path":["p"],"owner":{"kind":"human","userId":"u"}},"action":"read"}`, parses[contract.CapabilityRequirement]},
		"AuthorizationDecision":   {`{"allowed":false,"reasonCode":"c","matchedGrantId":"g","requiredAuthority":` + request + `,"metadata":{}}`, parses[contract.AuthorizationDecision]},
		"ToolDefinition":          {`{"name":"n","description":"d","namespace":"n","source":"s","readWrite":"read","inputSchema":{},"outputSchema":{},"requiredCapability":{"resource":{"namespace":"n","path":[]},"action":"a"},"annotations":{"readOnly":true,"destructive":false,"idempotent":true},"metadata":{}}`, parses[contract.ToolDefinition]},
		"ReachResult":             {`{"status":"computed","reach":[{"namespace":"n","path":["p"],"actions":["read"],"scope":"descendants"}]}`, parses[contract.ReachResult]},
		"ToolNamespaceCatalog":    {`{"namespaces":[{"namespace":"n","sources":["s"],"toolCount":1,"enabled":true}],"summary":{"total":1,"enabled":1,"disabled":0}}`, parses[contract.ToolNamespaceCatalog]},
		"ToolNamespaceUpdate":     {`{"enable":["a","b"],"disable":["c"]}`, parses[contract.ToolNamespaceUpdate]},
		"ToolCall":                {`{"id":"i","tool":"t","arguments":{},"traceId":"t","requestedAt":` + at + `}`, parses[contract.ToolCall]},
		"ToolResult":              {`{"callId":"i","tool":"t","status":"denied","error":` + failure + `,"completedAt":` + at + `,"metadata":{}}`, parses[contract.ToolResult]},
		"RemoteResourceOperation": {`{"operationId":"o","resource":{"namespace":"n","path":[]},"action":"a","input":null,"metadata":{}}`, parses[contract.RemoteResourceOperation]},
		"ResourceResult":          {`{"operationId":"o","status":"succeeded","output":null,"completedAt":` + at + `,"metadata":{}}`, parses[contract.ResourceResult]},
		"MessageEnvelope":         {`{"version":"1","id":"i","sender":{"kind":"human","userId":"u"},"receiver":{"kind":"agent","agentId":"a"},"purpose":"p","payload":[],"traceId":"t","createdAt":` + at + `,"replyTo":"r","provenance":{"source":"s","parentIds":["p"],"metadata":{}}}`, parses[contract.MessageEnvelope]},
		"MessageDeliveryResult":   {`{"messageId":"m","timestamp":` + at + `,"status":"failed","error":` + failure + `,"metadata":{}}`, parses[contract.MessageDeliveryResult]},
		"RemoteExecutionRequest":  {mustCompact(seedTurn), parses[contract.RemoteExecutionRequest]},
		"ExecutionResult": {`{"version":"1","executionId":"e","traceId":"t","status":"escalated","escalation":{"reason":"r","reviewer":{"kind":"human","userId":"u"},"requestedAt":` + at + `,"requestedAuthority":` + request + `,"status":"pending"},"events":[{"version":"1","eventId":"e","executionId":"e","traceId":"t","sequence":0,"type":"turn.started","data":{},"occurredAt":` + at + `}],"startedAt":` + at + `,"completedAt":` + at + `,"metadata":{}}`,
			parses[contract.ExecutionResult]},
	}
}

func parses[T any](body []byte) error {
	_, err := contract.Unmarshal[T](body)
	return err
}

func mustCompact(text string) string {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		panic(err)
	}
	return out.String()
}

// beyond are rules that span fields, which the document leaves to words, and the one
// leniency that it does not offer.
func beyond(change string) bool {
	return slices.Contains([]string{
		// Which of output, error, escalation, reach and reasonCode belongs to which status.
		"ToolResult.error removed", "MessageDeliveryResult.error removed", "ResourceResult.output removed", "ExecutionResult.escalation removed",
		"ReachResult.reach[0] removed",
		// The contract takes an empty optional id for none.
		"AuthorizationDecision.matchedGrantId is empty", "MessageEnvelope.replyTo is empty",
		// The summary counts the namespaces.
		"ToolNamespaceCatalog.namespaces[0] removed", "ToolNamespaceCatalog.summary.total is 0", "ToolNamespaceCatalog.summary.enabled is 0",
	}, change)
}

// TestSchemasAgreeWithTheContract: of objects with one field changed, the document's
// schemas take exactly those that the contract takes.
func TestSchemasAgreeWithTheContract(t *testing.T) {
	t.Parallel()
	d, c := readDocument(t)
	covered := map[string]bool{"Health": true, "Error": true, "ErrorDetail": true}
	compared := 0
	for name, sample := range samples() {
		schema := compile(t, c, "components", "schemas", name)
		var root any
		if err := json.Unmarshal([]byte(sample.text), &root); err != nil {
			t.Fatal(err)
		}
		if err := fits(t, schema, sample.text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := sample.parse([]byte(sample.text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mark(d, covered, name)
		mutate(root, name, func(v any) { root = v }, func(change string) {
			compared++
			text := mustJSON(t, root)
			bySchema, byContract := fits(t, schema, text), sample.parse([]byte(text))
			if (bySchema == nil) != (byContract == nil) && !beyond(change) {
				t.Errorf("%s:\n  schema: %v\n  contract: %v", change, bySchema, byContract)
			}
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(d.Components.Schemas)), slices.Sorted(maps.Keys(covered))); diff != "" {
		t.Errorf("schemas without a sample (-all +covered):\n%s", diff)
	}
	if compared < 1000 {
		t.Errorf("only %d changes", compared)
	}
}

// mark follows references.
func mark(d document, covered map[string]bool, name string) {
	if covered[name] {
		return
	}
	covered[name] = true
	for _, part := range strings.Split(string(d.Components.Schemas[name]), `"#/components/schemas/`)[1:] {
		other, _, _ := strings.Cut(part, `"`)
		mark(d, covered, other)
	}
}

// mutate changes one thing at a time, everywhere below v, and puts it back.
func mutate(v any, at string, set func(any), try func(change string)) {
	replace := func(what string, with any) {
		set(with)
		try(at + " is " + what)
		set(v)
	}
	free := strings.HasSuffix(at, "metadata") || strings.HasSuffix(at, ".payload") || strings.HasSuffix(at, ".state") || strings.HasSuffix(at, ".input") ||
		strings.HasSuffix(at, ".output") || strings.HasSuffix(at, "details") || strings.HasSuffix(at, "arguments") || strings.HasSuffix(at, "Schema") || strings.HasSuffix(at, ".data")
	switch v := v.(type) {
	case map[string]any:
		replace("a list", []any{})
		replace("a string", "x")
		if free {
			replace("any object", map[string]any{"anything": []any{1, "x", nil}})
			return
		}
		v["surprise"] = 1
		try(at + " with a surprise")
		delete(v, "surprise")
		for key, inner := range maps.Clone(v) {
			delete(v, key)
			try(at + "." + key + " removed")
			v[strings.ToUpper(key)] = inner
			try(at + "." + key + " in another case")
			delete(v, strings.ToUpper(key))
			v[key] = inner
			mutate(inner, at+"."+key, func(with any) { v[key] = with }, try)
		}
	case []any:
		if free {
			replace("anything", "x")
			return
		}
		replace("an object", map[string]any{})
		for i := range v {
			mutate(v[i], fmt.Sprintf("%s[%d]", at, i), func(with any) { v[i] = with }, try)
			removed := slices.Delete(slices.Clone(v), i, i+1)
			set(removed)
			try(fmt.Sprintf("%s[%d] removed", at, i))
			set(v)
		}
		for _, n := range []int{63, 64, 65, 255, 256, 257} {
			many := make([]any, n)
			for i := range many {
				if many[i] = "x"; len(v) > 0 {
					many[i] = v[0]
					if _, ok := v[0].(string); ok {
						many[i] = fmt.Sprintf("x%d", i)
					}
				}
			}
			if strings.HasPrefix(at, "ToolNamespaceCatalog.namespaces") && at == "ToolNamespaceCatalog.namespaces" {
				continue // the summary would not count them
			}
			replace(fmt.Sprintf("%d entries", n), many)
		}
		if len(v) > 0 && strings.Contains(at, "ToolNamespace") && at != "ToolNamespaceCatalog.namespaces" {
			replace("an entry twice", []any{v[0], v[0]})
		}
	case string:
		replace("a number", 7)
		replace("null", nil)
		replace("empty", "")
		replace("another word", "another-word")
		replace("a date", "2026-02-30")
		for _, n := range []int{128, 129, 256, 257, 512, 513, 8192, 8193} {
			replace(fmt.Sprintf("of %d characters", n), strings.Repeat("ü", n))
			replace(fmt.Sprintf("of %d letters", n), strings.Repeat("x", n))
		}
		if strings.Contains(at, ".path[") {
			for _, segment := range []string{".", "..", "...", "a/b", `a\b`, "a\nb", "a\x7f"} {
				replace(fmt.Sprintf("%q", segment), segment)
			}
		}
	case float64:
		replace("a string", "1")
		for _, n := range []json.Number{"-1", "0", "1", "1.5", "1000", "1001", "10000", "10001", "600000", "600001", "9007199254740991", "9007199254740992"} {
			if strings.HasPrefix(at, "ToolNamespaceCatalog.summary") && n != "0" && n != "-1" {
				continue // another count is none
			}
			replace(n.String(), n)
		}
	case bool:
		replace("a string", "true")
		replace("null", nil)
	case nil:
		replace("any value", []any{1})
	}
}
