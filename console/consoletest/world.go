package consoletest

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Now is the instant that the world is seen at.
func Now() time.Time { return time.Date(2026, 9, 30, 16, 20, 30, 0, time.UTC) }

// Hostile is text that acts if it is not shown as it is: markup, a terminal's
// escape sequence, a change of direction, and a quote for an attribute.
const Hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b]0;owned\x07\u202eevil\u2066{{.}}"

// World is two worlds with Turns of every state.
func World() *Reader {
	r := &Reader{
		Principals: []v1alpha1.Principal{
			principal("team-atlas", "alice", v1alpha1.AddressHuman, ""),
			principal("team-atlas", "alice-assistant", v1alpha1.AddressAgent, "alice", "atlas-status", "atlas-planning"),
			principal("team-atlas", "release-bot", v1alpha1.AddressAgent, "alice", "release"),
			principal("team-borealis", "bob", v1alpha1.AddressHuman, ""),
			principal("team-borealis", "researcher", v1alpha1.AddressAgent, "bob", "research"),
		},
		ToolNamespaces: []v1alpha1.ToolNamespace{
			toolNamespace("team-atlas", "files"), toolNamespace("team-atlas", "repo"), toolNamespace("team-borealis", "files"),
		},
		Harnesses: []v1alpha1.Harness{{
			ObjectMeta: meta("team-atlas", "example", 72*time.Hour), Spec: v1alpha1.HarnessSpec{Type: v1alpha1.HarnessClaudeCode},
		}},
	}
	r.Grants = []v1alpha1.Grant{
		Grant("team-atlas", "run-alice-assistant", "alice", "alice-assistant", "sharedos.execution", "invoke", false, "agent", "alice-assistant"),
		Grant("team-atlas", "read-atlas", "alice", "alice-assistant", "files", "read", true, "Work", "atlas"),
		Grant("team-atlas", "list-work", "alice", "alice-assistant", "files", "list", true, "Work"),
		Grant("team-atlas", "write-notes", "alice", "alice-assistant", "files", "write", false, "Work", "atlas", "notes.md"),
		Grant("team-atlas", "read-repo", "alice", "alice-assistant", "repo", "read", true, "atlas", "main"),
		Grant("team-atlas", "ask", "alice", "alice-assistant", "sharedos", "request", false, "escalation"),
		Grant("team-atlas", "old-budget", "alice", "alice-assistant", "files", "read", true, "Work", "budget"),
		Grant("team-borealis", "read-papers", "bob", "researcher", "files", "*", true, "Papers"),
	}
	r.Grants[1].Spec.Capabilities[0].Actions = []v1alpha1.Action{"list", "stat", "read", "grep"}
	r.Grants[3].Spec.Constraints = &v1alpha1.GrantConstraints{
		Purposes: []v1alpha1.Purpose{"atlas-status"}, MaxUses: new(int64(5)), ExpiresAt: v1alpha1.NewTimestamp(Now().Add(40 * time.Hour)),
	}
	r.Grants[3].Status.Uses = 2
	revoke(&r.Grants[6])
	r.Turns = turns()
	return r
}

func turns() []v1alpha1.Turn {
	out := make([]v1alpha1.Turn, 0, 80)
	out = append(out,
		Turn("team-atlas", "status-report-8", "alice-assistant", v1alpha1.TurnStateRunning, 20*time.Second),
		Turn("team-atlas", "status-report-7", "alice-assistant", v1alpha1.TurnStateSucceeded, 9*time.Minute),
		Turn("team-atlas", "budget-question", "alice-assistant", v1alpha1.TurnStateEscalated, 25*time.Minute),
		Turn("team-atlas", "nightly-release", "release-bot", v1alpha1.TurnStateDenied, 3*time.Hour),
		Turn("team-borealis", "literature-review", "researcher", v1alpha1.TurnStateFailed, 5*time.Hour),
		Turn("team-borealis", "summary", "researcher", v1alpha1.TurnStateCancelled, 9*time.Hour),
		Turn("team-borealis", "queued", "researcher", v1alpha1.TurnStatePending, 4*time.Second),
	)
	for i := range 60 {
		state := []v1alpha1.ConditionReason{v1alpha1.TurnStateSucceeded, v1alpha1.TurnStateSucceeded, v1alpha1.TurnStateDenied, v1alpha1.TurnStateFailed}[i%7%4]
		out = append(out, Turn("team-atlas", fmt.Sprintf("report-%d", 60-i), "alice-assistant", state, time.Duration(i*i/3+20)*time.Minute))
	}
	escalate(&out[2])
	succeeded := &out[1].Status
	succeeded.Output = new("# Atlas, week 39\n\n* Shipping on Friday is still planned.\n* 2 of 3 reviews are done; security is due on Thursday.\n")
	return out
}

