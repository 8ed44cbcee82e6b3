package contract_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// A few whole objects, from which the tests below derive broken ones.
const (
	grantJSON = `{"id":"g","namespaceId":"w","subject":{"kind":"agent","agentId":"a"},"issuer":{"kind":"human","userId":"h"},` +
		`"capabilities":[{"resource":{"namespace":"files","path":["Work"],"owner":{"kind":"group","conversationId":"c"}},"actions":["read"],"scope":"descendants"}],` +
		`"constraints":{"purposes":["p"],"notBefore":"2026-01-01T00:00:00.000Z","expiresAt":"2026-01-02T00:00:00.000+02:00","maxUses":3,"delegationDepth":0},` +
		`"issuedAt":"2026-01-01T00:00:00.000Z","revokedAt":"2026-01-03T00:00:00.123456Z","parentGrantId":"root","metadata":{"n":12345678901234567890}}`
	contextJSON = `{"namespaceId":"w","actor":{"kind":"agent","agentId":"a"},"authority":{"kind":"human","userId":"h"},"owner":{"kind":"service","serviceId":"s"},` +
		`"purpose":"p","traceId":"t","enabledToolNamespaces":["files"],"now":"2026-01-01T00:00:00.000Z"}`
	definitionJSON = `{"name":"files.read","description":"Read.","namespace":"files","source":"sharedos","readWrite":"read","inputSchema":{"type":"object"},"outputSchema":{},` +
		`"requiredCapability":{"resource":{"namespace":"files","path":[]},"action":"read"},"annotations":{"readOnly":true,"idempotent":true},"metadata":{}}`
	messageJSON = `{"version":"1","id":"m","sender":{"kind":"human","userId":"h"},"receiver":{"kind":"agent","agentId":"a"},"purpose":"p","payload":null,"traceId":"t",` +
		`"createdAt":"2026-01-01T00:00:00.000Z","replyTo":"m0","provenance":{"source":"s","parentIds":["x"],"metadata":{}}}`
	requestJSON = `{"version":"1","executionId":"e","agent":{"kind":"agent","agentId":"a"},"context":` + contextJSON + `,"message":` + messageJSON +
		`,"tools":[` + definitionJSON + `],"state":[1],"options":{"maxSteps":1000,"maxToolCalls":10000,"timeoutMs":600000},"metadata":{}}`
	capabilityRequestJSON = `{"id":"r","namespaceId":"w","requester":{"kind":"agent","agentId":"a"},"owner":{"kind":"human","userId":"h"},` +
		`"capabilities":[{"resource":{"namespace":"files","path":[]},"actions":["read"],"scope":"exact"}],"purpose":"p","constraints":{"maxUses":1},"requestedAt":"2026-01-01T00:00:00.000Z","metadata":{}}`
	errorJSON  = `{"code":"c","message":"m","retryable":false,"details":{"k":1}}`
	eventJSON  = `{"version":"1","eventId":"e0","executionId":"e","traceId":"t","sequence":0,"type":"turn.started","data":{},"occurredAt":"2026-01-01T00:00:00.000Z"}`
	resultJSON = `{"version":"1","executionId":"e","traceId":"t","status":"succeeded","output":1,"events":[` + eventJSON + `],"startedAt":"2026-01-01T00:00:00.000Z","completedAt":"2026-01-01T00:00:00.000Z","metadata":{}}`
)

// parse is Unmarshal of one type, for tables.
func parse[T any](data []byte) (any, error) { return contract.Unmarshal[T](data) }

type parser func([]byte) (any, error)

// replace substitutes one part of a whole object.
func replace(whole, old, with string) string { return strings.Replace(whole, old, with, 1) }

func TestWholeObjectsSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parse parser
		in    string
	}{
		"grant":              {parse[contract.Grant], grantJSON},
		"context":            {parse[contract.AccessContext], contextJSON},
		"definition":         {parse[contract.ToolDefinition], definitionJSON},
		"message":            {parse[contract.MessageEnvelope], messageJSON},
		"request":            {parse[contract.ExecutionRequest], requestJSON},
		"capability request": {parse[contract.CapabilityRequest], capabilityRequestJSON},
		"error":              {parse[contract.ProtocolError], errorJSON},
		"event":              {parse[contract.ExecutionEvent], eventJSON},
		"result":             {parse[contract.ExecutionResult], resultJSON},
		"decision":           {parse[contract.AuthorizationDecision], `{"allowed":false,"reasonCode":"no_matching_grant","requiredAuthority":` + capabilityRequestJSON + `,"metadata":{}}`},
		"call":               {parse[contract.ToolCall], `{"id":"c","tool":"😀 odd","arguments":{"n":1234567890123456789},"traceId":"t","requestedAt":"2026-01-01T00:00:00.000Z"}`},
		"tool result":        {parse[contract.ToolResult], `{"callId":"c","tool":"t","status":"denied","error":` + errorJSON + `,"completedAt":"2026-01-01T00:00:00.000Z","metadata":{}}`},
		"operation":          {parse[contract.ResourceOperation], `{"operationId":"o","resource":{"namespace":"files","path":[]},"action":"read","input":{},"metadata":{},"context":` + contextJSON + `}`},
		"remote operation":   {parse[contract.RemoteResourceOperation], `{"operationId":"o","resource":{"namespace":"files","path":[]},"action":"read","input":{},"metadata":{}}`},
		"resource result":    {parse[contract.ResourceResult], `{"operationId":"o","status":"succeeded","output":null,"completedAt":"2026-01-01T00:00:00.000Z"}`},
		"receipt":            {parse[contract.MessageDeliveryResult], `{"messageId":"m","timestamp":"2026-01-01T00:00:00.000Z","status":"failed","error":` + errorJSON + `,"metadata":{}}`},
		"remote request":     {parse[contract.RemoteExecutionRequest], `{"version":"1","executionId":"e","agent":{"kind":"agent","agentId":"a"},"message":` + messageJSON + `,"options":{}}`},
		"reach":              {parse[contract.ReachResult], `{"status":"computed","reach":[{"namespace":"files","path":[],"actions":["read"],"scope":"exact"}]}`},
		"no reach":           {parse[contract.ReachResult], `{"status":"unavailable","reasonCode":"usage_store_unavailable"}`},
		"update":             {parse[contract.ToolNamespaceUpdate], `{"enable":["a"],"disable":["b"]}`},
		"namespaces":         {parse[contract.ToolNamespaceCatalog], `{"namespaces":[{"namespace":"a","sources":["s"],"toolCount":1,"enabled":true}],"summary":{"total":1,"enabled":1,"disabled":0}}`},
		"escalation":         {parse[contract.Escalation], `{"reason":" spaced ","reviewer":{"kind":"human","userId":"h"},"requestedAt":"2026-01-01T00:00:00.000Z","requestedAuthority":` + capabilityRequestJSON + `,"status":"pending"}`},
		"published":          {parse[contract.PublishedTool], `{"name":"a.b","description":"d","inputSchema":{},"annotations":{"openWorldHint":true},"metadata":{"namespace":"n","source":"s"}}`},
		"cancelled":          {parse[contract.ExecutionResult], replace(replace(resultJSON, `"status":"succeeded","output":1`, `"status":"cancelled","error":`+errorJSON), `{}}`, `{}}`)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := tt.parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := canonical.Transform([]byte(tt.in))
			got, _ := canonical.Transform(out)
			if string(want) != string(got) {
				t.Errorf("round trip\n got %s\nwant %s", got, want)
			}
			if strings.Contains(tt.in, "123456789012345") && !strings.Contains(string(out), "123456789012345678") {
				t.Errorf("digits were rounded: %s", out)
			}
			if _, err := tt.parse([]byte(replace(tt.in, `{`, `{"hidden":1,`))); ruleOf(err) != "unknown_field" {
				t.Errorf("an unknown field: %v", err)
			}
		})
	}
}

