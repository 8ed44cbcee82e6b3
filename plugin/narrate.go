package plugin

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

func microTime(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t) }

// clockTime is an instant in the story, in UTC.
func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func plainIndented(line string) string { return plain.Text(line) }

// tell is the whole story in order.
func (n *narrator) tell() []chapter {
	t := n.turn
	out := []chapter{n.asked()}
	if t.Status.Admission != nil {
		out = append(out, n.admitted(), n.catalogue())
	} else if c := v1alpha1.FindCondition(t.Status.Conditions, v1alpha1.TurnConditionAdmitted); c != nil && c.Status == metav1.ConditionFalse {
		out = append(out, n.notAdmitted(c))
	}
	if pod := t.Status.Pod; pod != nil {
		out = append(out, chapter{What: fmt.Sprintf("ran in pod %s", pod.Name)})
	}
	for i := range n.events {
		if entry, ok := n.event(&n.events[i]); ok {
			out = append(out, entry)
		}
	}
	if events := t.Status.Events; events != nil && int64(len(n.events)) < events.Count {
		out = append(out, chapter{What: fmt.Sprintf("%d of %d events are told; the others are in the ConfigMap of the Turn", len(n.events), events.Count)})
	}
	if t.IsFinished() {
		out = append(out, n.ending())
	}
	return out
}

func (n *narrator) asked() chapter {
	t := n.turn
	from := string(t.Spec.Message.From)
	if from == "" {
		from = string(t.Spec.Principal)
	}
	what := fmt.Sprintf("%s asks %s", from, t.Spec.Principal)
	if t.Spec.Harness != "" {
		what += " to run with the Harness " + string(t.Spec.Harness)
	}
	if t.Spec.Purpose != "" {
		what += ", for " + string(t.Spec.Purpose)
	}
	return chapter{At: clockTime(t.CreationTimestamp.Time), What: what}
}

