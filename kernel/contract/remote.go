package contract

// RemoteResourceOperation is [ResourceOperation] as the public HTTP API takes it:
// a caller cannot describe its own context.
type RemoteResourceOperation struct {
	OperationID string      `json:"operationId"`
	Resource    ResourceRef `json:"resource"`
	Action      string      `json:"action"`
	Input       Value       `json:"input,omitempty"`
	Metadata    Object      `json:"metadata,omitempty"`
}

// Validate implements [Validator].
func (o RemoteResourceOperation) Validate() error { return o.In(nil).Validate() }

// In attaches the context the server resolved.
func (o RemoteResourceOperation) In(ac *AccessContext) ResourceOperation {
	return ResourceOperation{
		OperationID: o.OperationID, Resource: o.Resource, Action: o.Action,
		Input: o.Input, Metadata: o.Metadata, Context: ac,
	}
}

// RemoteExecutionRequest is [ExecutionRequest] as the public HTTP API takes it: a
// caller can neither describe its own context nor widen its own catalogue.
type RemoteExecutionRequest struct {
	Version     string            `json:"version"`
	ExecutionID string            `json:"executionId"`
	Agent       Address           `json:"agent"`
	Message     MessageEnvelope   `json:"message"`
	State       Value             `json:"state,omitempty"`
	Options     *ExecutionOptions `json:"options,omitempty"`
	Metadata    Object            `json:"metadata,omitempty"`
}

// Validate implements [Validator].
func (r RemoteExecutionRequest) Validate() error { return r.In(nil).Validate() }

// In attaches the context the server resolved.
func (r RemoteExecutionRequest) In(ac *AccessContext) ExecutionRequest {
	return ExecutionRequest{
		Version: r.Version, ExecutionID: r.ExecutionID, Agent: r.Agent, Context: ac,
		Message: r.Message, State: r.State, Options: r.Options, Metadata: r.Metadata,
	}
}
