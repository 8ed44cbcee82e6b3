package translate

import (
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// Admission is what an admitted turn's status keeps, so that another manager can
// rebuild it. References are the Grants that the turn holds.
func Admission(
	a envelope.Admission, ac *contract.AccessContext, options v1alpha1.ExecutionOptions, references []v1alpha1.GrantReference, policyHash string,
) *v1alpha1.TurnAdmission {
	out := &v1alpha1.TurnAdmission{
		At: MicroTime(a.At), AuthorityHash: v1alpha1.Digest(a.AuthorityHash),
		CatalogHash: v1alpha1.Digest(a.CatalogHash), ToolCount: int32(a.ToolCount), //nolint:gosec // at most 512 tools
		GrantCount: int32(len(references)), PolicyHash: v1alpha1.Digest(policyHash), //nolint:gosec // at most 4,096 grants
		Options: new(options),
		Context: &v1alpha1.AdmittedContext{
			Actor: APIAddress(ac.Actor), Authority: APIAddress(ac.Authority), Owner: APIAddress(ac.Owner),
			Purpose: v1alpha1.Purpose(ac.Purpose),
		},
	}
	for _, name := range ac.EnabledToolNamespaces {
		out.Context.EnabledToolNamespaces = append(out.Context.EnabledToolNamespaces, v1alpha1.LabelName(name))
	}
	if len(references) <= v1alpha1.MaxInlineGrants {
		out.Grants = references
	}
	return out
}

// Readmission is the parties and the instant of a turn that was admitted before.
// The sender of its message was checked then and is resolved by the caller.
func Readmission(t *v1alpha1.Turn, sender contract.Address) (Parties, time.Time, bool) {
	a := t.Status.Admission
	if a == nil || a.Context == nil {
		return Parties{}, time.Time{}, false
	}
	p := Parties{
		Identity: Identity{Actor: Address(a.Context.Actor), Authority: Address(a.Context.Authority), Owner: Address(a.Context.Owner)},
		Sender:   sender, Purpose: string(a.Context.Purpose), Enabled: []string{},
	}
	for _, name := range a.Context.EnabledToolNamespaces {
		p.Enabled = append(p.Enabled, string(name))
	}
	if a.Options != nil {
		p.Options = *a.Options
	}
	return p, a.At.Time, true
}

// Checkpoint is where a turn that was admitted before goes on. Held are the
// references of its Grants that still exist unchanged.
func Checkpoint(t *v1alpha1.Turn, held []kernel.GrantRef) envelope.Checkpoint {
	s := &t.Status
	out := envelope.Checkpoint{
		ExecutionID: t.EffectiveExecutionID(),
		Admission: envelope.Admission{
			At: contract.At(s.Admission.At.UTC()), AuthorityHash: string(s.Admission.AuthorityHash), Grants: held,
			CatalogHash: string(s.Admission.CatalogHash), ToolCount: int(s.Admission.ToolCount),
		},
		Escalation: ContractEscalation(s.Escalation), Denied: ContractRefusals(s.Refusals),
	}
	if ready := v1alpha1.FindCondition(s.Conditions, v1alpha1.TurnConditionBridgeReady); ready != nil && s.Admission.Deadline != nil {
		timeout := envelope.DefaultTimeout
		if o := s.Admission.Options; o != nil && o.TimeoutMs != nil {
			timeout = time.Duration(*o.TimeoutMs) * time.Millisecond
		}
		out.StartedAt = new(contract.At(s.Admission.Deadline.Add(-timeout).UTC()))
	}
	if s.Usage != nil {
		out.Usage = envelope.Usage{ToolCalls: s.Usage.ToolCalls, Denied: s.Usage.Denied, CallsAfterEscalation: s.Usage.CallsAfterEscalation}
	}
	if c := s.Checkpoint; c != nil {
		out.Usage.ToolCalls = max(out.Usage.ToolCalls, c.ToolCalls)
		out.Usage.Denied = max(out.Usage.Denied, c.Denied)
		out.Unsafe = c.Effects
		out.NextSequence = c.NextSequence
		for step := range c.Steps {
			out.Steps = append(out.Steps, step)
		}
	}
	if s.Events != nil {
		out.Events = contractEvents(t, s.Events)
	}
	return out
}

// contractEvents restores the events of the excerpt.
func contractEvents(t *v1alpha1.Turn, events *v1alpha1.TurnEvents) []contract.ExecutionEvent {
	out := make([]contract.ExecutionEvent, 0, len(events.Items))
	for i := range events.Items {
		e := &events.Items[i]
		out = append(out, contract.ExecutionEvent{
			Version: contract.Version, EventID: string(e.EventID), ExecutionID: t.EffectiveExecutionID(), TraceID: TraceID(t),
			Sequence: e.Sequence, Type: contract.EventType(e.Type), Data: contract.Object(e.Data), OccurredAt: contract.At(e.OccurredAt.UTC()),
		})
	}
	return out
}
