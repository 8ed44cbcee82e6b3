package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

const harnessBase = `
apiVersion: sharedos.dev/v1alpha1
kind: Harness
metadata: {name: example}
spec:
  type: custom
  template: {spec: {containers: [{name: harness, image: i, command: [/agent]}]}}
`

var harnessCases = []ruleCase{
	{"everything", `spec: {type: claude-code, output: json, toolPolicy: {mode: hybrid, managedMcp: [sharedos], harnessLocal: [Read],
		externalDirect: [web]}, modelEgress: [{cidr: 192.0.2.0/24, ports: [443]}, {cidr: "2001:db8::/32", ports: [443, 8443]}],
		defaults: {maxSteps: 1000, maxToolCalls: 10000, timeoutMs: 600000, startTimeoutMs: 3600000, ttlSecondsAfterFinished: 0}}`, ""},
	{"no type", `spec: {type: null}`, "spec.type: Required value"},
	{"unknown type", `spec: {type: shell}`, "spec.type: Unsupported value"},
	{"no template", `spec: {template: null}`, "spec.template: Required value"},
	{"template that is text", `spec: {template: text}`, "spec.template: Invalid value"},
	{"template of a newer cluster", `spec: {template: {spec: {notInventedYet: {a: [1, 2]}}}}`, ""},
	{"unknown output", `spec: {output: xml}`, "spec.output: Unsupported value"},

	{"strict", `spec: {toolPolicy: {mode: strict, externalDirect: []}}`, ""},
	{"strict with external servers", `spec: {toolPolicy: {mode: strict, externalDirect: [web]}}`, "a strict policy cannot list external servers"},
	{"external servers without a mode", `spec: {toolPolicy: {externalDirect: [web]}}`, ""},
	{"server with white space", `spec: {toolPolicy: {externalDirect: [" web"]}}`, "must not begin or end with white space"},
	{"unknown mode", `spec: {toolPolicy: {mode: loose}}`, "spec.toolPolicy.mode: Unsupported value"},

	{"host name", `spec: {modelEgress: [{cidr: api.example.com, ports: [443]}]}`, "must be a CIDR without host bits"},
	{"address", `spec: {modelEgress: [{cidr: 192.0.2.1, ports: [443]}]}`, "must be a CIDR without host bits"},
	{"host bits", `spec: {modelEgress: [{cidr: 192.0.2.1/24, ports: [443]}]}`, "must be a CIDR without host bits"},
	{"no ports", `spec: {modelEgress: [{cidr: 192.0.2.0/24}]}`, "ports: Required value"},
	{"empty ports", `spec: {modelEgress: [{cidr: 192.0.2.0/24, ports: []}]}`, "ports"},
	{"port 65536", `spec: {modelEgress: [{cidr: 192.0.2.0/24, ports: [65536]}]}`, "ports[0]"},
	{"port 0", `spec: {modelEgress: [{cidr: 192.0.2.0/24, ports: [0]}]}`, "ports[0]"},
	{"port twice", `spec: {modelEgress: [{cidr: 192.0.2.0/24, ports: [1, 1]}]}`, "ports[1]: Duplicate value"},

	{"no steps", `spec: {defaults: {maxSteps: 0}}`, "spec.defaults.maxSteps"},
	{"1001 steps", `spec: {defaults: {maxSteps: 1001}}`, "spec.defaults.maxSteps"},
	{"no start timeout", `spec: {defaults: {startTimeoutMs: 0}}`, "spec.defaults.startTimeoutMs"},
	{"negative ttl", `spec: {defaults: {ttlSecondsAfterFinished: -1}}`, "spec.defaults.ttlSecondsAfterFinished"},
}

func TestHarnessRules(t *testing.T) { testCreates(t, harnessBase, harnessCases) }

// TestHarnessKeepsTheTemplate makes sure that nothing is lost or added on the
// way, also not what this version of the Go types does not know.
func TestHarnessKeepsTheTemplate(t *testing.T) {
	ctx := t.Context()
	harness := build(t, harnessBase, `spec: {template: {metadata: {labels: {a: b}}, spec: {
		notInventedYet: {exact: 9007199254740993},
		containers: [{name: harness, image: i, command: [/agent], resources: {limits: {memory: 64Mi}}}]}}}`, newNamespace(ctx, t))
	want := harness.DeepCopy().Object["spec"]
	create(ctx, t, harness)
	if diff := cmp.Diff(want, harness.Object["spec"]); diff != "" {
		t.Errorf("the spec changed (-want +got):\n%s", diff)
	}
	typed := &v1alpha1.Harness{}
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(harness), typed); err != nil {
		t.Fatalf("read as a Go type: %v", err)
	}
	if got := typed.Spec.Template.Spec.Containers[0].Command; !cmp.Equal(got, []string{"/agent"}) {
		t.Errorf("command = %q", got)
	}
	if got := typed.Spec.Template.Labels["a"]; got != "b" {
		t.Errorf("label a = %q, want b", got)
	}
}
