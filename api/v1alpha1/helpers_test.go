package v1alpha1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	for _, kind := range []string{"Principal", "Grant", "ToolNamespace", "Harness", "Turn"} {
		for _, name := range []string{kind, kind + "List"} {
			if _, err := scheme.New(v1alpha1.GroupVersion.WithKind(name)); err != nil {
				t.Errorf("kind %s is not registered: %v", name, err)
			}
		}
	}
}

func TestAddressID(t *testing.T) {
	for _, kind := range []v1alpha1.AddressKind{
		v1alpha1.AddressHuman, v1alpha1.AddressAgent, v1alpha1.AddressGroup, v1alpha1.AddressService,
	} {
		t.Run(string(kind), func(t *testing.T) {
			address := v1alpha1.NewAddress(kind, "x")
			if got := address.ID(); got != "x" {
				t.Errorf("ID() = %q, want x", got)
			}
		})
	}
	if got := v1alpha1.NewAddress("robot", "x"); got != (v1alpha1.Address{Kind: "robot"}) {
		t.Errorf("an unknown kind got an id: %+v", got)
	}
	mixed := v1alpha1.Address{Kind: v1alpha1.AddressHuman, AgentID: "x"}
	if got := mixed.ID(); got != "" {
		t.Errorf("a human's ID() = %q, taken from agentId", got)
	}
}

func TestTimestamp(t *testing.T) {
	for _, text := range []string{"2026-08-24T09:00:00Z", "2026-08-24T09:00:00.123456789+02:00"} {
		instant, err := v1alpha1.Timestamp(text).Time()
		if err != nil {
			t.Errorf("Time of %q: %v", text, err)
			continue
		}
		again, err := v1alpha1.NewTimestamp(instant).Time()
		if err != nil || !again.Equal(instant) {
			t.Errorf("%q lost digits: %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "2026-08-24", "2026-08-24T09:00:00"} {
		if instant, err := v1alpha1.Timestamp(text).Time(); err == nil {
			t.Errorf("Time of %q = %v, want an error", text, instant)
		}
	}
}

func TestLabelSelector(t *testing.T) {
	all, err := metav1.LabelSelectorAsSelector((*v1alpha1.PrincipalSelector)(nil).LabelSelector())
	if err != nil || !all.Matches(labels.Set{"team": "atlas"}) {
		t.Errorf("no selector does not select everything: %v, %v", all, err)
	}
	selector := &v1alpha1.PrincipalSelector{
		MatchLabels: map[string]v1alpha1.LabelValue{"team": "atlas"},
		MatchExpressions: []v1alpha1.SelectorRequirement{
			{Key: "tier", Operator: v1alpha1.SelectorIn, Values: []v1alpha1.LabelValue{"gold", "silver"}},
			{Key: "retired", Operator: v1alpha1.SelectorDoesNotExist},
		},
	}
	some, err := metav1.LabelSelectorAsSelector(selector.LabelSelector())
	if err != nil {
		t.Fatalf("the selector cannot be evaluated: %v", err)
	}
	for _, test := range []struct {
		labels labels.Set
		want   bool
	}{
		{labels.Set{"team": "atlas", "tier": "gold"}, true},
		{labels.Set{"team": "atlas", "tier": "lead"}, false},
		{labels.Set{"team": "zeus", "tier": "gold"}, false},
		{labels.Set{"team": "atlas", "tier": "gold", "retired": ""}, false},
		{nil, false},
	} {
		if got := some.Matches(test.labels); got != test.want {
			t.Errorf("Matches(%v) = %v, want %v", test.labels, got, test.want)
		}
	}
}

func TestTurnState(t *testing.T) {
	turn := &v1alpha1.Turn{}
	if turn.State() != v1alpha1.TurnStatePending || turn.IsFinished() {
		t.Errorf("a new turn is %s, finished %v", turn.State(), turn.IsFinished())
	}
	running := v1alpha1.Condition(
		v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStateRunning, "", 1)
	if !v1alpha1.SetCondition(&turn.Status.Conditions, running) {
		t.Error("a new condition is no change")
	}
	if v1alpha1.SetCondition(&turn.Status.Conditions, running) {
		t.Error("the same condition is a change")
	}
	if turn.State() != v1alpha1.TurnStateRunning || turn.IsFinished() {
		t.Errorf("a running turn is %s, finished %v", turn.State(), turn.IsFinished())
	}
	v1alpha1.SetCondition(&turn.Status.Conditions, v1alpha1.Condition(
		v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.StateOf(v1alpha1.TurnDenied), "", 1))
	if turn.State() != v1alpha1.TurnStateDenied || !turn.IsFinished() {
		t.Errorf("a denied turn is %s, finished %v", turn.State(), turn.IsFinished())
	}
}

func TestStateOf(t *testing.T) {
	want := map[v1alpha1.TurnOutcome]v1alpha1.ConditionReason{
		v1alpha1.TurnSucceeded: v1alpha1.TurnStateSucceeded,
		v1alpha1.TurnDenied:    v1alpha1.TurnStateDenied,
		v1alpha1.TurnFailed:    v1alpha1.TurnStateFailed,
		v1alpha1.TurnCancelled: v1alpha1.TurnStateCancelled,
		v1alpha1.TurnEscalated: v1alpha1.TurnStateEscalated,
		"unheard of":           v1alpha1.TurnStateFailed,
	}
	got := map[v1alpha1.TurnOutcome]v1alpha1.ConditionReason{}
	for outcome := range want {
		got[outcome] = v1alpha1.StateOf(outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("StateOf (-want +got):\n%s", diff)
	}
}

func TestConditionIsCurrent(t *testing.T) {
	conditions := []metav1.Condition{
		v1alpha1.Condition(v1alpha1.GrantReady, metav1.ConditionTrue, v1alpha1.GrantReasonActive, "", 2),
	}
	if !v1alpha1.ConditionIsCurrent(conditions, v1alpha1.GrantReady, 2) {
		t.Error("a True condition about this generation is not current")
	}
	if v1alpha1.ConditionIsCurrent(conditions, v1alpha1.GrantReady, 3) {
		t.Error("a condition about an older generation is current")
	}
	if v1alpha1.ConditionIsCurrent(nil, v1alpha1.GrantReady, 0) {
		t.Error("an absent condition is current")
	}
	conditions[0].Status = metav1.ConditionUnknown
	if v1alpha1.ConditionIsCurrent(conditions, v1alpha1.GrantReady, 2) {
		t.Error("an Unknown condition is current")
	}
}

func TestEffectiveExecutionID(t *testing.T) {
	turn := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{UID: types.UID("u-1")}}
	if got := turn.EffectiveExecutionID(); got != "u-1" {
		t.Errorf("without a choice: %q, want the UID", got)
	}
	turn.Spec.ExecutionID = "execution-1"
	if got := turn.EffectiveExecutionID(); got != "execution-1" {
		t.Errorf("with a choice: %q", got)
	}
}

func ExampleNewTimestamp() {
	instant := time.Date(2026, 9, 30, 19, 0, 0, 0, time.FixedZone("", 2*60*60))
	fmt.Println(v1alpha1.NewTimestamp(instant))
	// Output: 2026-09-30T17:00:00Z
}
