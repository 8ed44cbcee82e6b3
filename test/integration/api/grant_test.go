package api

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const grantBase = `
apiVersion: sharedos.dev/v1alpha1
kind: Grant
metadata: {name: read-atlas}
spec:
  issuer: alice
  subject: alice-assistant
  capabilities:
    - resource: {namespace: files, path: [Work, atlas]}
      actions: [read]
      scope: descendants
`

// capability is a grant's patch with one capability whose fields are given as YAML.
func capability(resource, actions, scope string) string {
	return `spec: {capabilities: [{resource: ` + resource + `, actions: ` + actions + `, scope: ` + scope + `}]}`
}

var grantCases = []ruleCase{
	{"everything", `spec: {parentGrant: parent, revoked: true, constraints: {purposes: [p], notBefore: "2026-01-01T00:00:00Z",
		expiresAt: "2026-01-01T00:00:00.5+01:00", maxUses: 1, delegationDepth: 0}}`, "notBefore must not be after expiresAt"},
	{"everything, valid", `spec: {parentGrant: parent, revoked: true, constraints: {purposes: [p],
		notBefore: "2026-01-01T00:00:00.25Z", expiresAt: "2026-01-01T02:00:00.5+01:00", maxUses: 1, delegationDepth: 0}}`, ""},

	{"no issuer", `spec: {issuer: null}`, "spec.issuer: Required value"},
	{"no subject", `spec: {subject: null}`, "spec.subject: Required value"},
	{"its own parent", `spec: {parentGrant: read-atlas}`, "parentGrant must not be the grant itself"},

	{"no capabilities", `spec: {capabilities: []}`, "spec.capabilities: Invalid value"},
	{"64 capabilities", `spec: {capabilities: ` + repeat(64, "{resource: {namespace: f, path: []}, actions: [a], scope: exact}") + `}`, ""},
	{"65 capabilities", `spec: {capabilities: ` + repeat(65, "{resource: {namespace: f, path: []}, actions: [a], scope: exact}") + `}`,
		"spec.capabilities: Too many"},
	{"no scope", `spec: {capabilities: [{resource: {namespace: f, path: []}, actions: [a]}]}`, "scope: Required value"},
	{"unknown scope", capability(`{namespace: f, path: []}`, `[a]`, `everything`), "scope: Unsupported value"},
	{"any action", capability(`{namespace: f, path: []}`, `["*"]`, `exact`), ""},
	{"no actions", capability(`{namespace: f, path: []}`, `[]`, `exact`), "actions"},
	{"65 actions", capability(`{namespace: f, path: []}`, actions(65), `exact`), "actions: Too many"},
	{"an action twice", capability(`{namespace: f, path: []}`, `[a, a]`, `exact`), "actions[1]: Duplicate value"},
	{"action of 129 characters", capability(`{namespace: f, path: []}`, `["`+strings.Repeat("a", 129)+`"]`, `exact`), "Too long"},
	{"action with white space", capability(`{namespace: f, path: []}`, `["a "]`, `exact`), "must not begin or end with white space"},
	{"no resource namespace", capability(`{path: []}`, `[a]`, `exact`), "namespace: Required value"},
	{"no path", capability(`{namespace: f}`, `[a]`, `exact`), "path: Required value"},
	{"path of 64 segments", capability(`{namespace: f, path: `+repeat(64, "a")+`}`, `[a]`, `exact`), ""},
	{"path of 65 segments", capability(`{namespace: f, path: `+repeat(65, "a")+`}`, `[a]`, `exact`), "path: Too many"},
	{"owner that is no name", capability(`{namespace: f, path: [], owner: "a b"}`, `[a]`, `exact`), "owner"},
	{"owner", capability(`{namespace: f, path: [], owner: alice}`, `[a]`, `exact`), ""},

	{"equal instants", `spec: {constraints: {notBefore: "2026-01-01T00:00:00Z", expiresAt: "2026-01-01T01:00:00+01:00"}}`, ""},
	{"only an end", `spec: {constraints: {expiresAt: "2026-01-01T00:00:00Z"}}`, ""},
	{"no instant", `spec: {constraints: {expiresAt: soon}}`, "spec.constraints.expiresAt"},
	{"instant without an offset", `spec: {constraints: {expiresAt: "2026-01-01T00:00:00"}}`, "spec.constraints.expiresAt"},
	{"a date", `spec: {constraints: {notBefore: "2026-01-01"}}`, "spec.constraints.notBefore"},
	{"no uses", `spec: {constraints: {maxUses: 0}}`, "spec.constraints.maxUses"},
	{"negative depth", `spec: {constraints: {delegationDepth: -1}}`, "spec.constraints.delegationDepth"},
	{"empty purposes", `spec: {constraints: {purposes: []}}`, "spec.constraints.purposes"},
	{"65 purposes", `spec: {constraints: {purposes: ` + repeat(65, "p") + `}}`, "spec.constraints.purposes: Too many"},
	{"unknown field", `spec: {constraints: {usesLeft: 3}}`, `unknown field "spec.constraints.usesLeft"`},
}

// actions is a YAML list of n different actions.
func actions(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.Repeat("a", i+1)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

var grantUpdates = []updateCase{
	{"revoke", "{}", `spec: {revoked: true}`, ""},
	{"unset a revocation", `spec: {revoked: true}`, `spec: {revoked: false}`, "a revoked grant cannot be reinstated"},
	{"remove a revocation", `spec: {revoked: true}`, `spec: {revoked: null}`, "a revoked grant cannot be reinstated"},
	{"edit a revoked grant", `spec: {revoked: true}`, `spec: {subject: bob}`, ""},
	{"false stays free", `spec: {revoked: false}`, `spec: {revoked: null}`, ""},
	{"edit everything", "{}", `spec: {issuer: bob, subject: carol, parentGrant: p, constraints: {maxUses: 3},
		capabilities: [{resource: {namespace: repo, path: []}, actions: ["*"], scope: exact}]}`, ""},
}

func TestGrantRules(t *testing.T)   { testCreates(t, grantBase, grantCases) }
func TestGrantUpdates(t *testing.T) { testUpdates(t, grantBase, grantUpdates) }

// TestPathSegments puts the protocol's golden segments to the API server.
func TestPathSegments(t *testing.T) {
	data, err := os.ReadFile("testdata/path-segments.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Valid, Invalid []string }
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Valid) == 0 || len(vectors.Invalid) == 0 {
		t.Fatal("there are no vectors")
	}
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	withSegment := func(segment string) *unstructured.Unstructured {
		grant := build(t, grantBase, "{}", namespace)
		capabilities := grant.Object["spec"].(map[string]any)["capabilities"].([]any)
		capabilities[0].(map[string]any)["resource"].(map[string]any)["path"] = []any{"Work", segment}
		return grant
	}
	for _, segment := range vectors.Valid {
		if err := server.client.Create(ctx, withSegment(segment), client.DryRunAll); err != nil {
			t.Errorf("valid segment %q refused: %v", segment, err)
		}
	}
	for _, segment := range vectors.Invalid {
		err := server.client.Create(ctx, withSegment(segment), client.DryRunAll)
		check(t, err, "spec.capabilities[0].resource.path[1]")
		if err == nil {
			t.Logf("the segment was %q", segment)
		}
	}
}
