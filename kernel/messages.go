package kernel

import "github.com/sharedos-dev/operator/kernel/contract"

// MessageFor is the fixed text of a code. It never says more than the code does:
// what happened in detail is in audit.
func MessageFor(code string) string {
	if text := decisionMessage(code); text != "" {
		return text
	}
	return toolMessage(code)
}

func toolMessage(code string) string {
	switch code {
	case contract.CodeToolUnavailable:
		return "The tool is not available in this context."
	case contract.CodeToolCatalogUnavailable:
		return "The tool catalogue is unavailable."
	case contract.CodeTraceMismatch:
		return "The call's trace is not the context's."
	case contract.CodeInvalidToolArguments:
		return "The arguments do not match the tool's input schema."
	case contract.CodeToolRequirementFailed:
		return "The call's required authority could not be determined."
	case contract.CodeInvalidToolRequirement:
		return "The call needs authority outside the tool's declared ceiling."
	case contract.CodeToolExecutionFailed:
		return "The tool failed."
	case contract.CodeInvalidToolResult:
		return "The tool returned a malformed result."
	case contract.CodeResourceProviderMissing:
		return "No provider serves this resource."
	case contract.CodeResourceExecutionFailed:
		return "The operation failed."
	case contract.CodeInvalidResourceResult:
		return "The provider returned a malformed result."
	default:
		return controlMessage(code)
	}
}

func controlMessage(code string) string {
	switch code {
	case contract.CodeAuditUnavailable:
		return "The operation could not be recorded and was not carried out."
	case contract.CodeEscalationNotTerminated:
		return "Asking for a human ends a turn; there is no turn here to end."
	case contract.CodeToolNamespacesNotConfigured:
		return "Tool namespaces cannot be changed here."
	case contract.CodeToolNamespaceUpdateFailed:
		return "Tool namespaces could not be changed."
	case contract.CodeInvalidToolNamespaceResponse:
		return "The tool namespace store gave an answer that cannot be trusted."
	default:
		return messagingMessage(code)
	}
}

func decisionMessage(code string) string {
	switch code {
	case contract.CodeInvalidContext:
		return "The context is not valid."
	case contract.CodeInvalidRequest:
		return "The request is not valid in this context."
	case contract.CodeAuthorityUnavailable:
		return "Authority is unavailable."
	case contract.CodeUsageStoreUnavailable:
		return "Remaining uses could not be established."
	case contract.CodeHostPolicyUnavailable:
		return "The host's policy is unavailable."
	case contract.CodeDelegationChainUnverified:
		return "A grant's delegation could not be verified."
	case contract.CodeDelegationChainInvalid:
		return "A grant's delegation is not valid."
	case contract.CodeHostPolicyDenied:
		return "The host's policy does not permit this."
	case contract.CodeGrantExhausted:
		return "The grant has no uses left."
	case contract.CodeNoMatchingGrant:
		return "No grant allows this."
	default:
		return ""
	}
}

func messagingMessage(code string) string {
	switch code {
	case contract.CodeMessageContextMismatch:
		return "The message's sender, purpose or trace is not the context's."
	case contract.CodeMessageTransportMissing:
		return "No message transport is configured."
	case contract.CodeMessageDeliveryFailed:
		return "The message could not be delivered."
	case contract.CodeInvalidMessageReceipt:
		return "The transport returned a malformed receipt."
	case contract.CodeMessageRequestNotPrepared:
		return "The request could not be prepared."
	case contract.CodeMessageRequestNotAccepted:
		return "The request was not accepted."
	case contract.CodeMessageReplyFailed:
		return "No reply could be obtained."
	case contract.CodeInvalidMessageReply:
		return "The reply does not answer the request."
	default:
		return turnMessage(code)
	}
}

func turnMessage(code string) string {
	switch code {
	case contract.CodeActorMismatch:
		return "The context's actor is not the agent."
	case contract.CodeReceiverMismatch:
		return "The message is not addressed to the agent."
	case contract.CodeTurnDraining:
		return "The turn is about to reach its deadline and takes no new call."
	case contract.CodeStepLimitExceeded:
		return "The turn has no steps left."
	case contract.CodeToolCallLimitExceeded:
		return "The turn has no tool calls left."
	case contract.CodeEscalationPending:
		return "The turn has ended by asking a human; nothing further runs on it."
	case contract.CodeEscalationNotRecorded:
		return "The escalation could not be kept and has not happened."
	case contract.CodeTurnEnded:
		return "The turn has ended."
	case contract.CodeTurnNotStarted:
		return "The turn has not started."
	case contract.CodeTurnCancelled:
		return "The turn was cancelled."
	case contract.CodeRuntimeFailed:
		return "The runtime failed."
	case contract.CodeInvalidRuntimeOutcome:
		return "The runtime returned a malformed outcome."
	case contract.CodeCatalogChanged:
		return "The tools offered to this turn have changed since it was admitted."
	default:
		return "The operation was refused."
	}
}

// protocolError builds the error a caller sees. A fault of infrastructure may be
// retried; a refusal says nothing about that.
func protocolError(code string) *contract.ProtocolError {
	e := &contract.ProtocolError{Code: code, Message: MessageFor(code)}
	if failsClosed(code) || code == contract.CodeAuditUnavailable || code == contract.CodeToolCatalogUnavailable {
		retryable := true
		e.Retryable = &retryable
	}
	return e
}

func refusal(code string) *Refusal { return &Refusal{Code: code, Message: MessageFor(code)} }
