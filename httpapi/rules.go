package httpapi

import (
	"maps"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// rule makes the schema of one field.
type rule func() schema

func texts(limit int) rule { return func() schema { return text(limit) } }

func list(low, high int) rule {
	return func() schema {
		out := schema{"type": "array", "maxItems": high}
		if low > 0 {
			out["minItems"] = low
		}
		return out
	}
}

func unique(r rule) rule {
	return func() schema {
		out := r()
		out["uniqueItems"] = true
		return out
	}
}

func oneOf[T ~string](values ...T) rule {
	return func() schema {
		names := make([]string, 0, len(values))
		for _, v := range values {
			names = append(names, string(v))
		}
		return schema{"type": "string", "enum": names}
	}
}

func integer(low, high int64) rule {
	return func() schema { return schema{"type": "integer", "minimum": low, "maximum": high} }
}

func atLeast(low int64) rule {
	return func() schema { return schema{"type": "integer", "minimum": low} }
}

func boolean() schema { return schema{"type": "boolean"} }

func version() schema { return schema{"type": "string", "const": contract.Version} }

// fieldRules are the limits of every field of the contract that the routes carry,
// by type and JSON name; [] is an entry of the list before it. They say in JSON
// Schema what Validate of the type enforces.
func fieldRules() map[string]rule {
	rules := map[string]rule{}
	for _, part := range []map[string]rule{
		accessRules(), toolRules(), namespaceRules(), operationRules(), turnRules(), transportRules(),
	} {
		maps.Copy(rules, part)
	}
	return rules
}

func accessRules() map[string]rule {
	return map[string]rule{
		"ResourceRef.namespace":        identifier,
		"CapabilityRequirement.action": texts(contract.MaxAction),
		"Capability.actions":           list(1, contract.MaxListEntries),
		"Capability.actions[]":         texts(contract.MaxAction),
		"Capability.scope":             oneOf(contract.ScopeExact, contract.ScopeDescendants),
		"Constraints.purposes":         list(1, contract.MaxListEntries),
		"Constraints.purposes[]":       texts(contract.MaxPurpose),
		"Constraints.maxUses":          integer(1, contract.MaxSafeInteger),
		"Constraints.delegationDepth":  integer(0, contract.MaxSafeInteger),

		"AuthorizationDecision.allowed":        boolean,
		"AuthorizationDecision.reasonCode":     texts(contract.MaxCode),
		"AuthorizationDecision.matchedGrantId": identifier,

		"CapabilityRequest.id":           identifier,
		"CapabilityRequest.namespaceId":  identifier,
		"CapabilityRequest.capabilities": list(1, contract.MaxListEntries),
		"CapabilityRequest.purpose":      texts(contract.MaxPurpose),

		"ReachResult.status":     oneOf("computed", "unavailable"),
		"ReachResult.reach":      list(0, contract.MaxReach),
		"ReachResult.reasonCode": oneOf(contract.CodeAuthorityUnavailable, contract.CodeUsageStoreUnavailable),
		"ReachEntry.namespace":   identifier,
		"ReachEntry.actions":     list(1, contract.MaxListEntries),
		"ReachEntry.actions[]":   texts(contract.MaxAction),
		"ReachEntry.scope":       oneOf(contract.ScopeExact, contract.ScopeDescendants),
	}
}

func toolRules() map[string]rule {
	name := func() schema {
		return schema{"type": "string", "minLength": 1, "maxLength": contract.MaxToolName, "pattern": "^[A-Za-z0-9_.-]+$"}
	}
	return map[string]rule{
		"ToolDefinition.name":         name,
		"ToolDefinition.description":  texts(contract.MaxDescription),
		"ToolDefinition.namespace":    identifier,
		"ToolDefinition.source":       identifier,
		"ToolDefinition.readWrite":    oneOf(contract.ClassRead, contract.ClassWrite),
		"ToolAnnotations.readOnly":    boolean,
		"ToolAnnotations.destructive": boolean,
		"ToolAnnotations.idempotent":  boolean,

		"ToolCall.id":      identifier,
		"ToolCall.tool":    identifier,
		"ToolCall.traceId": identifier,

		"ToolResult.callId": identifier,
		"ToolResult.tool":   identifier,
		"ToolResult.status": oneOf(contract.StatusSucceeded, contract.StatusDenied, contract.StatusFailed),

		"ProtocolError.code":      texts(contract.MaxCode),
		"ProtocolError.message":   texts(contract.MaxMessage),
		"ProtocolError.retryable": boolean,
	}
}

func namespaceRules() map[string]rule {
	count := integer(0, contract.MaxNamespaces)
	return map[string]rule{
		"ToolNamespaceUpdate.enable":    unique(list(0, contract.MaxNamespaces)),
		"ToolNamespaceUpdate.enable[]":  identifier,
		"ToolNamespaceUpdate.disable":   unique(list(0, contract.MaxNamespaces)),
		"ToolNamespaceUpdate.disable[]": identifier,

		"ToolNamespaceCatalog.namespaces": list(0, contract.MaxNamespaces),
		"ToolNamespaceEntry.namespace":    identifier,
		"ToolNamespaceEntry.sources":      unique(list(1, contract.MaxListEntries)),
		"ToolNamespaceEntry.sources[]":    identifier,
		"ToolNamespaceEntry.toolCount":    atLeast(1),
		"ToolNamespaceEntry.enabled":      boolean,
		"ToolNamespaceSummary.total":      count,
		"ToolNamespaceSummary.enabled":    count,
		"ToolNamespaceSummary.disabled":   count,
	}
}

func operationRules() map[string]rule {
	return map[string]rule{
		"RemoteResourceOperation.operationId": identifier,
		"RemoteResourceOperation.action":      texts(contract.MaxAction),

		"ResourceResult.operationId": identifier,
		"ResourceResult.status":      oneOf(contract.StatusSucceeded, contract.StatusDenied, contract.StatusFailed),

		"MessageEnvelope.version": version,
		"MessageEnvelope.id":      identifier,
		"MessageEnvelope.purpose": texts(contract.MaxPurpose),
		"MessageEnvelope.traceId": identifier,
		"MessageEnvelope.replyTo": identifier,
		"Provenance.source":       identifier,
		"Provenance.parentIds":    list(0, contract.MaxListEntries),
		"Provenance.parentIds[]":  identifier,

		"MessageDeliveryResult.messageId": identifier,
		"MessageDeliveryResult.status": oneOf(
			contract.DeliveryAccepted, contract.DeliveryDelivered, contract.DeliveryDenied, contract.DeliveryFailed),
	}
}

func turnRules() map[string]rule {
	return map[string]rule{
		"RemoteExecutionRequest.version":     version,
		"RemoteExecutionRequest.executionId": identifier,
		"ExecutionOptions.maxSteps":          integer(1, contract.MaxSteps),
		"ExecutionOptions.maxToolCalls":      integer(1, contract.MaxToolCalls),
		"ExecutionOptions.timeoutMs":         integer(1, contract.MaxTimeoutMs),

		"ExecutionResult.version":     version,
		"ExecutionResult.executionId": identifier,
		"ExecutionResult.traceId":     identifier,
		"ExecutionResult.status": oneOf(contract.StatusSucceeded, contract.StatusDenied, contract.StatusFailed,
			contract.StatusCancelled, contract.StatusEscalated),
		"ExecutionResult.events": func() schema { return schema{"type": "array"} },

		"ExecutionEvent.version":     version,
		"ExecutionEvent.eventId":     identifier,
		"ExecutionEvent.executionId": identifier,
		"ExecutionEvent.traceId":     identifier,
		"ExecutionEvent.sequence":    atLeast(0),
		"ExecutionEvent.type": oneOf(contract.EventTurnStarted, contract.EventToolRequested, contract.EventToolCompleted,
			contract.EventRuntime, contract.EventTurnCompleted, contract.EventTurnEscalated, contract.EventTurnFailed,
			contract.EventTurnDenied, contract.EventTurnCancelled),

		"Escalation.reason": texts(contract.MaxReason),
		"Escalation.status": oneOf(contract.EscalationPending),
	}
}

// transportRules are the limits of what only this package defines.
func transportRules() map[string]rule {
	return map[string]rule{
		"health.status":          oneOf("ok"),
		"health.protocolVersion": version,
		"errorDetail.code":       texts(contract.MaxCode),
		"errorDetail.message":    texts(contract.MaxMessage),
		"errorDetail.requestId":  identifier,
	}
}

// anyValue reports whether a field of raw JSON takes any value, not only an object.
func anyValue(where string) bool {
	switch where {
	case "ToolResult.output", "ResourceResult.output", "ExecutionResult.output",
		"RemoteResourceOperation.input", "RemoteExecutionRequest.state", "MessageEnvelope.payload":
		return true
	default:
		return false
	}
}

// recordRules are what a whole object adds to its fields.
func recordRules() map[string]schema {
	return map[string]schema{
		"ToolNamespaceUpdate": {
			"description": "At least one namespace; none may be in both lists.",
			"anyOf":       []schema{some("enable"), some("disable")},
		},
	}
}

func some(field string) schema {
	return schema{"required": []string{field}, "properties": schema{field: schema{"minItems": 1}}}
}
