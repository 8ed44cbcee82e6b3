package wire

import (
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// The routes of a provider.
const (
	Path       = "/v1/operations" // POST Operation -> contract.ResourceResult
	HealthPath = "/healthz"       // GET -> 200 "ok"
)

// Context is the trusted context of an operation on the wire.
type Context struct {
	// NamespaceID is the world.
	NamespaceID string `json:"namespaceId"`
	// Actor acts; a change is attributed to it.
	Actor contract.Address `json:"actor"`
	// Owner owns the resources.
	Owner contract.Address `json:"owner"`
}

// Operation is the body of a request: a resource operation with the least context.
type Operation struct {
	OperationID string               `json:"operationId"`
	Resource    contract.ResourceRef `json:"resource"`
	Action      string               `json:"action"`
	Input       contract.Value       `json:"input,omitempty"`
	Metadata    contract.Object      `json:"metadata,omitempty"`
	Context     Context              `json:"context"`
}

// errNoContext is the error of an operation without a context to send.
var errNoContext = errors.New("operation has no context")

// fromOperation reduces a kernel's operation to what crosses.
func fromOperation(op contract.ResourceOperation) (Operation, error) {
	if op.Context == nil {
		return Operation{}, errNoContext
	}
	out := Operation{
		OperationID: op.OperationID, Resource: op.Resource, Action: op.Action, Input: op.Input, Metadata: op.Metadata,
		Context: Context{NamespaceID: op.Context.NamespaceID, Actor: op.Context.Actor, Owner: op.Context.Owner},
	}
	if out.Resource.Path == nil {
		out.Resource.Path = contract.Path{}
	}
	return out, out.Validate()
}

// Validate implements [contract.Validator].
func (o Operation) Validate() error {
	if err := o.operation().Validate(); err != nil {
		return err
	}
	// A namespace id is an Identifier, as a resource's namespace is.
	if err := (contract.ResourceRef{Namespace: o.Context.NamespaceID}).Validate(); err != nil {
		return fmt.Errorf("context.namespaceId: %w", err)
	}
	if err := o.Context.Actor.Validate(); err != nil {
		return fmt.Errorf("context.actor: %w", err)
	}
	if err := o.Context.Owner.Validate(); err != nil {
		return fmt.Errorf("context.owner: %w", err)
	}
	if owner := o.Resource.Owner; owner != nil && *owner != o.Context.Owner {
		return errors.New("resource.owner: must be the context's owner")
	}
	return nil
}

func (o Operation) operation() contract.ResourceOperation {
	return contract.ResourceOperation{
		OperationID: o.OperationID, Resource: o.Resource, Action: o.Action, Input: o.Input, Metadata: o.Metadata,
	}
}

// ParseOperation parses one request body strictly. The operation's context holds
// only world, actor and owner.
func ParseOperation(body []byte) (contract.ResourceOperation, error) {
	o, err := contract.Unmarshal[Operation](body)
	if err != nil {
		return contract.ResourceOperation{}, err
	}
	op := o.operation()
	op.Context = &contract.AccessContext{
		NamespaceID: o.Context.NamespaceID, Actor: o.Context.Actor, Owner: o.Context.Owner,
	}
	return op, nil
}

// ParseResult parses one answer strictly; it must answer the named operation.
func ParseResult(body []byte, operationID string) (contract.ResourceResult, error) {
	result, err := contract.Unmarshal[contract.ResourceResult](body)
	if err != nil {
		return contract.ResourceResult{}, err
	}
	if result.OperationID != operationID {
		return contract.ResourceResult{}, errors.New("operationId: answers another operation")
	}
	return result, nil
}
