package kernel

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// NewResourceTool makes a tool of one plane operation. Its requirement is the
// definition's namespace, the call's "path" argument and the definition's action;
// its handler hands the remaining arguments to the provider as the operation's
// input. The provider's denied and failed answers keep their code.
func NewResourceTool(def contract.ToolDefinition, provider ResourceProvider) Tool {
	need := def.RequiredCapability
	return Tool{
		Definition: def,
		Requirement: func(args Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			if err != nil {
				return contract.CapabilityRequirement{}, err
			}
			return contract.CapabilityRequirement{
				Resource: contract.ResourceRef{Namespace: need.Resource.Namespace, Path: path, Owner: need.Resource.Owner},
				Action:   need.Action,
			}, nil
		},
		Handle: func(ctx context.Context, call ToolInvocation) (Output, error) {
			ac := call.Context
			result, err := provider.Invoke(ctx, contract.ResourceOperation{
				OperationID: call.CallID,
				Resource:    call.Requirement.Resource,
				Action:      call.Requirement.Action,
				Input:       call.Arguments.Without("path"),
				Context:     &ac,
			})
			if err != nil {
				return Output{}, err
			}
			return outputOf(result)
		},
	}
}

// outputOf turns a provider's answer into a handler's. A malformed answer keeps
// its flaw, so that the kernel refuses it.
func outputOf(r contract.ResourceResult) (Output, error) {
	switch r.Status {
	case contract.StatusSucceeded:
		if r.Validate() != nil {
			return Output{CallID: r.OperationID}, nil
		}
		return Output{Value: r.Output, Metadata: r.Metadata, CallID: r.OperationID}, nil
	case contract.StatusDenied, contract.StatusFailed:
		if r.Validate() != nil {
			return Output{CallID: r.OperationID}, nil
		}
		return Output{CallID: r.OperationID}, &Failure{Status: r.Status, Err: *r.Error}
	default:
		return Output{CallID: r.OperationID}, nil
	}
}
