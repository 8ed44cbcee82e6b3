package contract

// Reason codes of an authorization decision. A caller learns exactly one.
const (
	CodeAllowed                   = "allowed"
	CodeInvalidContext            = "invalid_context"
	CodeInvalidRequest            = "invalid_request"
	CodeAuthorityUnavailable      = "authority_unavailable"
	CodeUsageStoreUnavailable     = "usage_store_unavailable"
	CodeHostPolicyUnavailable     = "host_policy_unavailable"
	CodeDelegationChainUnverified = "delegation_chain_unverified"
	CodeDelegationChainInvalid    = "delegation_chain_invalid"
	CodeHostPolicyDenied          = "host_policy_denied"
	CodeGrantExhausted            = "grant_exhausted"
	CodeNoMatchingGrant           = "no_matching_grant"
)

// Codes of tool calls and resource operations.
const (
	CodeToolUnavailable              = "tool_unavailable"
	CodeToolCatalogUnavailable       = "tool_catalog_unavailable"
	CodeTraceMismatch                = "trace_mismatch"
	CodeInvalidToolArguments         = "invalid_tool_arguments"
	CodeToolRequirementFailed        = "tool_requirement_resolution_failed"
	CodeInvalidToolRequirement       = "invalid_tool_requirement"
	CodeToolExecutionFailed          = "tool_execution_failed"
	CodeInvalidToolResult            = "invalid_tool_result"
	CodeResourceProviderMissing      = "resource_provider_not_configured"
	CodeResourceExecutionFailed      = "resource_execution_failed"
	CodeInvalidResourceResult        = "invalid_resource_result"
	CodeAuditUnavailable             = "audit_unavailable"
	CodeVersionConflict              = "version_conflict"
	CodeToolNamespacesNotConfigured  = "tool_namespace_store_not_configured"
	CodeToolNamespaceUpdateFailed    = "tool_namespace_update_failed"
	CodeInvalidToolNamespaceResponse = "invalid_tool_namespace_selection"
)

// Codes of messages.
const (
	CodeMessageContextMismatch    = "message_context_mismatch"
	CodeMessageTransportMissing   = "message_transport_not_configured"
	CodeMessageDeliveryFailed     = "message_delivery_failed"
	CodeInvalidMessageReceipt     = "invalid_message_receipt"
	CodeMessageRequestNotPrepared = "message_request_not_prepared"
	CodeMessageRequestNotAccepted = "message_request_not_accepted"
	CodeMessageReplyFailed        = "message_reply_resolution_failed"
	CodeInvalidMessageReply       = "invalid_message_reply"
)

// Codes of a turn.
const (
	CodeActorMismatch           = "actor_mismatch"
	CodeReceiverMismatch        = "receiver_mismatch"
	CodeTurnDraining            = "turn_draining"
	CodeStepLimitExceeded       = "step_limit_exceeded"
	CodeToolCallLimitExceeded   = "tool_call_limit_exceeded"
	CodeEscalationPending       = "escalation_pending"
	CodeEscalationNotTerminated = "escalation_not_terminated"
	CodeEscalationNotRecorded   = "escalation_not_recorded"
	CodeTurnEnded               = "turn_ended"
	CodeTurnNotStarted          = "turn_not_started"
	CodeTurnCancelled           = "turn_cancelled"
	CodeRuntimeFailed           = "runtime_failed"
	CodeInvalidRuntimeOutcome   = "invalid_runtime_outcome"
	CodeCatalogChanged          = "catalog_changed"
)

// EscalateTool is the canonical name of the affordance that asks for a human.
const EscalateTool = "sharedos.escalate"

// MessagesRequestTool is the canonical name of the tool that sends a message and
// waits for its reply.
const MessagesRequestTool = "messages.request"

// Namespaces of the requirements that the kernel itself checks.
const (
	NamespaceExecution = "sharedos.execution" // path [kind, id] of the agent, action ActionInvoke
	NamespaceMessaging = "sharedos.messaging" // path [kind, id] of the receiver, action ActionSend
	NamespaceSharedOS  = "sharedos"           // path ["escalation"], action ActionRequest
)

// Actions of those requirements.
const (
	ActionInvoke  = "invoke"
	ActionSend    = "send"
	ActionRequest = "request"
)