// Turn is a Turn in a state, with a record as that state leaves it.
func Turn(world, name, principal string, state v1alpha1.ConditionReason, ago time.Duration) v1alpha1.Turn {
	t := v1alpha1.Turn{ObjectMeta: meta(world, name, ago)}
	t.Spec.Principal, t.Spec.Harness, t.Spec.Purpose = v1alpha1.ObjectName(principal), "example", "atlas-status"
	t.Spec.Message.Text = "How is Atlas going? Read the plan and the notes, and tell me what is at risk."
	created := t.CreationTimestamp.Time
	finished := state != v1alpha1.TurnStatePending && state != v1alpha1.TurnStateRunning
	status := metav1.ConditionFalse
	if finished {
		status = metav1.ConditionTrue
		t.Status.CompletedAt = micro(created.Add(8700 * time.Millisecond))
	}
	t.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.TurnConditionFinished), Status: status, Reason: string(state), LastTransitionTime: t.CreationTimestamp}}
	t.Status.ExecutionID, t.Status.TraceID = v1alpha1.Identifier(t.UID), "4bf92f3577b34da6a3ce929d0e0e4736"
	switch state {
	case v1alpha1.TurnStatePending:
		return t
	case v1alpha1.TurnStateDenied:
		t.Status.Outcome = v1alpha1.TurnDenied
		t.Status.CompletedAt = micro(created.Add(40 * time.Millisecond))
		t.Status.Error = &v1alpha1.TurnError{Code: contract.CodeNoMatchingGrant, Message: "No grant allows this operation."}
		t.Status.Conditions = append(t.Status.Conditions, metav1.Condition{
			Type: string(v1alpha1.TurnConditionAdmitted), Status: metav1.ConditionFalse, Reason: "Denied", Message: "No grant allows this operation.",
			LastTransitionTime: t.CreationTimestamp,
		})
		return t
	case v1alpha1.TurnStateFailed:
		t.Status.Outcome = v1alpha1.TurnFailed
		t.Status.Error = &v1alpha1.TurnError{Code: contract.CodeRuntimeFailed, Message: "The harness exited with 1."}
		t.Status.ExitCode = new(int32(1))
	case v1alpha1.TurnStateCancelled:
		t.Status.Outcome = v1alpha1.TurnCancelled
		t.Status.Error = &v1alpha1.TurnError{Code: contract.CodeTurnCancelled, Message: "The turn was cancelled."}
	case v1alpha1.TurnStateEscalated:
		t.Status.Outcome = v1alpha1.TurnEscalated
	case v1alpha1.TurnStateSucceeded:
		t.Status.Outcome = v1alpha1.TurnSucceeded
	default: // it goes on
	}
	admit(&t, created)
	record(&t, created)
	return t
}

func admit(t *v1alpha1.Turn, created time.Time) {
	digest := v1alpha1.Digest("7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730")
	t.Status.StartedAt = micro(created.Add(120 * time.Millisecond))
	t.Status.Pod = &v1alpha1.PodReference{Name: v1alpha1.ObjectName(t.Name + "-k8z4w"), UID: "0b9f5c1e"}
	t.Status.Admission = &v1alpha1.TurnAdmission{
		At: *micro(created.Add(100 * time.Millisecond)), CatalogHash: digest, AuthorityHash: digest, PolicyHash: digest, ToolCount: 6, GrantCount: 3,
		Context: &v1alpha1.AdmittedContext{
			Actor: v1alpha1.NewAddress(v1alpha1.AddressAgent, string(t.Spec.Principal)), Authority: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice"),
			Owner: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice"), Purpose: "atlas-status",
		},
		Grants: []v1alpha1.GrantReference{
			{Name: "old-budget", UID: "team-atlas/old-budget", Generation: 1}, {Name: "read-atlas", UID: "team-atlas/read-atlas", Generation: 1},
			{Name: "spring-clean", UID: "gone", Generation: 3},
		},
	}
}

