package plugin

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// asks makes the status of a Turn that asked for something.
func asks(t *testing.T, action string, change func(*contract.CapabilityRequest), path ...string) func(*v1alpha1.TurnStatus) {
	t.Helper()
	request := contract.CapabilityRequest{
		NamespaceID: world, Requester: contract.Agent("alice-assistant"), Owner: contract.Human("alice"), Purpose: "atlas-status",
		Capabilities: []contract.Capability{{
			Resource: contract.ResourceRef{Namespace: "files", Path: append(contract.Path{}, path...)}, Actions: []string{action}, Scope: contract.ScopeExact,
		}},
		RequestedAt: contract.At(began()),
	}
	if change != nil {
		change(&request)
	}
	described, err := contract.DescribeAuthority(request)
	must(t, err)
	return func(s *v1alpha1.TurnStatus) {
		s.Admission, s.Outcome = admission(), v1alpha1.TurnEscalated
		s.Escalation = translate.Escalation(&contract.Escalation{
			Reason: "I need the salaries.\x1b[2J\u202e", Reviewer: contract.Human("alice"), RequestedAt: contract.At(began()),
			RequestedAuthority: &described, Status: contract.EscalationPending,
		})
		s.Conditions = []metav1.Condition{condition(v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.TurnStateEscalated, "asked")}
	}
}

func TestApprove(t *testing.T) {
	makeTurn(t, "asking", asks(t, "read", nil, "Work", "salaries.csv"))
	golden(t, "escalations", call(t.Context(), server.viewer, "escalations").text())
	printed := call(t.Context(), server.viewer, "approve", "asking", "--name", "once")
	golden(t, "approve", printed.text())
	if got := call(t.Context(), server.viewer, "approve", "asking", "--within", "files:Work/**"); got.code != 0 {
		t.Errorf("within: %s", got.text())
	}
	for name, args := range map[string][]string{
		"elsewhere": {"--within", "files:Work/atlas/**"}, "exact": {"--within", "files:Work"}, "prefix": {"--within", "files:Work/sal/**"},
	} {
		if got := call(t.Context(), server.viewer, append([]string{"approve", "asking"}, args...)...); got.code != 2 || got.out != "" || !strings.Contains(got.errOut, "not below --within") {
			t.Errorf("%s: %s", name, got.text())
		}
	}
	got := call(t.Context(), server.admin, "approve", "asking", "--apply", "--run-again")
	if got.code != 0 {
		t.Fatalf("apply: %s", got.text())
	}
	var grants v1alpha1.GrantList
	must(t, server.client.List(t.Context(), &grants, client.InNamespace(world)))
	var made *v1alpha1.Grant
	for i := range grants.Items {
		if strings.HasPrefix(grants.Items[i].Name, "approved-asking-") {
			made = &grants.Items[i]
		}
	}
	if made == nil {
		t.Fatal("no Grant was created")
	}
	if got := call(t.Context(), server.viewer, "can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "--at", now().Add(time.Minute).Format(time.RFC3339)); got.code != 0 {
		t.Errorf("what was approved is not allowed: %s", got.text())
	}
	for what, question := range map[string][]string{
		"another purpose": {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "--purpose", "atlas-planning"},
		"another file":    {"can-i", "read", "files:Work/other.csv", "--as", "alice-assistant"},
		"another action":  {"can-i", "delete", "files:Work/salaries.csv", "--as", "alice-assistant"},
		"later":           {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "--at", now().Add(2 * time.Hour).Format(time.RFC3339)},
	} {
		if got := call(t.Context(), server.viewer, question...); got.code != 1 {
			t.Errorf("%s is allowed too: %s", what, got.text())
		}
	}
	// The same ask of the same Turn is the same Grant.
	if got := call(t.Context(), server.admin, "approve", "asking", "--apply"); got.code != 2 || !strings.Contains(got.errOut, "already exists") {
		t.Errorf("approved twice: %s", got.text())
	}
	must(t, server.client.Delete(t.Context(), made))
	var turns v1alpha1.TurnList
	must(t, server.client.List(t.Context(), &turns, client.InNamespace(world)))
	again := 0
	for i := range turns.Items {
		if turn := &turns.Items[i]; strings.HasPrefix(turn.Name, "asking-") {
			again++
			if turn.Spec.Message.Text != "When does Atlas ship?" || turn.Spec.Principal != "alice-assistant" {
				t.Errorf("the second run is another: %+v", turn.Spec)
			}
			must(t, server.client.Delete(t.Context(), turn))
		}
	}
	if again != 1 {
		t.Errorf("%d Turns were run again, want 1", again)
	}
}

// TestApproveStaysUnderTheCeiling: whatever an agent asks for, only one action on one
// place that some tool could use, for itself, becomes a Grant.
func TestApproveStaysUnderTheCeiling(t *testing.T) {
	request := func(f func(*contract.CapabilityRequest)) func(*contract.CapabilityRequest) { return f }
	for name, c := range map[string]struct {
		status func(*v1alpha1.TurnStatus)
		want   string
	}{
		"every-action": {asks(t, "*", nil, "Work"), "more than one action on one place"},
		"two-actions": {asks(t, "read", request(func(r *contract.CapabilityRequest) { r.Capabilities[0].Actions = []string{"read", "delete"} }), "Work"),
			"more than one action on one place"},
		"descendants": {asks(t, "read", request(func(r *contract.CapabilityRequest) { r.Capabilities[0].Scope = contract.ScopeDescendants }), "Work"),
			"more than one action on one place"},
		"no-such-action": {asks(t, "chmod", nil, "Work"), "no tool which is on"},
		"plane-that-is-off": {asks(t, "commit", request(func(r *contract.CapabilityRequest) { r.Capabilities[0].Resource.Namespace = "repo" }), "atlas"),
			"no tool which is on"},
		"the-kernels-own": {asks(t, "invoke", request(func(r *contract.CapabilityRequest) { r.Capabilities[0].Resource.Namespace = "sharedos.execution" }), "agent", "root"),
			"no tool which is on"},
		"somebody-elses": {asks(t, "read", request(func(r *contract.CapabilityRequest) {
			owner := contract.Human("bob")
			r.Capabilities[0].Resource.Owner = &owner
		}), "Work"), "belongs to another"},
		"for-somebody-else": {asks(t, "read", request(func(r *contract.CapabilityRequest) { r.Requester = contract.Agent("researcher") }), "Work"), "for somebody else"},
		"other-purpose":     {asks(t, "read", request(func(r *contract.CapabilityRequest) { r.Purpose = "payroll" }), "Work"), "for somebody else"},
		"hidden":            {asks(t, "read", nil, "Work", "a\u202efdp.exe"), "do not show"},
		"nothing": {func(s *v1alpha1.TurnStatus) {
			asks(t, "read", nil, "Work")(s)
			s.Escalation.RequestedAuthority = ""
		}, "does not say what it asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			makeTurn(t, "ceiling-"+name, c.status)
			got := call(t.Context(), server.admin, "approve", "ceiling-"+name, "--apply")
			if got.code != 2 || got.out != "" || !strings.Contains(got.errOut, c.want) {
				t.Errorf("%s", got.text())
			}
			if strings.ContainsAny(got.errOut, "\x1b\u202e") {
				t.Errorf("escapes reach the terminal: %q", got.errOut)
			}
		})
	}
}
