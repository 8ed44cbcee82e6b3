package translate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Parties are the resolved participants of one turn.
type Parties struct {
	Identity
	// Sender of the message.
	Sender contract.Address
	// Purpose that the turn declares.
	Purpose string
	// Enabled are the tool namespaces that are on for the Principal.
	Enabled []string
	// Options bound the turn; see [Options].
	Options v1alpha1.ExecutionOptions
}

// Request is the envelope's request for a Turn admitted at the instant. Times in
// a Turn's status have microseconds, so the instant must have no more.
func Request(t *v1alpha1.Turn, p Parties, at time.Time) (contract.ExecutionRequest, error) {
	executionID, trace := t.EffectiveExecutionID(), TraceID(t)
	message, err := message(t, p, trace)
	if err != nil {
		return contract.ExecutionRequest{}, err
	}
	state, err := jsonText("spec.state", t.Spec.State)
	if err != nil {
		return contract.ExecutionRequest{}, err
	}
	ac := p.context(t.Namespace, p.Purpose, p.Enabled, trace, at)
	return contract.ExecutionRequest{
		Version: contract.Version, ExecutionID: executionID, Agent: p.Actor, Context: &ac,
		Message: message, Tools: requested(t.Spec.Tools), State: state, Options: &contract.ExecutionOptions{
			MaxSteps: p.Options.MaxSteps, MaxToolCalls: p.Options.MaxToolCalls, TimeoutMs: p.Options.TimeoutMs,
		},
	}, nil
}

// TraceID is the trace that a Turn and its message are recorded under.
func TraceID(t *v1alpha1.Turn) string {
	if t.Spec.Message.TraceID != "" {
		return string(t.Spec.Message.TraceID)
	}
	return string(t.UID)
}

// Options are a Turn's own options over its Harness's defaults.
func Options(t *v1alpha1.Turn, h *v1alpha1.Harness) v1alpha1.ExecutionOptions {
	var out v1alpha1.ExecutionOptions
	if h != nil && h.Spec.Defaults != nil {
		out = h.Spec.Defaults.ExecutionOptions
	}
	if o := t.Spec.Options; o != nil {
		out.MaxSteps = or(o.MaxSteps, out.MaxSteps)
		out.MaxToolCalls = or(o.MaxToolCalls, out.MaxToolCalls)
		out.TimeoutMs = or(o.TimeoutMs, out.TimeoutMs)
	}
	return out
}

func or[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

func message(t *v1alpha1.Turn, p Parties, trace string) (contract.MessageEnvelope, error) {
	m := &t.Spec.Message
	out := contract.MessageEnvelope{
		Version: contract.Version, ID: string(m.ID), Sender: p.Sender, Receiver: p.Actor,
		Purpose: p.Purpose, TraceID: trace, CreatedAt: contract.At(t.CreationTimestamp.UTC()), ReplyTo: string(m.ReplyTo),
	}
	if out.ID == "" {
		out.ID = t.EffectiveExecutionID()
	}
	if m.CreatedAt != "" {
		at, err := m.CreatedAt.Time()
		if err != nil {
			return contract.MessageEnvelope{}, fmt.Errorf("spec.message.createdAt: %w", err)
		}
		out.CreatedAt = contract.At(at)
	}
	var err error
	if out.Payload, err = payload(m); err != nil {
		return contract.MessageEnvelope{}, err
	}
	if m.Provenance != nil {
		metadata, err := jsonText("spec.message.provenance.metadata", m.Provenance.Metadata)
		if err != nil {
			return contract.MessageEnvelope{}, err
		}
		out.Provenance = &contract.Provenance{
			Source: string(m.Provenance.Source), ParentIDs: stringsOf(m.Provenance.ParentIDs), Metadata: metadata,
		}
	}
	return out, nil
}

func payload(m *v1alpha1.TurnMessage) (contract.Value, error) {
	if m.Payload != "" {
		return jsonText("spec.message.payload", m.Payload)
	}
	raw, err := json.Marshal(map[string]string{"text": m.Text})
	if err != nil {
		return nil, fmt.Errorf("spec.message.text: %w", err)
	}
	return raw, nil
}

// jsonText reads JSON that the API keeps as text, so that no digit is rounded.
func jsonText(field string, text v1alpha1.JSONText) (contract.Value, error) {
	if text == "" {
		return nil, nil
	}
	if err := strictjson.Check([]byte(text)); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", field, err)
	}
	return contract.Value(text), nil
}

// requested names the tools that a Turn asks for. The envelope reads the names
// only; the rest is what makes a definition well formed.
func requested(names []v1alpha1.ToolName) []contract.ToolDefinition {
	if names == nil {
		return nil
	}
	out := make([]contract.ToolDefinition, 0, len(names))
	for _, name := range names {
		out = append(out, contract.ToolDefinition{
			Name: string(name), Description: "requested by name", Namespace: "requested", Source: "turn",
			ReadWrite: contract.ClassRead, InputSchema: contract.Object(`{"type":"object"}`),
			RequiredCapability: contract.CapabilityRequirement{
				Resource: contract.ResourceRef{Namespace: "requested", Path: contract.Path{}}, Action: "none",
			},
		})
	}
	return out
}
