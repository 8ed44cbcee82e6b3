package plugin

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// began is when the Turns of these tests begin.
func began() time.Time { return time.Date(2029, 9, 15, 11, 0, 0, 0, time.UTC) }

func at(offset time.Duration) metav1.MicroTime { return metav1.NewMicroTime(began().Add(offset)) }

// makeTurn creates a Turn and writes its status as the manager would.
func makeTurn(t *testing.T, name string, change func(*v1alpha1.TurnStatus)) *v1alpha1.Turn {
	t.Helper()
	turn := &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: world, Name: name},
		Spec: v1alpha1.TurnSpec{
			Principal: "alice-assistant", Purpose: "atlas-status", Harness: "claude",
			Message: v1alpha1.TurnMessage{From: "alice", Text: "When does Atlas ship?"},
		},
	}
	must(t, server.client.Create(t.Context(), turn))
	t.Cleanup(func() {
		if err := server.client.Delete(context.Background(), turn); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	setStatus(t.Context(), t, turn, change)
	return turn
}

func setStatus(ctx context.Context, t *testing.T, turn *v1alpha1.Turn, change func(*v1alpha1.TurnStatus)) {
	t.Helper()
	before := turn.DeepCopy()
	change(&turn.Status)
	must(t, server.client.Status().Patch(ctx, turn, client.MergeFrom(before)))
}

func condition(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) metav1.Condition {
	c := v1alpha1.Condition(kind, status, reason, message, 1)
	c.LastTransitionTime = metav1.NewTime(began())
	return c
}

func admission() *v1alpha1.TurnAdmission {
	return &v1alpha1.TurnAdmission{
		At: at(time.Second), AuthorityHash: v1alpha1.Digest(strings.Repeat("a", 64)), CatalogHash: v1alpha1.Digest(strings.Repeat("c", 64)),
		ToolCount: 7, GrantCount: 2, Grants: []v1alpha1.GrantReference{
			{Name: "read-atlas", UID: "1", Generation: 1}, {Name: "run-alice-assistant", UID: "2", Generation: 3},
		},
		Context: &v1alpha1.AdmittedContext{
			Actor: v1alpha1.NewAddress(v1alpha1.AddressAgent, "alice-assistant"), Authority: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice"),
			Owner: v1alpha1.NewAddress(v1alpha1.AddressHuman, "alice"), Purpose: "atlas-status",
			EnabledToolNamespaces: []v1alpha1.LabelName{"files", "sharedos"},
		},
	}
}

func event(sequence int64, kind contract.EventType, data string) v1alpha1.TurnEvent {
	return v1alpha1.TurnEvent{
		Sequence: sequence, EventID: "e", Type: v1alpha1.EventType(kind), OccurredAt: at(time.Duration(2+sequence) * time.Second), Data: v1alpha1.JSONText(data),
	}
}

// need is what a call needed, as the kernel describes it.
func need(action string, scope contract.Scope, path ...string) v1alpha1.JSONText {
	request, err := contract.DescribeAuthority(contract.CapabilityRequest{
		NamespaceID: world, Requester: contract.Agent("alice-assistant"), Owner: contract.Human("alice"),
		Capabilities: []contract.Capability{{
			Resource: contract.ResourceRef{Namespace: "files", Path: append(contract.Path{}, path...)}, Actions: []string{action}, Scope: scope,
		}},
		Purpose: "atlas-status", RequestedAt: contract.At(began()),
	})
	if err != nil {
		panic(err)
	}
	raw, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	return v1alpha1.JSONText(raw)
}

// older is what a manager writes that knows no refusals.
func older(s *v1alpha1.TurnStatus) {
	ended(s)
	s.Refusals = nil
}

// ended is the status of a Turn that read a file, was refused another, called tools
// that it was not offered, was denied by a tool, used up its budget, and finished.
func ended(s *v1alpha1.TurnStatus) {
	s.TraceID, s.Admission, s.Outcome = "trace-7", admission(), v1alpha1.TurnSucceeded
	s.Pod = &v1alpha1.PodReference{Name: "story-abc123", UID: "p"}
	s.CompletedAt = new(at(16 * time.Second))
	s.Output = new("Atlas ships on 30 September.")
	s.Usage = &v1alpha1.TurnUsage{ToolCalls: 5, Denied: 5}
	s.Refusals = []v1alpha1.TurnRefusal{
		{CallID: "c2", Tool: "files.read", Code: contract.CodeNoMatchingGrant, RequiredAuthority: need("read", contract.ScopeExact, "Work", "salaries.csv")},
		{CallID: "c3", Tool: "repo.\u001b[31mcommit", Code: contract.CodeToolUnavailable},
		{CallID: "c4", Tool: "files.write", Code: contract.CodeToolUnavailable, RequiredAuthority: need("write", contract.ScopeDescendants)},
		{CallID: "c5", Tool: "files.read", Code: "quota_exceeded", RequiredAuthority: need("read", contract.ScopeExact, "Work", "atlas", "plan.md")},
		{CallID: "c6", Tool: "files.read", Code: contract.CodeToolCallLimitExceeded},
	}
	s.Events = &v1alpha1.TurnEvents{Count: 14, Items: []v1alpha1.TurnEvent{
		event(0, contract.EventTurnStarted, `{"tools":["files.read"]}`),
		event(1, contract.EventToolRequested, `{"callId":"c1","tool":"files.read"}`),
		event(2, contract.EventToolCompleted, `{"callId":"c1","status":"succeeded","tool":"files.read"}`),
		event(3, contract.EventToolRequested, `{"callId":"c2","tool":"files.read"}`),
		event(4, contract.EventToolCompleted, `{"callId":"c2","code":"no_matching_grant","status":"denied","tool":"files.read"}`),
		event(5, contract.EventToolRequested, `{"callId":"c3","tool":"repo.\u001b[31mcommit"}`),
		event(6, contract.EventToolCompleted, `{"callId":"c3","code":"tool_unavailable","status":"denied","tool":"repo.\u001b[31mcommit"}`),
		event(7, contract.EventToolRequested, `{"callId":"c4","tool":"files.write"}`),
		event(8, contract.EventToolCompleted, `{"callId":"c4","code":"tool_unavailable","status":"denied","tool":"files.write"}`),
		event(9, contract.EventToolRequested, `{"callId":"c5","tool":"files.read"}`),
		event(10, contract.EventToolCompleted, `{"callId":"c5","code":"quota_exceeded","status":"denied","tool":"files.read"}`),
		event(11, contract.EventToolRequested, `{"callId":"c6","tool":"files.read"}`),
		event(12, contract.EventToolCompleted, `{"callId":"c6","code":"tool_call_limit_exceeded","status":"denied","tool":"files.read"}`),
		event(13, contract.EventTurnCompleted, `{}`),
	}}
	s.Conditions = []metav1.Condition{condition(v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.TurnStateSucceeded, "done")}
}

// steady replaces the instants that the API server chose.
func steady(turn *v1alpha1.Turn, text string) string {
	return strings.ReplaceAll(text, turn.CreationTimestamp.UTC().Format("15:04:05.000"), "CREATED-TIME")
}

func TestExplain(t *testing.T) {
	turn := makeTurn(t, "story", ended)
	golden(t, "explain", steady(turn, call(t.Context(), server.viewer, "explain", "turn/story").text()))
	golden(t, "explain-yaml", steady(turn, call(t.Context(), server.viewer, "explain", "turn/story", "-o", "yaml").text()))

	dir := filepath.Join(t.TempDir(), "log")
	log, err := durable.Open(dir, durable.Options{})
	must(t, err)
	record := audit.Event{
		Version: "1", ID: "r1", Type: audit.AuthorizationChecked, Outcome: audit.Denied, At: contract.At(began()), TraceID: "trace-7",
		NamespaceID: world, Actor: contract.Agent("alice-assistant"), Authority: contract.Human("alice"), Owner: contract.Human("alice"),
		Purpose: "atlas-status", Resource: &contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "salaries.csv"}},
		Action: "read", OperationID: "c2", Reason: contract.CodeNoMatchingGrant,
		RejectedGrants: []audit.RejectedGrant{{GrantID: "read-atlas", Reason: "capability"}},
	}
	other := record
	other.ID, other.TraceID, other.Outcome, other.Reason = "r0", "trace-6", audit.Allowed, contract.CodeAllowed
	must(t, log.Record(t.Context(), other))
	must(t, log.Record(t.Context(), record))
	must(t, log.Close())
	golden(t, "explain-audit", steady(turn, call(t.Context(), server.viewer, "explain", "story", "--audit", dir).text()))
	golden(t, "audit-query", call(t.Context(), server.nobody, "audit", "query", dir, "--outcome", "denied").text())
	if got := call(t.Context(), server.nobody, "audit", "verify", dir); got.code != 0 || !strings.HasPrefix(got.out, "intact: 2 records") {
		t.Errorf("verify: %s", got.text())
	}
}

