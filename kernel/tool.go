package kernel

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Tool is a definition with the two functions that make it work. Requirement
// turns parsed arguments into the exact authority of one call; a tool without it
// cannot be registered, because there is no default authority. Handle is reached
// only after that requirement was allowed and recorded.
type Tool struct {
	Definition  contract.ToolDefinition
	Requirement func(args Arguments, ac contract.AccessContext) (contract.CapabilityRequirement, error)
	Handle      func(ctx context.Context, call ToolInvocation) (Output, error)
}

// ToolInvocation is what a handler receives. It holds no grant and no handle on
// the kernel.
type ToolInvocation struct {
	CallID      string
	Tool        string
	Arguments   Arguments
	Requirement contract.CapabilityRequirement
	Context     contract.AccessContext
	// Now is the operation's instant.
	Now contract.Timestamp
}

// Output is what a handler produced.
type Output struct {
	// Value is any JSON value. It must not be empty.
	Value contract.Value
	// Metadata is an optional JSON object for the result.
	Metadata contract.Object
	// CallID, when set, must be the invocation's; a handler that relays answers
	// sets it so that an answer to another call is caught.
	CallID string
}

// Failure is an error by which a handler ends a call with a code of its own, such
// as version_conflict. Any other error is answered as tool_execution_failed
// without detail.
type Failure struct {
	// Status is denied or failed; empty means failed.
	Status contract.Status
	Err    contract.ProtocolError
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Code + ": " + f.Err.Message }
