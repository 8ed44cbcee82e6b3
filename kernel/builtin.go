package kernel

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// The tool namespaces of the built-in tools.
const (
	ToolNamespaceSharedOS = "sharedos"
	ToolNamespaceMessages = "messages"
)

const builtinSource = "sharedos"

const escalateSchema = `{"type":"object","additionalProperties":false,"required":["reason"],"properties":{` +
	`"reason":{"type":"string","minLength":1,"description":"Why a human has to decide; longer than 512 characters is cut."},` +
	`"requestedAuthority":{"type":"object","additionalProperties":false,"required":["resource","action"],"properties":{` +
	`"action":{"type":"string","minLength":1,"maxLength":128},` +
	`"resource":{"type":"object","additionalProperties":false,"required":["namespace","path"],"properties":{` +
	`"namespace":{"type":"string","minLength":1,"maxLength":256},` +
	`"path":{"type":"array","maxItems":64,"items":{"type":"string","minLength":1,"maxLength":256}}}}}}}}`

const requestSchema = `{"type":"object","additionalProperties":false,"required":["recipient","payload"],"properties":{` +
	`"recipient":{"type":"object","required":["kind"],"oneOf":[` +
	`{"additionalProperties":false,"required":["kind","userId"],"properties":{"kind":{"const":"human"},"userId":{"type":"string","minLength":1,"maxLength":256}}},` +
	`{"additionalProperties":false,"required":["kind","agentId"],"properties":{"kind":{"const":"agent"},"agentId":{"type":"string","minLength":1,"maxLength":256}}},` +
	`{"additionalProperties":false,"required":["kind","conversationId"],"properties":{"kind":{"const":"group"},"conversationId":{"type":"string","minLength":1,"maxLength":256}}},` +
	`{"additionalProperties":false,"required":["kind","serviceId"],"properties":{"kind":{"const":"service"},"serviceId":{"type":"string","minLength":1,"maxLength":256}}}]},` +
	`"payload":{"description":"Any JSON value."}}}`

// escalateTool is catalogued like any tool and never executed: asking ends the
// turn, which only the envelope can do.
func escalateTool() Tool {
	need := contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: contract.NamespaceSharedOS, Path: contract.Path{"escalation"}},
		Action:   contract.ActionRequest,
	}
	return Tool{
		Definition: contract.ToolDefinition{
			Name: contract.EscalateTool, Namespace: ToolNamespaceSharedOS, Source: builtinSource,
			Description: "Ask a human to decide. Asking ends this turn; nothing is granted by it.",
			ReadWrite:   contract.ClassWrite, InputSchema: contract.Object(escalateSchema),
			RequiredCapability: need,
		},
		Requirement: func(Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) { return need, nil },
		Handle: func(context.Context, ToolInvocation) (Output, error) {
			return Output{}, &Failure{Err: *protocolError(contract.CodeEscalationNotTerminated)}
		},
	}
}

// requestTool sends a message and waits for the correlated reply.
func (k *Kernel) requestTool() Tool {
	return Tool{
		Definition: contract.ToolDefinition{
			Name: contract.MessagesRequestTool, Namespace: ToolNamespaceMessages, Source: builtinSource,
			Description: "Send a message to a recipient and wait for the reply.",
			ReadWrite:   contract.ClassWrite, InputSchema: contract.Object(requestSchema),
			RequiredCapability: contract.CapabilityRequirement{
				Resource: contract.ResourceRef{Namespace: contract.NamespaceMessaging, Path: contract.Path{}},
				Action:   contract.ActionSend,
			},
		},
		Requirement: func(args Arguments, ac contract.AccessContext) (contract.CapabilityRequirement, error) {
			recipient, err := recipientOf(args)
			if err != nil {
				return contract.CapabilityRequirement{}, err
			}
			return sendRequirement(recipient, ac.Owner), nil
		},
		Handle: k.handleRequest,
	}
}

func recipientOf(args Arguments) (contract.Address, error) {
	node, ok := args.node.Member("recipient")
	if !ok {
		return contract.Address{}, errors.New("recipient is missing")
	}
	var recipient contract.Address
	if err := strictjson.Decode(node, &recipient, strictjson.Options{}); err != nil {
		return contract.Address{}, err
	}
	return recipient, recipient.Validate()
}

// handleRequest runs after the send was authorized and its use spent; sender,
// purpose, trace, time and id come from the context, never from the arguments.
func (k *Kernel) handleRequest(ctx context.Context, call ToolInvocation) (Output, error) {
	recipient, err := recipientOf(call.Arguments)
	if err != nil {
		return Output{}, err
	}
	m := contract.MessageEnvelope{
		Version: contract.Version, ID: k.opts.NewID(), Sender: call.Context.Actor, Receiver: recipient,
		Purpose: call.Context.Purpose, Payload: call.Arguments.Member("payload"),
		TraceID: call.Context.TraceID, CreatedAt: contract.At(k.opts.Clock()),
	}
	reply, code := k.request(ctx, call, m)
	if code != "" {
		return Output{}, &Failure{Err: *protocolError(code)}
	}
	return Output{Value: reply.Payload}, nil
}

func (k *Kernel) request(ctx context.Context, call ToolInvocation, m contract.MessageEnvelope) (contract.MessageEnvelope, string) {
	var none contract.MessageEnvelope
	pending, err := guarded(func() (PendingReply, error) { return k.opts.Replies.Expect(ctx, m) })
	if err != nil || pending == nil {
		return none, contract.CodeMessageRequestNotPrepared
	}
	defer pending.Close()
	receipt, code := k.deliver(ctx, call.Context, m)
	outcome := deliveryOutcome(receipt.Status)
	if code != "" {
		outcome = audit.Failed
	}
	err = k.recordLater(context.WithoutCancel(ctx), call.Context, audit.Event{
		Type: audit.MessageSent, Outcome: outcome, MessageID: m.ID, Receiver: &m.Receiver,
		OperationID: call.CallID, Tool: call.Tool, Reason: code,
		Resource: &call.Requirement.Resource, Action: call.Requirement.Action,
	})
	if err != nil || outcome != audit.Succeeded {
		return none, contract.CodeMessageRequestNotAccepted
	}
	reply, err := guarded(func() (contract.MessageEnvelope, error) { return pending.Await(ctx) })
	if err != nil {
		return none, contract.CodeMessageReplyFailed
	}
	if reply.Validate() != nil || reply.ReplyTo != m.ID || reply.Sender != m.Receiver ||
		reply.Receiver != m.Sender || reply.TraceID != m.TraceID {
		return none, contract.CodeInvalidMessageReply
	}
	return reply, ""
}