// TestExplainAnOlderTurn: what an earlier manager wrote is told as far as it goes.
func TestExplainAnOlderTurn(t *testing.T) {
	turn := makeTurn(t, "older", older)
	golden(t, "explain-older", steady(turn, call(t.Context(), server.viewer, "explain", "turn/older").text()))
}

// TestExplainWithoutEvents: a refusal is told although its events are not at hand.
func TestExplainWithoutEvents(t *testing.T) {
	turn := makeTurn(t, "long", func(s *v1alpha1.TurnStatus) {
		ended(s)
		s.Events.Count, s.Events.Items = 400, s.Events.Items[:1]
		s.Usage.Denied = 40
	})
	golden(t, "explain-long", steady(turn, call(t.Context(), server.viewer, "explain", "turn/long").text()))
}

func TestExplainARefusedTurn(t *testing.T) {
	turn := makeTurn(t, "refused", func(s *v1alpha1.TurnStatus) {
		s.Outcome, s.CompletedAt = v1alpha1.TurnDenied, new(at(time.Second))
		s.Error = &v1alpha1.TurnError{Code: contract.CodeNoMatchingGrant, Message: "No grant allows this."}
		s.Conditions = []metav1.Condition{
			condition(v1alpha1.TurnConditionAdmitted, metav1.ConditionFalse, v1alpha1.TurnReasonDenied, "no_matching_grant: No grant allows this."),
			condition(v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.TurnStateDenied, "denied"),
		}
	})
	golden(t, "explain-refused", steady(turn, call(t.Context(), server.viewer, "explain", "turn/refused").text()))
}

