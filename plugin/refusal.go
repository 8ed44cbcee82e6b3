package plugin

import (
	"fmt"
	"strings"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

// The gates that a call passes.
const (
	gateOffered   = "the tools that the turn was offered"
	gateAuthority = "authority"
	gateBudget    = "the turn's budget"
	gateAsked     = "the turn has asked for a decision"
	gateArguments = "the tool's arguments"
	gateTool      = "the tool itself, after authority had allowed the call"
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

// refusal explains a call that did not succeed: from the audit log, else from what the
// Turn keeps, else from what the tool needs as it is now.
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
	kept := n.kept(data)
	if kept != nil && n.required(c, kept) {
		return
	}
	tool, known := n.tools[data.Tool]
	switch {
	case data.Code == contract.CodeToolUnavailable:
		c.Notes = append(c.Notes, n.unavailable(data.Tool, known))
	case c.Gate != gateAuthority:
		c.Needed = n.noGrant(data.Code)
	case known:
		need := &tool.RequiredCapability
		c.Needed = fmt.Sprintf("%s on the place that the call named, in %s", need.Action,
			snapshot.FormatPlace(need.Resource.Namespace, need.Resource.Path, contract.ScopeDescendants))
		c.Notes = append(c.Notes, "which place it was is in the audit log: --audit")
	default:
		c.Needed = "what the call was about, which is in the audit log: --audit"
	}
}

// kept is what the Turn keeps of a refused call, or nil: it was not among the first
// ones, or an earlier manager wrote the status.
func (n *narrator) kept(data *eventData) *v1alpha1.TurnRefusal {
	for i := range n.turn.Status.Refusals {
		if r := &n.turn.Status.Refusals[i]; r.CallID == data.CallID && r.Tool == data.Tool && r.Code == data.Code {
			return r
		}
	}
	return nil
}

// required tells what the Turn says that a call needed, and whether it says so.
func (n *narrator) required(c *chapter, kept *v1alpha1.TurnRefusal) bool {
	need, err := contract.Unmarshal[contract.CapabilityRequest]([]byte(kept.RequiredAuthority))
	if err != nil {
		return false
	}
	text := n.requestText(&need)
	switch c.Gate {
	case gateOffered:
		c.Needed, c.RequiredAuthority = text, &need
		c.Notes = append(c.Notes, "no Grant that the turn held reaches the tool; one for any part of that place would")
	case gateAuthority:
		c.Needed, c.RequiredAuthority = text, &need
	default:
		if c.Gate == "" {
			c.Gate = gateTool
		}
		c.Notes = append(c.Notes, "it was about "+text)
	}
	return true
}

// requestText is a description of authority in one line. It does not say who could
// give it: that is whose authority the turn had.
func (n *narrator) requestText(need *contract.CapabilityRequest) string {
	ac := contract.AccessContext{Purpose: need.Purpose, Actor: need.Requester}
	if a := n.turn.Status.Admission; a != nil && a.Context != nil {
		ac.Authority = translate.Address(a.Context.Authority)
	}
	asked := make([]string, 0, len(need.Capabilities))
	for i := range need.Capabilities {
		c := &need.Capabilities[i]
		asked = append(asked, strings.Join(c.Actions, ",")+" on "+snapshot.FormatPlace(c.Resource.Namespace, c.Resource.Path, c.Scope))
	}
	return partiesText(&ac, strings.Join(asked, " and "))
}

// noGrant is what a call needed that no Grant lets pass.
func (n *narrator) noGrant(code string) string {
	switch code {
	case contract.CodeToolCallLimitExceeded:
		return "no Grant, but a larger spec.options.maxToolCalls"
	case contract.CodeStepLimitExceeded:
		return "no Grant, but a larger spec.options.maxSteps"
	case contract.CodeTurnDraining:
		return "no Grant, but more time: spec.options.timeoutMs"
	case contract.CodeEscalationPending:
		return "the decision that the turn asked for: kubectl sharedos approve " + n.turn.Name
	case contract.CodeInvalidToolArguments:
		return "no Grant, but arguments that fit the tool's schema"
	default:
		return ""
	}
}

// untold tells the refused calls whose events are not at hand.
func (n *narrator) untold() []chapter {
	var out []chapter
	for i := range n.turn.Status.Refusals {
		r := &n.turn.Status.Refusals[i]
		if n.told[r.CallID] {
			continue
		}
		c := chapter{What: "called " + r.Tool + ": " + string(contract.StatusDenied) + ", " + r.Code}
		n.refusal(&c, &eventData{CallID: r.CallID, Tool: r.Tool, Status: string(contract.StatusDenied), Code: r.Code})
		out = append(out, c)
	}
	return out
}

// leftOut says that the Turn does not keep every refused call, unless the audit log was
// read.
func (n *narrator) leftOut() (chapter, bool) {
	kept, usage := len(n.turn.Status.Refusals), n.turn.Status.Usage
	if kept == 0 || usage == nil || usage.Denied <= int64(kept) || len(n.records) > 0 {
		return chapter{}, false
	}
	return chapter{What: fmt.Sprintf("what was needed is known of the first %d of %d denied calls; the audit log has the others: --audit", kept, usage.Denied)}, true
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

// needText is what a refused decision would have needed.
func needText(e *audit.Event) string {
	if e.Resource == nil {
		return ""
	}
	return neededText(&contract.AccessContext{Purpose: e.Purpose, Authority: e.Authority, Actor: e.Actor}, e.Action, e.Resource)
}

// neededText is the Grant that a question would have needed, in one line.
func neededText(ac *contract.AccessContext, action string, resource *contract.ResourceRef) string {
	return partiesText(ac, action+" on "+snapshot.FormatResource(resource.Namespace, resource.Path))
}

// partiesText adds for what, from whom and to whom a Grant would have to be.
func partiesText(ac *contract.AccessContext, what string) string {
	what += ", for " + ac.Purpose
	if ac.Authority.Kind != "" {
		what += ", from " + contract.CanonicalActor(ac.Authority)
	} else {
		what += ","
	}
	return what + " to " + contract.CanonicalActor(ac.Actor)
}

func rejectedNotes(e *audit.Event) []string {
	notes := make([]string, 0, len(e.RejectedGrants))
	for _, g := range e.RejectedGrants {
		notes = append(notes, "grant "+g.GrantID+" did not allow it: "+g.Reason)
	}
	return notes
}
