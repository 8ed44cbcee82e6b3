package translate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// errNotFinished means that a Turn has no result yet.
var errNotFinished = errors.New("the turn has not ended")

// Execution is the result of a Turn that has ended. Events and output are what is
// kept beside the status; nil where the status has all of it.
func Execution(t *v1alpha1.Turn, events []contract.ExecutionEvent, output []byte) (contract.ExecutionResult, error) {
	s := &t.Status
	if s.Outcome == "" || s.CompletedAt == nil {
		return contract.ExecutionResult{}, errNotFinished
	}
	if events == nil {
		events = []contract.ExecutionEvent{}
		if s.Events != nil {
			events = contractEvents(t, s.Events)
		}
	}
	out := contract.ExecutionResult{
		Version: contract.Version, ExecutionID: t.EffectiveExecutionID(), TraceID: TraceID(t), Status: contract.Status(s.Outcome),
		Error: ContractError(s.Error), Events: events, CompletedAt: contract.At(s.CompletedAt.UTC()), Metadata: contract.Object(s.Metadata),
	}
	out.StartedAt = out.CompletedAt
	if s.StartedAt != nil {
		out.StartedAt = contract.At(s.StartedAt.UTC())
	}
	switch out.Status {
	case contract.StatusEscalated:
		out.Escalation = ContractEscalation(s.Escalation)
	case contract.StatusSucceeded:
		var err error
		if out.Output, err = outputValue(&s.TurnOutput, output); err != nil {
			return contract.ExecutionResult{}, err
		}
		if s.OutputTruncated {
			if out.Metadata, err = cutOutput(out.Metadata, &s.TurnOutput); err != nil {
				return contract.ExecutionResult{}, err
			}
		}
	case contract.StatusDenied, contract.StatusFailed, contract.StatusCancelled:
	}
	return out, nil
}

// outputValue is the output as the harness's format says: JSON itself, or a string.
func outputValue(o *v1alpha1.TurnOutput, stored []byte) (contract.Value, error) {
	if stored == nil && o.Output != nil {
		stored = []byte(*o.Output)
	}
	if o.OutputFormat == v1alpha1.OutputJSON {
		return contract.Value(stored), nil
	}
	text, err := json.Marshal(string(stored))
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return text, nil
}

// cutOutput says in a result's metadata that its output is not the whole, as the
// Turn's status does.
func cutOutput(metadata contract.Object, o *v1alpha1.TurnOutput) (contract.Object, error) {
	fields := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &fields); err != nil {
			return nil, fmt.Errorf("read status.metadata: %w", err)
		}
	}
	cut, err := json.Marshal(map[string]any{"size": o.OutputSize, "sha256": o.OutputSHA256})
	if err != nil {
		return nil, fmt.Errorf("encode the output's size: %w", err)
	}
	fields["outputTruncated"] = cut
	return json.Marshal(fields)
}

// ContractError is the reverse of [Error].
func ContractError(e *v1alpha1.TurnError) *contract.ProtocolError {
	if e == nil {
		return nil
	}
	return &contract.ProtocolError{Code: e.Code, Message: e.Message, Retryable: e.Retryable, Details: contract.Object(e.Details)}
}
