package api

import (
	"strings"
	"testing"
)

const principalBase = `
apiVersion: sharedos.dev/v1alpha1
kind: Principal
metadata: {name: alice-assistant}
spec:
  address: {kind: agent, agentId: alice-assistant}
`

var principalCases = []ruleCase{
	{"everything", `spec: {authority: alice, owner: alice, harness: example, purposes: [atlas-status, plan],
		disabledToolNamespaces: [notes, files],
		identities: [{serviceAccount: {name: a, namespace: team}}, {user: alice@example.com}]}`, ""},

	{"no address", `spec: {address: null}`, "spec.address: Required value"},
	{"human", `spec: {address: {kind: human, agentId: null, userId: alice}}`, ""},
	{"group", `spec: {address: {kind: group, agentId: null, conversationId: c}}`, ""},
	{"service", `spec: {address: {kind: service, agentId: null, serviceId: s}}`, ""},
	{"unknown kind", `spec: {address: {kind: robot, agentId: null}}`, "spec.address.kind: Unsupported value"},
	{"human without id", `spec: {address: {kind: human, agentId: null}}`, "userId must be set exactly when kind is human"},
	{"human with two ids", `spec: {address: {kind: human, userId: alice}}`, "agentId must be set exactly when kind is agent"},
	{"agent without id", `spec: {address: {agentId: null}}`, "agentId must be set exactly when kind is agent"},
	{"agent with a group's id", `spec: {address: {conversationId: c}}`, "conversationId must be set exactly when kind is group"},
	{"agent with a service's id", `spec: {address: {serviceId: c}}`, "serviceId must be set exactly when kind is service"},
	{"empty id", `spec: {address: {agentId: ""}}`, "spec.address.agentId"},
	{"id of 256 characters", `spec: {address: {agentId: "` + strings.Repeat("é", 256) + `"}}`, ""},
	{"id of 257 characters", `spec: {address: {agentId: "` + strings.Repeat("a", 257) + `"}}`, "Too long"},
	{"id with white space at its end", `spec: {address: {agentId: "a "}}`, "must not begin or end with white space"},
	{"id with a wide space at its start", `spec: {address: {agentId: "\u3000a"}}`, "must not begin or end with white space"},

	{"harness of a human", `spec: {harness: example, address: {kind: human, agentId: null, userId: alice}}`,
		"harness may be set only when address.kind is agent"},
	{"authority that is no name", `spec: {authority: Alice}`, "spec.authority"},
	{"owner that is no name", `spec: {owner: a/b}`, "spec.owner"},

	{"identity of two kinds", `spec: {identities: [{user: u, serviceAccount: {name: a, namespace: b}}]}`,
		"exactly one of serviceAccount and user must be set"},
	{"identity of no kind", `spec: {identities: [{}]}`, "exactly one of serviceAccount and user must be set"},
	{"ServiceAccount without a namespace", `spec: {identities: [{serviceAccount: {name: a}}]}`,
		"spec.identities[0].serviceAccount.namespace: Required value"},
	{"ServiceAccount as a user", `spec: {identities: [{user: "system:serviceaccount:team:a"}]}`,
		"a ServiceAccount must be given as serviceAccount {name, namespace}"},
	{"anonymous user", `spec: {identities: [{user: "system:anonymous"}]}`, "the anonymous user cannot be a Principal"},
	{"32 identities", `spec: {identities: ` + repeat(32, "{user: u}") + `}`, ""},
	{"33 identities", `spec: {identities: ` + repeat(33, "{user: u}") + `}`, "spec.identities: Too many"},

	{"purpose of 512 characters", `spec: {purposes: ["` + strings.Repeat("p", 512) + `"]}`, ""},
	{"purpose of 513 characters", `spec: {purposes: ["` + strings.Repeat("p", 513) + `"]}`, "Too long"},
	{"empty purpose", `spec: {purposes: [""]}`, "spec.purposes[0]"},
	{"purpose with white space", `spec: {purposes: ["\tp"]}`, "must not begin or end with white space"},
	{"65 purposes", `spec: {purposes: ` + repeat(65, "p") + `}`, "spec.purposes: Too many"},

	{"namespace disabled twice", `spec: {disabledToolNamespaces: [files, files]}`, "spec.disabledToolNamespaces[1]: Duplicate value"},
	{"disabled namespace with a dot", `spec: {disabledToolNamespaces: [a.b]}`, "spec.disabledToolNamespaces[0]"},
}

var principalUpdates = []updateCase{
	{"address changes", "{}", `spec: {address: {agentId: other}}`, "address is immutable"},
	{"kind of address changes", "{}", `spec: {address: {kind: human, agentId: null, userId: alice-assistant}}`, "address is immutable"},
	{"the rest may change", `spec: {authority: alice, purposes: [a]}`,
		`spec: {authority: bob, owner: bob, purposes: [b, a], harness: example, disabledToolNamespaces: [files]}`, ""},
}

func TestPrincipalRules(t *testing.T)   { testCreates(t, principalBase, principalCases) }
func TestPrincipalUpdates(t *testing.T) { testUpdates(t, principalBase, principalUpdates) }
