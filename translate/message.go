package translate

import (
	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TurnMessage is a whole envelope as a Turn keeps it. From names the Principal that
// its sender is; the receiver is the Turn's own Principal, and the purpose the Turn's.
func TurnMessage(m *contract.MessageEnvelope, from string) v1alpha1.TurnMessage {
	out := v1alpha1.TurnMessage{
		ID: v1alpha1.Identifier(m.ID), From: v1alpha1.ObjectName(from), Payload: v1alpha1.JSONText(m.Payload),
		ReplyTo: v1alpha1.Identifier(m.ReplyTo), TraceID: v1alpha1.Identifier(m.TraceID),
		CreatedAt: v1alpha1.NewTimestamp(m.CreatedAt.Time),
	}
	if p := m.Provenance; p != nil {
		out.Provenance = &v1alpha1.MessageProvenance{Source: v1alpha1.Identifier(p.Source), Metadata: v1alpha1.JSONText(p.Metadata)}
		for _, id := range p.ParentIDs {
			out.Provenance.ParentIDs = append(out.Provenance.ParentIDs, v1alpha1.Identifier(id))
		}
	}
	return out
}

// APIOptions is a request's options as a Turn keeps them; nil stays nil.
func APIOptions(o *contract.ExecutionOptions) *v1alpha1.ExecutionOptions {
	if o == nil {
		return nil
	}
	return &v1alpha1.ExecutionOptions{MaxSteps: o.MaxSteps, MaxToolCalls: o.MaxToolCalls, TimeoutMs: o.TimeoutMs}
}
