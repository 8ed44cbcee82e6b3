package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToolReason says why a tool is published or not.
//
// +kubebuilder:validation:Enum=Published;NotDeclared;UpstreamMissing;SchemaNotPinned;SchemaChanged;SchemaInvalid;RequirementInvalid;NameConflict
type ToolReason string

// The reasons of a tool.
const (
	// ToolPublished means that the tool is published.
	ToolPublished ToolReason = "Published"
	// ToolNotDeclared means that the upstream offers it and spec.tools does not name it.
	ToolNotDeclared ToolReason = "NotDeclared"
	// ToolUpstreamMissing means that spec.tools names it and the upstream does not offer it.
	ToolUpstreamMissing ToolReason = "UpstreamMissing"
	// ToolSchemaNotPinned means that its declaration has no schemaDigest yet.
	ToolSchemaNotPinned ToolReason = "SchemaNotPinned"
	// ToolSchemaChanged means that the upstream's schema has another digest than the pinned one.
	ToolSchemaChanged ToolReason = "SchemaChanged"
	// ToolSchemaInvalid means that the upstream's schema cannot be used, for
	// example because it holds a number that cannot be hashed without doubt.
	ToolSchemaInvalid ToolReason = "SchemaInvalid"
	// ToolRequirementInvalid means that the path expression does not compile or costs too much.
	ToolRequirementInvalid ToolReason = "RequirementInvalid"
	// ToolNameConflict means that another namespace publishes a tool of that name.
	ToolNameConflict ToolReason = "NameConflict"
)

// ToolStatus is what was found out about one tool.
type ToolStatus struct {
	// name under which the tool is or would be published. Absent for an upstream
	// tool that is not declared.
	//
	// +optional
	Name ToolName `json:"name,omitempty"`

	// upstream is the tool's name at the MCP server. Absent for other sources.
	//
	// +optional
	Upstream Identifier `json:"upstream,omitempty"`

	// schemaDigest is the SHA-256 of the canonical JSON of the input schema that
	// was found. Pin it in spec.tools after reading the schema.
	//
	// +optional
	SchemaDigest Digest `json:"schemaDigest,omitempty"`

	// published says whether the tool can be in a catalogue.
	//
	// +required
	Published bool `json:"published"`

	// reason why the tool is published or not.
	//
	// +required
	Reason ToolReason `json:"reason"`

	// message that explains the reason to a person.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ToolNamespaceStatus is what was found out about a ToolNamespace.
type ToolNamespaceStatus struct {
	// observedGeneration is the generation of spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// toolCount is how many tools are published.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ToolCount *int32 `json:"toolCount,omitempty"`

	// sources that the published tools come from, as the protocol names them.
	// Example: ["mcp"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Sources []Identifier `json:"sources,omitempty"`

	// tools that were declared or discovered, sorted by name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Tools []ToolStatus `json:"tools,omitempty"`

	// lastDiscovered is when the source was last asked for its tools with success. It
	// is written with other changes, and otherwise at most every five minutes.
	//
	// +optional
	LastDiscovered *metav1.Time `json:"lastDiscovered,omitempty"`

	// conditions of the ToolNamespace. Known types: Ready, Connected.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a ToolNamespace.
const (
	// ToolNamespaceReady says whether turns can be given the tools. While it is
	// not True, turns that would get them are refused (tool_catalog_unavailable);
	// they never get a part of the list. A namespace that is not enabled is Ready
	// when it could be enabled.
	ToolNamespaceReady ConditionType = "Ready"

	// ToolNamespaceConnected says whether the source answered when last asked.
	ToolNamespaceConnected ConditionType = "Connected"
)

// Reasons of [ToolNamespaceReady] when it is True.
const (
	// ToolNamespaceReasonAvailable means that every declared tool is published.
	ToolNamespaceReasonAvailable ConditionReason = "Available"

	// ToolNamespaceReasonPartlyPublished means that the source answered and some
	// declared tools are withheld; status.tools says which and why.
	ToolNamespaceReasonPartlyPublished ConditionReason = "PartlyPublished"
)

// Reasons of [ToolNamespaceReady] when it is False.
const (
	// ToolNamespaceReasonSourceUnavailable means that the source cannot be used
	// now; the condition Connected says why.
	ToolNamespaceReasonSourceUnavailable ConditionReason = "SourceUnavailable"

	// ToolNamespaceReasonTooManyTools means that the source offers more tools
	// than a status can list.
	ToolNamespaceReasonTooManyTools ConditionReason = "TooManyTools"

	// ToolNamespaceReasonNameConflict means that another ToolNamespace of this
	// namespace has a tool of the same name. Neither is chosen; rename one.
	ToolNamespaceReasonNameConflict ConditionReason = "NameConflict"

	// ToolNamespaceReasonSelectorInvalid means that principalSelector cannot be evaluated.
	ToolNamespaceReasonSelectorInvalid ConditionReason = "SelectorInvalid"
)

// Reasons of [ToolNamespaceConnected] when it is True.
const (
	// ToolNamespaceReasonConnected means that the source answered. A builtin source
	// always does.
	ToolNamespaceReasonConnected ConditionReason = "Connected"
)

// Reasons of [ToolNamespaceConnected] when it is False.
const (
	// ToolNamespaceReasonConnectionFailed means that the endpoint did not answer.
	ToolNamespaceReasonConnectionFailed ConditionReason = "ConnectionFailed"

	// ToolNamespaceReasonAddressRefused means that the endpoint's address is one that
	// the platform team does not let the manager dial.
	ToolNamespaceReasonAddressRefused ConditionReason = "AddressRefused"

	// ToolNamespaceReasonDiscoveryFailed means that the endpoint answered and its
	// answer is no list of tools.
	ToolNamespaceReasonDiscoveryFailed ConditionReason = "DiscoveryFailed"

	// ToolNamespaceReasonCredentialsNotFound means that a Secret or ConfigMap, or
	// a key in it, does not exist.
	ToolNamespaceReasonCredentialsNotFound ConditionReason = "CredentialsNotFound"

	// ToolNamespaceReasonCredentialsInvalid means that a certificate or a header
	// value cannot be used, or that the endpoint did not accept it.
	ToolNamespaceReasonCredentialsInvalid ConditionReason = "CredentialsInvalid"
)

// Reasons of [ToolNamespaceReady] and [ToolNamespaceConnected] when they are Unknown.
const (
	// ToolNamespaceReasonPending means that the ToolNamespace was not examined yet.
	ToolNamespaceReasonPending ConditionReason = "Pending"
)
