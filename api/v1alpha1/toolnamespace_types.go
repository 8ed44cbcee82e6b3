package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePlane is a family of resources that a provider serves.
//
// +kubebuilder:validation:Enum=files;repo
type ResourcePlane string

// The planes.
const (
	// PlaneFiles is the plane of files and folders.
	PlaneFiles ResourcePlane = "files"
	// PlaneRepo is the plane of version-controlled repositories.
	PlaneRepo ResourcePlane = "repo"
)

// BuiltinSource is a family of tools that the kernel itself offers.
//
// +kubebuilder:validation:Enum=messages;sharedos
type BuiltinSource string

// The built-in families.
const (
	// BuiltinMessages offers messages.request.
	BuiltinMessages BuiltinSource = "messages"
	// BuiltinSharedOS offers sharedos.escalate.
	BuiltinSharedOS BuiltinSource = "sharedos"
)

// MCPSource is an upstream MCP server. The kernel is its only client.
type MCPSource struct {
	Endpoint `json:",inline"`
}

// ProviderSource is a resource provider: a server that answers a
// ResourceOperation with a ResourceResult.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.url) || self.url.startsWith('https://')) && (!has(self.service) || !has(self.service.scheme) || self.service.scheme == 'https')",message="a provider is reached over https only, because it authenticates the kernel by certificate"
type ProviderSource struct {
	Endpoint `json:",inline"`

	// plane that the provider serves. MUST be files or repo.
	//
	// +required
	Plane ResourcePlane `json:"plane"`
}

// ToolSource says where the tools of a namespace come from. Exactly one of mcp,
// provider and builtin MUST be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.mcp), has(self.provider), has(self.builtin)].filter(x, x).size() == 1",message="exactly one of mcp, provider and builtin must be set"
type ToolSource struct {
	// mcp is an upstream MCP server, whose tools are declared in spec.tools.
	//
	// +optional
	MCP *MCPSource `json:"mcp,omitempty"`

	// provider is a resource provider; the tools are those of its plane.
	//
	// +optional
	Provider *ProviderSource `json:"provider,omitempty"`

	// builtin are tools of the kernel itself. MUST be messages or sharedos.
	//
	// +optional
	Builtin BuiltinSource `json:"builtin,omitempty"`
}

// ToolNamespaceSpec says where a family of tools comes from, whether it is on
// and for whom. It is product control, never authority.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || self.tools.size() == 0 || has(self.source.mcp)",message="tools may be declared only for an mcp source",fieldPath=".tools"
type ToolNamespaceSpec struct {
	// enabled offers the tools. Absent means false: the namespace is invisible
	// and its tools are refused.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// principalSelector chooses the Principals that the tools are offered to.
	// Absent or empty selects every Principal of the namespace.
	//
	// +optional
	PrincipalSelector *PrincipalSelector `json:"principalSelector,omitempty"`

	// source of the tools.
	//
	// +required
	Source ToolSource `json:"source"`

	// tools of an mcp source. An upstream tool without an entry is not published.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Tools []ToolDeclaration `json:"tools,omitempty"`
}

// ToolNamespace is a family of tools: where it comes from, whether it is on. The
// name of the object is the tool namespace of the protocol, so it is a single
// label without dots; for a provider it MUST be the plane's name and for a
// builtin source that family's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=toolnamespaces,singular=toolnamespace,scope=Namespaced,shortName=tns,categories=sharedos
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="metadata.name must be a single label of at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.provider) || self.metadata.name == self.spec.source.provider.plane",message="metadata.name must be the name of the provider's plane"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.builtin) || self.metadata.name == self.spec.source.builtin",message="metadata.name must be the name of the builtin source"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.mcp) || !(self.metadata.name in ['files', 'repo', 'messages', 'sharedos'])",message="metadata.name must not be files, repo, messages or sharedos for an mcp source"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tools) || self.spec.tools.all(t, t.name.startsWith(self.metadata.name + '.'))",message="the name of a tool must begin with the name of its namespace and a dot",fieldPath=".spec.tools"
// +kubebuilder:printcolumn:name="Enabled",type=boolean,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].status`
// +kubebuilder:printcolumn:name="Tools",type=integer,JSONPath=`.status.toolCount`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Discovered",type=date,JSONPath=`.status.lastDiscovered`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolNamespace struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the tool namespace.
	//
	// +required
	Spec ToolNamespaceSpec `json:"spec"`

	// status is what the controller found.
	//
	// +optional
	Status ToolNamespaceStatus `json:"status,omitzero"`
}

// ToolNamespaceList is a list of ToolNamespaces.
//
// +kubebuilder:object:root=true
type ToolNamespaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []ToolNamespace `json:"items"`
}