func ruleOf(err error) string {
	if e, ok := errors.AsType[*contract.FieldError](err); ok {
		return e.Rule
	}
	return ""
}

func TestBrokenObjectsAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 513)
	many := strings.TrimSuffix(strings.Repeat(`"p",`, 65), ",")
	capability := `{"resource":{"namespace":"files","path":["Work"],"owner":{"kind":"group","conversationId":"c"}},"actions":["read"],"scope":"descendants"}`
	call := `{"id":"c","tool":"t","arguments":{},"traceId":"t","requestedAt":"2026-01-01T00:00:00.000Z"}`
	receipt := `{"messageId":"m","timestamp":"2026-01-01T00:00:00.000Z","status":"failed","error":` + errorJSON + `}`
	answer := `{"callId":"c","tool":"t","status":"succeeded","output":1,"completedAt":"2026-01-01T00:00:00.000Z"}`
	escalation := `{"reason":"r","reviewer":{"kind":"human","userId":"h"},"requestedAt":"2026-01-01T00:00:00.000Z","status":"pending"}`
	namespaces := `{"namespaces":[{"namespace":"a","sources":["s"],"toolCount":1,"enabled":true}],"summary":{"total":1,"enabled":1,"disabled":0}}`
	tests := []struct {
		parse            parser
		whole, old, with string
		rule, path       string
	}{
		{parse[contract.Grant], grantJSON, `"id":"g"`, `"id":""`, "length", "id"},
		{parse[contract.Grant], grantJSON, `"id":"g"`, `"id":" g"`, "trimmed", "id"},
		{parse[contract.Grant], grantJSON, `"id":"g"`, `"id":"\ufeffg"`, "trimmed", "id"},
		{parse[contract.Grant], grantJSON, `"id":"g"`, `"id":"` + strings.Repeat("é", 257) + `"`, "length", "id"},
		{parse[contract.Grant], grantJSON, `"root"`, `"g"`, "value", "parentGrantId"},
		{parse[contract.Grant], grantJSON, capability, ``, "items", "capabilities"},
		{parse[contract.Grant], grantJSON, capability, strings.TrimSuffix(strings.Repeat(capability+",", 65), ","), "items", "capabilities"},
		{parse[contract.Grant], grantJSON, `["read"]`, `[]`, "items", "capabilities[0].actions"},
		{parse[contract.Grant], grantJSON, `["read"]`, `["` + long[:129] + `"]`, "length", "capabilities[0].actions[0]"},
		{parse[contract.Grant], grantJSON, `["read"]`, `["read "]`, "trimmed", "capabilities[0].actions[0]"},
		{parse[contract.Grant], grantJSON, `"descendants"`, `"children"`, "value", "capabilities[0].scope"},
		{parse[contract.Grant], grantJSON, `["Work"]`, `["a","..",1]`, "type", "capabilities[0].resource.path[2]"},
		{parse[contract.Grant], grantJSON, `["Work"]`, `["a",".."]`, "pattern", "capabilities[0].resource.path[1]"},
		{parse[contract.Grant], grantJSON, `["Work"]`, `[` + many + `]`, "items", "capabilities[0].resource.path"},
		{parse[contract.Grant], grantJSON, `"purposes":["p"]`, `"purposes":[]`, "items", "constraints.purposes"},
		{parse[contract.Grant], grantJSON, `"purposes":["p"]`, `"purposes":[` + many + `]`, "items", "constraints.purposes"},
		{parse[contract.Grant], grantJSON, `"purposes":["p"]`, `"purposes":["` + long + `"]`, "length", "constraints.purposes[0]"},
		{parse[contract.Grant], grantJSON, `"maxUses":3`, `"maxUses":0`, "value", "constraints.maxUses"},
		{parse[contract.Grant], grantJSON, `"maxUses":3`, `"maxUses":1.5`, "type", "constraints.maxUses"},
		{parse[contract.Grant], grantJSON, `"maxUses":3`, `"maxUses":9007199254740992`, "value", "constraints.maxUses"},
		{parse[contract.Grant], grantJSON, `"delegationDepth":0`, `"delegationDepth":-1`, "value", "constraints.delegationDepth"},
		{parse[contract.Grant], grantJSON, `"notBefore":"2026-01-01`, `"notBefore":"2026-02-01`, "order", "constraints.notBefore"},
		{parse[contract.Grant], grantJSON, `"issuedAt":"2026-01-01T00:00:00.000Z"`, `"issuedAt":"2026-01-01"`, "type", "issuedAt"},
		{parse[contract.Grant], grantJSON, `"issuedAt":"2026-01-01T00:00:00.000Z"`, `"issuedAt":"0001-01-01T00:00:00Z"`, "required", "issuedAt"},
		{parse[contract.Grant], grantJSON, `"metadata":{`, `"metadata":[],"x":{`, "unknown_field", "x"},
		{parse[contract.Grant], grantJSON, `{"n":12345678901234567890}`, `[]`, "type", "metadata"},
		{parse[contract.Grant], grantJSON, `"subject"`, `"Subject"`, "case_variant", "Subject"},
		{parse[contract.Grant], grantJSON, `"agentId":"a"`, `"userId":"a"`, "type", "subject"},
		{parse[contract.Grant], grantJSON, `"kind":"agent",`, `"kind":"robot",`, "type", "subject"},
		{parse[contract.Grant], grantJSON, `"agentId":"a"`, `"agentId":"a","userId":"b"`, "type", "subject"},
		{parse[contract.Grant], grantJSON, `"agentId":"a"`, `"agentId":""`, "length", "subject.agentId"},
		{parse[contract.Grant], grantJSON, `{"kind":"agent","agentId":"a"}`, `"agent:a"`, "type", "subject"},
		{parse[contract.AccessContext], contextJSON, `["files"]`, `["files","files"]`, "unique", "enabledToolNamespaces"},
		{parse[contract.AccessContext], contextJSON, `["files"]`, `null`, "null", "enabledToolNamespaces"},
		{parse[contract.AccessContext], contextJSON, `"purpose":"p"`, `"purpose":""`, "length", "purpose"},
		{parse[contract.AccessContext], contextJSON, `"traceId":"t"`, `"traceId":"\u00a0t"`, "trimmed", "traceId"},
		{parse[contract.ToolDefinition], definitionJSON, `files.read`, `files read`, "pattern", "name"},
		{parse[contract.ToolDefinition], definitionJSON, `files.read`, long[:129], "length", "name"},
		{parse[contract.ToolDefinition], definitionJSON, `"readWrite":"read"`, `"readWrite":"both"`, "value", "readWrite"},
		{parse[contract.ToolDefinition], definitionJSON, `"readOnly":true`, `"destructive":true`, "value", "annotations.destructive"},
		{parse[contract.ToolDefinition], definitionJSON, `"readWrite":"read"`, `"readWrite":"write"`, "value", "annotations.readOnly"},
		{parse[contract.ToolDefinition], definitionJSON, `{"type":"object"}`, `true`, "type", "inputSchema"},
		{parse[contract.ToolDefinition], definitionJSON, `"description":"Read."`, `"description":""`, "length", "description"},
		{parse[contract.ToolCall], call, `"arguments":{}`, `"arguments":[]`, "type", "arguments"},
		{parse[contract.ToolCall], call, `"arguments":{}`, `"arguments":{"a":1,"a":2}`, "duplicate_key", "arguments"},
		{parse[contract.ToolCall], call, `,"arguments":{}`, ``, "required", "arguments"},
		{parse[contract.ToolCall], call, `"tool":"t"`, `"tool":""`, "length", "tool"},
		{parse[contract.ToolResult], answer, `"output":1`, `"error":` + errorJSON, "required", "output"},
		{parse[contract.ToolResult], answer, `"output":1`, `"output":1,"error":` + errorJSON, "value", "error"},
		{parse[contract.ToolResult], answer, `"succeeded"`, `"cancelled"`, "value", "status"},
		{parse[contract.ToolResult], answer, `"succeeded"`, `"denied"`, "required", "error"},
		{parse[contract.ToolResult], answer, `"succeeded","output":1`, `"failed","output":1,"error":` + errorJSON, "value", "output"},
		{parse[contract.ProtocolError], errorJSON, `"code":"c"`, `"code":""`, "length", "code"},
		{parse[contract.ProtocolError], errorJSON, `"message":"m"`, `"message":""`, "length", "message"},
		{parse[contract.ProtocolError], errorJSON, `{"k":1}`, `1`, "type", "details"},
		{parse[contract.MessageEnvelope], messageJSON, `"version":"1"`, `"version":"2"`, "value", "version"},
		{parse[contract.MessageEnvelope], messageJSON, `"payload":null,`, ``, "required", "payload"},
		{parse[contract.MessageEnvelope], messageJSON, `["x"]`, `[` + many + `]`, "items", "provenance.parentIds"},
		{parse[contract.MessageDeliveryResult], receipt, `"failed"`, `"delivered"`, "value", "error"},
		{parse[contract.MessageDeliveryResult], receipt, `"error":` + errorJSON, `"metadata":{}`, "required", "error"},
		{parse[contract.MessageDeliveryResult], receipt, `"failed"`, `"lost"`, "value", "status"},
		{parse[contract.ExecutionRequest], requestJSON, `"maxSteps":1000`, `"maxSteps":1001`, "value", "options.maxSteps"},
		{parse[contract.ExecutionRequest], requestJSON, `"maxSteps":1000`, `"maxSteps":0`, "value", "options.maxSteps"},
		{parse[contract.ExecutionRequest], requestJSON, `"maxToolCalls":10000`, `"maxToolCalls":10001`, "value", "options.maxToolCalls"},
		{parse[contract.ExecutionRequest], requestJSON, `"timeoutMs":600000`, `"timeoutMs":600001`, "value", "options.timeoutMs"},
		{parse[contract.ExecutionRequest], requestJSON, `{"kind":"agent","agentId":"a"}`, `{"kind":"human","userId":"a"}`, "value", "agent.kind"},
		{parse[contract.RemoteExecutionRequest], requestJSON, ``, ``, "unknown_field", "context"},
		{parse[contract.ExecutionEvent], eventJSON, `"turn.started"`, `"turn.begun"`, "value", "type"},
		{parse[contract.ExecutionEvent], eventJSON, `"sequence":0`, `"sequence":-1`, "value", "sequence"},
		{parse[contract.ExecutionResult], resultJSON, `"succeeded","output":1`, `"escalated"`, "required", "escalation"},
		{parse[contract.ExecutionResult], resultJSON, `"succeeded","output":1`, `"escalated","error":` + errorJSON + `,"escalation":` + escalation, "value", "error"},
		{parse[contract.ExecutionResult], resultJSON, `"output":1`, `"output":1,"escalation":` + escalation, "value", "escalation"},
		{parse[contract.ExecutionResult], resultJSON, `"succeeded"`, `"cancelled"`, "value", "output"},
		{parse[contract.ExecutionResult], resultJSON, `"succeeded"`, `"done"`, "value", "status"},
		{parse[contract.Escalation], escalation, `"reason":"r"`, `"reason":"` + long + `"`, "length", "reason"},
		{parse[contract.Escalation], escalation, `"pending"`, `"approved"`, "value", "status"},
		{parse[contract.ReachResult], `{"status":"unavailable","reasonCode":"x"}`, ``, ``, "value", "reasonCode"},
		{parse[contract.ReachResult], `{"status":"computed","reasonCode":"x"}`, ``, ``, "value", "status"},
		{parse[contract.ToolNamespaceUpdate], `{}`, ``, ``, "items", ""},
		{parse[contract.ToolNamespaceUpdate], `{"enable":["a"],"disable":["a"]}`, ``, ``, "unique", "enable"},
		{parse[contract.ToolNamespaceUpdate], `{"enable":["a","a"]}`, ``, ``, "unique", "enable"},
		{parse[contract.ToolNamespaceCatalog], namespaces, `"total":1`, `"total":2`, "value", "summary"},
		{parse[contract.ToolNamespaceCatalog], namespaces, `"toolCount":1`, `"toolCount":0`, "value", "namespaces[0].toolCount"},
		{parse[contract.ToolNamespaceCatalog], namespaces, `["s"]`, `[]`, "items", "namespaces[0].sources"},
		{parse[contract.CapabilityRequest], capabilityRequestJSON, `"requestedAt":"2026-01-01T00:00:00.000Z"`, `"requestedAt":null`, "null", "requestedAt"},
	}
	for _, tt := range tests {
		in := tt.whole
		if tt.old != "" {
			if in = replace(tt.whole, tt.old, tt.with); in == tt.whole {
				t.Errorf("%q is not in %.60s", tt.old, tt.whole)
				continue
			}
		}
		_, err := tt.parse([]byte(in))
		var e *contract.FieldError
		if !errors.As(err, &e) || e.Rule != tt.rule || e.Path != tt.path {
			t.Errorf("%.80s -> %.80s: %v, want rule %s at %q", tt.old, tt.with, err, tt.rule, tt.path)
		}
	}
}

