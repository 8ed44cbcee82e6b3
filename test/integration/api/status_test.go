package api

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// turnStatusFull is the status of a turn that went through everything.
const turnStatusFull = `
observedGeneration: 1
outcome: escalated
executionId: e
traceId: t
conditions:
  - {type: Admitted, status: "True", reason: Admitted, message: "", lastTransitionTime: "2026-08-24T09:00:00Z", observedGeneration: 1}
  - {type: BridgeReady, status: "False", reason: Closed, message: "", lastTransitionTime: "2026-08-24T09:00:01Z", observedGeneration: 1}
  - {type: Finished, status: "True", reason: Escalated, message: "", lastTransitionTime: "2026-08-24T09:00:01Z", observedGeneration: 1}
admission:
  at: "2026-08-24T09:00:00.000000Z"
  context:
    actor: {kind: agent, agentId: alice-assistant}
    authority: {kind: human, userId: alice}
    owner: {kind: human, userId: alice}
    purpose: p
    enabledToolNamespaces: [files]
  options: {maxSteps: 16, maxToolCalls: 16, timeoutMs: 120000}
  authorityHash: ` + digest + `
  grants: [{name: read-atlas, uid: u, generation: 3}]
  grantCount: 65
  grantsRef: {name: status-report-grants}
  catalogHash: ` + digest + `
  toolCount: 4
  deadline: "2026-08-24T09:02:00.000000Z"
  policyHash: ` + digest + `
pod: {name: status-report, uid: p}
usage: {toolCalls: 3, denied: 1, callsAfterEscalation: 0}
checkpoint: {at: "2026-08-24T09:00:00.500000Z", toolCalls: 3, denied: 1, steps: 0, nextSequence: 7, effects: true}
startedAt: "2026-08-24T09:00:00.000000Z"
completedAt: "2026-08-24T09:00:01.250000Z"
exitCode: 0
output: '{"answer": 9007199254740993}'
outputFormat: json
outputRef: {name: status-report-output, key: output}
outputTruncated: true
outputSize: 1000000
outputSHA256: ` + digest + `
error: {code: no_matching_grant, message: m, retryable: false, details: "{}"}
escalation:
  reason: r
  reviewer: {kind: human, userId: alice}
  requestedAt: "2026-08-24T09:00:00.750000Z"
  requestedAuthority: "{}"
  status: pending
refusals:
  - {callId: c1, tool: files.read, code: no_matching_grant, requiredAuthority: "{}"}
  - {callId: "", tool: "a b", code: tool_call_limit_exceeded}
events:
  count: 200
  items: [{sequence: 0, eventId: e0, type: turn.started, occurredAt: "2026-08-24T09:00:00.000000Z", data: "{}"}]
  ref: {name: status-report-events}
metadata: "{}"
`

const grantStatusFull = `
observedGeneration: 1
uses: 2
remainingUses: 3
issuedAt: "2026-08-24T09:00:00Z"
revokedAt: "2026-08-24T09:00:00.123456Z"
chain: [parent, root]
conditions:
  - {type: Ready, status: "False", reason: Revoked, message: m, lastTransitionTime: "2026-08-24T09:00:00Z", observedGeneration: 1}
`

const toolNamespaceStatusFull = `
observedGeneration: 1
toolCount: 1
sources: [mcp]
tools:
  - {name: notes.read, upstream: read, schemaDigest: ` + digest + `, published: true, reason: Published}
  - {upstream: delete, published: false, reason: NotDeclared, message: m}
lastDiscovered: "2026-08-24T09:00:00Z"
conditions:
  - {type: Ready, status: "True", reason: PartlyPublished, message: "", lastTransitionTime: "2026-08-24T09:00:00Z", observedGeneration: 1}
  - {type: Connected, status: "True", reason: Connected, message: "", lastTransitionTime: "2026-08-24T09:00:00Z", observedGeneration: 1}
`

const readyStatusFull = `
observedGeneration: 1
conditions:
  - {type: Ready, status: "True", reason: Resolved, message: "", lastTransitionTime: "2026-08-24T09:00:00Z", observedGeneration: 1}
`

// kinds has the base, a full status and an empty Go value of every kind.
func kinds() []struct {
	base, status string
	object       client.Object
} {
	return []struct {
		base, status string
		object       client.Object
	}{
		{principalBase, readyStatusFull, &v1alpha1.Principal{}},
		{grantBase, grantStatusFull, &v1alpha1.Grant{}},
		{toolNamespaceBase, toolNamespaceStatusFull, &v1alpha1.ToolNamespace{}},
		{harnessBase, readyStatusFull, &v1alpha1.Harness{}},
		{turnBase, turnStatusFull, &v1alpha1.Turn{}},
	}
}

// withStatus creates a kind's base and writes a status to it.
func withStatus(ctx context.Context, t *testing.T, base, status, namespace string) *unstructured.Unstructured {
	t.Helper()
	object := build(t, base, "{}", namespace)
	create(ctx, t, object)
	object.Object["status"] = decode(t, status)
	if err := server.client.Status().Update(ctx, object, strict); err != nil {
		t.Fatalf("write status of %s: %v", object.GetKind(), err)
	}
	return object
}