func (n *narrator) admitted() chapter {
	a := n.turn.Status.Admission
	c := chapter{At: clockTime(a.At.Time), What: "admitted"}
	if ac := a.Context; ac != nil {
		c.What = fmt.Sprintf("admitted as %s, with the authority of %s, on what belongs to %s, for %s",
			address(ac.Actor), address(ac.Authority), address(ac.Owner), ac.Purpose)
	}
	names := make([]string, 0, len(a.Grants))
	for _, g := range a.Grants {
		names = append(names, fmt.Sprintf("%s (generation %d)", g.Name, g.Generation))
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%d grants: %s", a.GrantCount, strings.Join(names, ", ")))
	return c
}

func address(a v1alpha1.Address) string { return string(a.Kind) + " " + a.ID() }

func (n *narrator) catalogue() chapter {
	a := n.turn.Status.Admission
	c := chapter{What: fmt.Sprintf("offered %d tools, catalogue %.12s", a.ToolCount, a.CatalogHash)}
	if a.ToolCount == 0 {
		c.Notes = []string{"no tool is on that some Grant reaches for this purpose"}
	}
	return c
}

func (n *narrator) notAdmitted(condition *metav1.Condition) chapter {
	c := chapter{At: clockTime(condition.LastTransitionTime.Time), What: "not admitted: " + condition.Reason + ": " + condition.Message}
	if condition.Reason == string(v1alpha1.TurnReasonDenied) {
		c.Gate = "running the agent"
		c.Needed = n.admissionNeed()
		if n.denied != nil && n.denied.Resource != nil {
			c.Needed = needText(n.denied)
			c.Notes = rejectedNotes(n.denied)
		}
	}
	return c
}

// admissionNeed is the Grant without which no turn of the Principal begins.
func (n *narrator) admissionNeed() string {
	id, err := n.principals.Identity(string(n.turn.Spec.Principal))
	if err != nil {
		return contract.ActionInvoke + " on the agent's own place in " + contract.NamespaceExecution
	}
	purpose, err := id.Purpose(n.turn.Spec.Purpose)
	if err != nil {
		return err.Error()
	}
	return neededText(&contract.AccessContext{Purpose: purpose, Authority: id.Authority, Actor: id.Actor}, contract.ActionInvoke,
		&contract.ResourceRef{Namespace: contract.NamespaceExecution, Path: contract.AddressPath(id.Actor)})
}

// event is what one event of the record says; not every one is worth a line.
func (n *narrator) event(e *v1alpha1.TurnEvent) (chapter, bool) {
	data := dataOf(e)
	c := chapter{At: clockTime(e.OccurredAt.Time)}
	switch contract.EventType(e.Type) {
	case contract.EventTurnStarted:
		c.What = "the agent began"
	case contract.EventToolCompleted:
		c.What = "called " + data.Tool + ": " + data.Status
		if data.Code != "" {
			c.What += ", " + data.Code
			n.refusal(&c, &data)
		}
	case contract.EventTurnCompleted, contract.EventTurnEscalated, contract.EventTurnFailed,
		contract.EventTurnDenied, contract.EventTurnCancelled, contract.EventRuntime, contract.EventToolRequested:
		return chapter{}, false
	}
	return c, c.What != ""
}

// refusal explains a call that did not succeed.
func (n *narrator) refusal(c *chapter, data *eventData) {
	c.Gate = gateOf(data.Code)
	for _, record := range n.records[data.CallID] {
		if record.Type == audit.AuthorizationChecked && record.Outcome == audit.Denied {
			c.Needed, c.Notes = needText(&record), rejectedNotes(&record)
			return
		}
		if record.Cause != "" {
			c.Notes = append(c.Notes, "cause: "+record.Cause)
		}
	}
	tool, known := n.tools[data.Tool]
	switch {
	case data.Code == contract.CodeToolUnavailable:
		c.Notes = append(c.Notes, n.unavailable(data.Tool, known))
	case c.Gate != gateAuthority:
	case known:
		need := &tool.RequiredCapability
		c.Needed = fmt.Sprintf("%s on the place that the call named, in %s", need.Action,
			snapshot.FormatPlace(need.Resource.Namespace, need.Resource.Path, contract.ScopeDescendants))
		c.Notes = append(c.Notes, "which place it was is in the audit log: --audit")
	default:
		c.Needed = "what the call was about, which is in the audit log: --audit"
	}
}

// unavailable says which of the gates before authority is shut, as it is now.
func (n *narrator) unavailable(tool string, known bool) string {
	namespace, _, _ := strings.Cut(tool, ".")
	on, exists := n.on[namespace]
	switch {
	case n.on == nil:
		return "it was not among the tools that the turn was offered"
	case !exists:
		return fmt.Sprintf("there is no ToolNamespace %q", namespace)
	case !on:
		return fmt.Sprintf("the ToolNamespace %q is off", namespace)
	case !known && namespace != string(v1alpha1.BuiltinSharedOS) && namespace != string(v1alpha1.BuiltinMessages):
		return fmt.Sprintf("the ToolNamespace %q declares no such tool", namespace)
	default:
		return "it is on, and no Grant that the turn held reaches it"
	}
}

// The gates that a call passes.
const (
	gateOffered   = "the tools that the turn was offered"
	gateAuthority = "authority"
	gateBudget    = "the turn's budget"
	gateAsked     = "the turn has asked for a decision"
	gateArguments = "the tool's arguments"
)

func gateOf(code string) string {
	switch code {
	case contract.CodeToolUnavailable, contract.CodeToolCatalogUnavailable:
		return gateOffered
	case contract.CodeNoMatchingGrant, contract.CodeGrantExhausted, contract.CodeDelegationChainInvalid,
		contract.CodeDelegationChainUnverified, contract.CodeHostPolicyDenied, contract.CodeHostPolicyUnavailable,
		contract.CodeUsageStoreUnavailable, contract.CodeAuthorityUnavailable:
		return gateAuthority
	case contract.CodeToolCallLimitExceeded, contract.CodeStepLimitExceeded, contract.CodeTurnDraining:
		return gateBudget
	case contract.CodeEscalationPending:
		return gateAsked
	case contract.CodeInvalidToolArguments, contract.CodeToolRequirementFailed, contract.CodeInvalidToolRequirement:
		return gateArguments
	default:
		return ""
	}
}

// needText is what a refused decision would have needed.
func needText(e *audit.Event) string {
	if e.Resource == nil {
		return ""
	}
	return neededText(&contract.AccessContext{Purpose: e.Purpose, Authority: e.Authority, Actor: e.Actor}, e.Action, e.Resource)
}

// neededText is the Grant that a question would have needed, in one line.
func neededText(ac *contract.AccessContext, action string, resource *contract.ResourceRef) string {
	return fmt.Sprintf("%s on %s, for %s, from %s to %s", action, snapshot.FormatResource(resource.Namespace, resource.Path),
		ac.Purpose, contract.CanonicalActor(ac.Authority), contract.CanonicalActor(ac.Actor))
}

func rejectedNotes(e *audit.Event) []string {
	notes := make([]string, 0, len(e.RejectedGrants))
	for _, g := range e.RejectedGrants {
		notes = append(notes, "grant "+g.GrantID+" did not allow it: "+g.Reason)
	}
	return notes
}

func (n *narrator) ending() chapter {
	s := &n.turn.Status
	c := chapter{What: "ended: " + string(n.turn.State())}
	if s.CompletedAt != nil {
		c.At = clockTime(s.CompletedAt.Time)
	}
	if s.Error != nil {
		c.What += ", " + s.Error.Code + ": " + s.Error.Message
		if s.Error.Details != "" {
			c.Notes = append(c.Notes, "details: "+string(s.Error.Details))
		}
		if s.Error.Retryable != nil {
			c.Notes = append(c.Notes, "may be tried again: "+yesNo(*s.Error.Retryable))
		}
	}
	if s.Escalation != nil {
		c.Notes = append(c.Notes, "it asks: "+s.Escalation.Reason, "kubectl sharedos approve "+n.turn.Name)
	}
	if u := s.Usage; u != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("%d calls, %d denied", u.ToolCalls, u.Denied))
	}
	return c
}