// TestRunFollow creates a Turn with the plugin while a stand-in for the manager runs it.
func TestRunFollow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan printed, 1)
	go func() {
		done <- call(ctx, server.admin, "run", "--principal", "alice-assistant", "--harness", "claude", "--name", "followed", "-m", "Hello", "--follow")
	}()
	turn := &v1alpha1.Turn{}
	for server.client.Get(ctx, client.ObjectKey{Namespace: world, Name: "followed"}, turn) != nil {
		must(t, ctx.Err())
	}
	t.Cleanup(func() { must(t, server.client.Delete(context.Background(), turn)) })
	steps := []func(*v1alpha1.TurnStatus){
		func(s *v1alpha1.TurnStatus) {
			s.Admission = admission()
			s.Conditions = []metav1.Condition{condition(v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStateAdmitted, "")}
		},
		ended,
	}
	for _, step := range steps {
		setStatus(ctx, t, turn, step)
	}
	got := <-done
	if got.code != 0 || got.out != "Atlas ships on 30 September.\n" {
		t.Errorf("%s", got.text())
	}
	for _, want := range []string{"turn/followed created\n", "Succeeded\n", "  files.read: succeeded\n", `  repo.\u001b[31mcommit: denied tool_unavailable`} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("standard error lacks %q:\n%s", want, got.errOut)
		}
	}
	if got := call(ctx, server.admin, "cancel", "followed"); got.code != 1 || !strings.Contains(got.errOut, "has ended already: Succeeded") {
		t.Errorf("cancelling what has ended: %s", got.text())
	}
}

func TestCancel(t *testing.T) {
	turn := makeTurn(t, "running", func(s *v1alpha1.TurnStatus) {
		s.Conditions = []metav1.Condition{condition(v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStateRunning, "")}
	})
	if got := call(t.Context(), server.viewer, "cancel", "running"); got.code != 2 || !strings.Contains(got.errOut, "forbidden") {
		t.Errorf("a viewer cancelled: %s", got.text())
	}
	if got := call(t.Context(), server.admin, "cancel", "turn/running"); got.code != 0 {
		t.Errorf("%s", got.text())
	}
	must(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(turn), turn))
	if !turn.Spec.Cancel {
		t.Error("the Turn is not cancelled")
	}
	if got := call(t.Context(), server.viewer, "logs", "running"); got.code != 2 || !strings.Contains(got.errOut, "has no pod: it is Running") {
		t.Errorf("logs without a pod: %s", got.text())
	}
}