func record(t *v1alpha1.Turn, created time.Time) {
	t.Status.Usage = &v1alpha1.TurnUsage{ToolCalls: 4, Denied: 1}
	at := created.Add(2 * time.Second)
	t.Status.Events = &v1alpha1.TurnEvents{}
	emit := func(kind contract.EventType, data map[string]any) {
		raw, err := json.Marshal(data)
		if err != nil {
			panic(err) // data is written here
		}
		n := int64(len(t.Status.Events.Items))
		at = at.Add(370 * time.Millisecond)
		t.Status.Events.Items = append(t.Status.Events.Items, v1alpha1.TurnEvent{
			Sequence: n, EventID: v1alpha1.Identifier(fmt.Sprintf("%s-%d", t.UID, n)), Type: v1alpha1.EventType(kind),
			OccurredAt: *micro(at), Data: v1alpha1.JSONText(raw),
		})
		t.Status.Events.Count = n + 1
	}
	call := func(id, tool, status, code string) {
		emit(contract.EventToolRequested, map[string]any{"callId": id, "tool": tool, "step": 1})
		done := map[string]any{"callId": id, "tool": tool, "status": status}
		if code != "" {
			done["code"] = code
		}
		emit(contract.EventToolCompleted, done)
	}
	emit(contract.EventTurnStarted, map[string]any{"tools": []string{"files.grep", "files.list", "files.read", "files.stat", "files.write", "sharedos.escalate"}})
	call("1", "files.list", "succeeded", "")
	call("2", "files.read", "succeeded", "")
	call("3", "files.read", "denied", contract.CodeNoMatchingGrant)
	emit(contract.EventRuntime, map[string]any{"observation": map[string]any{"thought": "The budget is not mine to read."}})
	call("4", "files.grep", "failed", contract.CodeInvalidToolArguments)
}

func escalate(t *v1alpha1.Turn) {
	asked, err := contract.DescribeAuthority(contract.CapabilityRequest{
		NamespaceID: t.Namespace, Requester: contract.Agent("alice-assistant"), Owner: contract.Human("alice"), Purpose: "atlas-status",
		Capabilities: []contract.Capability{{
			Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "budget", "2026.csv"}},
			Actions:  []string{"read"}, Scope: contract.ScopeExact,
		}},
		RequestedAt: contract.At(Now()),
	})
	if err != nil {
		panic(err) // the request is written here
	}
	raw, err := json.Marshal(asked)
	if err != nil {
		panic(err)
	}
	t.Status.Escalation = &v1alpha1.TurnEscalation{
		Reason: "The plan refers to the budget for 2026, and I may not read it.", Reviewer: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice"),
		RequestedAt: *micro(t.CreationTimestamp.Add(8 * time.Second)), RequestedAuthority: v1alpha1.JSONText(raw), Status: v1alpha1.EscalationPending,
	}
}

// Grant is an active Grant of one capability.
func Grant(world, name, issuer, subject, plane, action string, below bool, path ...v1alpha1.PathSegment) v1alpha1.Grant {
	scope := v1alpha1.ScopeExact
	if below {
		scope = v1alpha1.ScopeDescendants
	}
	return v1alpha1.Grant{
		ObjectMeta: meta(world, name, 48*time.Hour),
		Spec: v1alpha1.GrantSpec{
			Issuer: v1alpha1.ObjectName(issuer), Subject: v1alpha1.ObjectName(subject),
			Capabilities: []v1alpha1.Capability{{
				Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(plane), Path: path},
				Actions:  []v1alpha1.Action{v1alpha1.Action(action)}, Scope: scope,
			}},
		},
		Status: v1alpha1.GrantStatus{Conditions: []metav1.Condition{{
			Type: string(v1alpha1.GrantReady), Status: metav1.ConditionTrue, Reason: string(v1alpha1.GrantReasonActive), ObservedGeneration: 1,
		}}},
	}
}

func revoke(g *v1alpha1.Grant) {
	g.Spec.Revoked = true
	g.Status.RevokedAt = micro(Now().Add(-time.Hour))
	g.Status.Conditions[0].Status, g.Status.Conditions[0].Reason = metav1.ConditionFalse, string(v1alpha1.GrantReasonRevoked)
}

func principal(world, name string, kind v1alpha1.AddressKind, behalf string, purposes ...v1alpha1.Purpose) v1alpha1.Principal {
	return v1alpha1.Principal{ObjectMeta: meta(world, name, 72*time.Hour), Spec: v1alpha1.PrincipalSpec{
		Address: v1alpha1.NewAddress(kind, name), Authority: v1alpha1.ObjectName(behalf), Owner: v1alpha1.ObjectName(behalf), Purposes: purposes,
	}}
}

func toolNamespace(world, name string) v1alpha1.ToolNamespace {
	return v1alpha1.ToolNamespace{ObjectMeta: meta(world, name, 72*time.Hour), Spec: v1alpha1.ToolNamespaceSpec{
		Enabled: true, Source: v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles}},
	}}
}

func meta(world, name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: world, Name: name, UID: types.UID(world + "/" + name), Generation: 1,
		CreationTimestamp: metav1.NewTime(Now().Add(-ago).Truncate(time.Second)),
	}
}

func micro(t time.Time) *metav1.MicroTime { return new(metav1.NewMicroTime(t)) }
