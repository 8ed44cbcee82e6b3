package plugin

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/contract"
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
		out = append(out, n.untold()...)
	}
	if entry, ok := n.leftOut(); ok {
		out = append(out, entry)
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
			n.told[data.CallID] = true
		}
	case contract.EventTurnCompleted, contract.EventTurnEscalated, contract.EventTurnFailed,
		contract.EventTurnDenied, contract.EventTurnCancelled, contract.EventRuntime, contract.EventToolRequested:
		return chapter{}, false
	}
	return c, c.What != ""
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