func TestInvalidUTF8IsRefusedInValuesBuiltInProcess(t *testing.T) {
	t.Parallel()
	need := contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"a\xff"}}, Action: "read"}
	if err := need.Validate(); ruleOf(err) != "utf8" {
		t.Errorf("a path with invalid UTF-8: %v", err)
	}
	if err := (contract.ResourceRef{Namespace: "a\xff"}).Validate(); ruleOf(err) != "utf8" {
		t.Errorf("a namespace with invalid UTF-8: %v", err)
	}
	c := contract.Catalogue{Version: "1", ExecutionID: "e", Tools: []contract.PublishedTool{{Name: "b", Description: "d", InputSchema: contract.Object(`{}`)}, {Name: "a", Description: "d", InputSchema: contract.Object(`{}`)}}}
	if err := c.Validate(); ruleOf(err) != "order" {
		t.Errorf("an unsorted catalogue: %v", err)
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-12-01T09:00:00Z":                "2026-12-01T09:00:00.000Z",
		"2026-12-01T09:00:00.5+02:00":         "2026-12-01T09:00:00.500+02:00",
		"2026-12-01T09:00:00.123456789-00:30": "2026-12-01T09:00:00.123456789-00:30",
		"2024-02-29T23:59:59.1234567891234Z":  "2024-02-29T23:59:59.123456789Z",
	} {
		var ts contract.Timestamp
		if err := json.Unmarshal([]byte(`"`+in+`"`), &ts); err != nil || ts.String() != want {
			t.Errorf("%s read as %s, %v; want %s", in, ts, err, want)
		}
	}
	for _, in := range []string{
		`"2026-12-01T09:00:00"`, `"2026-12-01 09:00:00Z"`, `"2026-12-01T9:00:00Z"`, `"2026-12-01T09:00:00,5Z"`, `"2026-12-01T09:00:00+24:00"`,
		`"2026-12-01T09:00:00+02:60"`, `"2026-12-01T09:00:00+0200"`, `"2026-02-30T09:00:00Z"`, `"2026-12-01T24:00:00Z"`, `"2026-12-01t09:00:00z"`, `""`, `1`, `"now"`,
	} {
		var ts contract.Timestamp
		if json.Unmarshal([]byte(in), &ts) == nil {
			t.Errorf("%s was read as %s", in, ts)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []contract.Address{contract.Agent("a"), contract.Human("h\""), {Kind: contract.KindGroup, ID: "g:1"}, {Kind: contract.KindService, ID: "é"}} {
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := canonical.Transform(raw)
		if err != nil || string(a.AppendCanonical(nil)) != string(want) {
			t.Errorf("canonical form of %v is %s, want %s", a, a.AppendCanonical(nil), want)
		}
		back, err := contract.Unmarshal[contract.Address](raw)
		if err != nil || back != a {
			t.Errorf("%v came back as %v, %v", a, back, err)
		}
	}
	if got := contract.CanonicalActor(contract.Agent("a:b")); got != "agent:a:b" {
		t.Errorf("label = %q", got)
	}
	if _, err := json.Marshal(contract.Address{Kind: "robot", ID: "x"}); err == nil {
		t.Error("an address of no kind was written")
	}
	if _, err := contract.Unmarshal[contract.Address]([]byte(`{"kind":"human","userId":null}`)); err == nil {
		t.Error("an address without an id was read")
	}
}

func TestCapabilityRequestIDIsOfTheAskOnly(t *testing.T) {
	t.Parallel()
	ask, err := contract.Unmarshal[contract.CapabilityRequest]([]byte(capabilityRequestJSON))
	if err != nil {
		t.Fatal(err)
	}
	describe := func(change func(r *contract.CapabilityRequest)) string {
		t.Helper()
		r := ask
		change(&r)
		out, err := contract.DescribeAuthority(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Validate(); err != nil || len(out.ID) != 64 {
			t.Fatalf("described %+v, %v", out, err)
		}
		return out.ID
	}
	same := describe(func(*contract.CapabilityRequest) {})
	if later := describe(func(r *contract.CapabilityRequest) {
		r.ID, r.RequestedAt = "other", contract.At(r.RequestedAt.AddDate(1, 0, 0))
	}); later != same {
		t.Error("the instant of asking changes the id")
	}
	if other := describe(func(r *contract.CapabilityRequest) { r.Purpose = "q" }); other == same {
		t.Error("another purpose has the same id")
	}
	if _, err := contract.DescribeAuthority(contract.CapabilityRequest{}); err == nil {
		t.Error("an ask of nobody was described")
	}
}

func TestUnmarshalList(t *testing.T) {
	t.Parallel()
	list, err := contract.UnmarshalList[contract.ToolDefinition]([]byte(`[`+definitionJSON+`]`), 1)
	if err != nil || len(list) != 1 || list[0].Name != "files.read" {
		t.Errorf("list = %v, %v", list, err)
	}
	for in, rule := range map[string]string{
		`[` + definitionJSON + `,` + definitionJSON + `]`: "items", `[` + replace(definitionJSON, "files.read", "a b") + `]`: "pattern", `{}`: "type",
	} {
		if _, err := contract.UnmarshalList[contract.ToolDefinition]([]byte(in), 1); ruleOf(err) != rule {
			t.Errorf("%.40s: %v, want rule %s", in, err, rule)
		}
	}
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, tt := range []struct {
		d    contract.ToolDefinition
		want bool
	}{
		{contract.ToolDefinition{ReadWrite: contract.ClassRead}, true},
		{contract.ToolDefinition{ReadWrite: contract.ClassWrite}, false},
		{contract.ToolDefinition{ReadWrite: contract.ClassWrite, Annotations: &contract.ToolAnnotations{Idempotent: &no}}, false},
		{contract.ToolDefinition{ReadWrite: contract.ClassWrite, Annotations: &contract.ToolAnnotations{Idempotent: &yes}}, true},
	} {
		if got := tt.d.Repeatable(); got != tt.want {
			t.Errorf("Repeatable(%+v) = %t", tt.d, got)
		}
	}
}

func TestCompareCodeUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"a", "b", -1}, {"b", "a", 1}, {"a", "a", 0}, {"\U0001F600", "\ufb33", -1}, {"é", "e", 1}} {
		if got := contract.CompareCodeUnits(tt.a, tt.b); got != tt.want {
			t.Errorf("CompareCodeUnits(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