// TestStatusRoundTrip writes a full status and makes sure that the server keeps
// it, that the Go types hold all of it, and that spec is untouched.
func TestStatusRoundTrip(t *testing.T) {
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	for _, kind := range kinds() {
		object := withStatus(ctx, t, kind.base, kind.status, namespace)
		t.Run(object.GetKind(), func(t *testing.T) {
			if diff := cmp.Diff(decode(t, kind.status), object.Object["status"]); diff != "" {
				t.Errorf("the server changed the status (-want +got):\n%s", diff)
			}
			if object.GetGeneration() != 1 {
				t.Errorf("generation = %d after a write of status, want 1", object.GetGeneration())
			}
			if err := server.client.Get(ctx, client.ObjectKeyFromObject(object), kind.object); err != nil {
				t.Fatalf("read as a Go type: %v", err)
			}
			again, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kind.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object.Object["status"], again["status"]); diff != "" {
				t.Errorf("the Go type changes the status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusIsASubresource makes sure that who may only write spec cannot write status.
func TestStatusIsASubresource(t *testing.T) {
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	for _, kind := range kinds() {
		object := build(t, kind.base, "{}", namespace)
		object.Object["status"] = decode(t, kind.status)
		create(ctx, t, object)
		if status, ok := object.Object["status"]; ok {
			t.Errorf("%s: a create wrote the status: %v", object.GetKind(), status)
		}
		object.Object["status"] = decode(t, kind.status)
		object.SetLabels(map[string]string{"a": "b"})
		if err := server.client.Update(ctx, object); err != nil {
			t.Fatalf("update %s: %v", object.GetKind(), err)
		}
		if status, ok := object.Object["status"]; ok {
			t.Errorf("%s: an update wrote the status: %v", object.GetKind(), status)
		}
	}
}

// turnStatusCases are changes of a full Turn status.
var turnStatusCases = []ruleCase{
	{"later counters", `{usage: {toolCalls: 4}, checkpoint: {toolCalls: 4}}`, ""},
	{"another pod", `pod: {name: other}`, "a turn is bound to one pod for good"},
	{"another pod of that name", `pod: {uid: other}`, "a turn is bound to one pod for good"},
	{"unknown outcome", `outcome: perhaps`, "status.outcome: Unsupported value"},
	{"short hash", `admission: {catalogHash: abc}`, "status.admission.catalogHash"},
	{"no hash", `admission: {authorityHash: null}`, "status.admission.authorityHash: Required value"},
	{"actor of two kinds", `admission: {context: {actor: {userId: alice}}}`, "userId must be set exactly when kind is human"},
	{"actor without an id", `admission: {context: {actor: {agentId: null}}}`, "agentId must be set exactly when kind is agent"},
	{"owner of two kinds", `admission: {context: {owner: {conversationId: c}}}`, "conversationId must be set exactly when kind is group"},
	{"reviewer of two kinds", `escalation: {reviewer: {serviceId: s}}`, "serviceId must be set exactly when kind is service"},
	{"reason of 513 characters", `escalation: {reason: "` + strings.Repeat("r", 513) + `"}`, "status.escalation.reason: Too long"},
	{"decided escalation", `escalation: {status: granted}`, "status.escalation.status: Unsupported value"},
	{"output of 32768 characters", `output: "` + strings.Repeat("o", v1alpha1.MaxInlineOutput) + `"`, ""},
	{"output of 32769 characters", `output: "` + strings.Repeat("o", v1alpha1.MaxInlineOutput+1) + `"`, "status.output: Too long"},
	{"empty output", `output: ""`, ""},
	{"65 grants", `admission: {grants: ` + items(65, `{name: g%d, uid: u, generation: 1}`) + `}`, "status.admission.grants: Too many"},
	{"64 grants", `admission: {grants: ` + items(v1alpha1.MaxInlineGrants, `{name: g%d, uid: u, generation: 1}`) + `}`, ""},
	{"32 refusals", `refusals: ` + items(v1alpha1.MaxRefusals, refusal), ""},
	{"33 refusals", `refusals: ` + items(v1alpha1.MaxRefusals+1, refusal), "status.refusals: Too many"},
	{"a need of 2049 characters", `refusals: [{callId: c, tool: t, code: c, requiredAuthority: "` + strings.Repeat("r", v1alpha1.MaxRequiredAuthority+1) + `"}]`,
		"status.refusals[0].requiredAuthority: Too long"},
	{"a tool's name of 257 characters", `refusals: [{callId: c, tool: "` + strings.Repeat("t", 257) + `", code: c}]`, "status.refusals[0].tool: Too long"},
	{"a refusal without a code", `refusals: [{callId: c, tool: t}]`, "status.refusals[0].code: Required value"},
	{"128 events", `events: {items: ` + items(v1alpha1.MaxFirstEvents+v1alpha1.MaxLastEvents, event) + `}`, ""},
	{"129 events", `events: {items: ` + items(129, event) + `}`, "status.events.items: Too many"},
	{"unknown event", `events: {items: [{sequence: 0, eventId: e, type: turn.paused, occurredAt: "2026-08-24T09:00:00Z"}]}`,
		"status.events.items[0].type: Unsupported value"},
	{"trace with white space", `traceId: " t"`, "must not begin or end with white space"},
}

const refusal = `{callId: c%d, tool: files.read, code: no_matching_grant, requiredAuthority: "{}"}`

const event = `{sequence: %d, eventId: e, type: runtime.event, occurredAt: "2026-08-24T09:00:00Z"}`

func TestTurnStatusRules(t *testing.T) {
	ctx := t.Context()
	object := withStatus(ctx, t, turnBase, turnStatusFull, newNamespace(ctx, t))
	for _, test := range turnStatusCases {
		t.Run(test.name, func(t *testing.T) {
			changed := object.DeepCopy()
			merge(changed.Object["status"].(map[string]any), decode(t, test.patch))
			check(t, server.client.Status().Update(ctx, changed, client.DryRunAll, strict), test.want)
		})
	}
}
