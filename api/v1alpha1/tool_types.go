package v1alpha1

// ToolAccess classes a tool by what it does to the world.
//
// +kubebuilder:validation:Enum=read;write
type ToolAccess string

// The classes.
const (
	// ToolRead only looks.
	ToolRead ToolAccess = "read"
	// ToolWrite changes something.
	ToolWrite ToolAccess = "write"
)

// RequiredResource says how a call's arguments name the resource it touches.
type RequiredResource struct {
	// namespace of the resource: the plane that grants speak of. Namespaces that
	// begin with "sharedos" are the kernel's own and refused. Example: "notion".
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'sharedos' && !self.startsWith('sharedos.')",message="resource namespaces that begin with sharedos are reserved"
	Namespace Identifier `json:"namespace"`

	// path is a CEL expression over args, the parsed arguments of the call. It
	// MUST yield a list of strings, each a valid path segment, that begins with
	// ceiling. It is compiled when the object is reconciled and runs under a cost
	// limit. Example: "['pages', args.pageId]".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// ceiling is the constant path that every call of this tool stays under. An
	// argument that leads elsewhere fails the call. Absent means the root of the
	// plane. Example: ["pages"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Ceiling []PathSegment `json:"ceiling,omitempty"`
}

// ToolRequirement is the authority that a call needs.
type ToolRequirement struct {
	// action that the caller must be granted. "*" is no action.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self != '*'",message="a requirement names one action"
	Action Action `json:"action"`

	// resource that the caller must be granted the action on.
	//
	// +required
	Resource RequiredResource `json:"resource"`
}

// ToolDeclaration publishes one tool of an upstream MCP server and says what
// authority its calls need.
//
// +kubebuilder:validation:XValidation:rule="self.readWrite != 'read' || !has(self.destructive) || !self.destructive",message="a read tool cannot be destructive"
type ToolDeclaration struct {
	// name under which the tool is published: the name of the ToolNamespace, a
	// dot and a verb. Example: "notion.search".
	//
	// +required
	Name ToolName `json:"name"`

	// upstream is the name of the tool at the MCP server. Example: "API-post-search".
	//
	// +required
	Upstream Identifier `json:"upstream"`

	// schemaDigest pins the upstream tool's input schema: the SHA-256 of its
	// canonical JSON. A tool whose schema has another digest is not published, so
	// an upstream cannot add an argument that redirects a call. Absent means not
	// yet reviewed: the tool is not published, and status.tools shows the digest
	// to pin.
	//
	// +optional
	SchemaDigest Digest `json:"schemaDigest,omitempty"`

	// description that models read. Absent means the upstream's own.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Description string `json:"description,omitempty"`

	// readWrite classes the tool. MUST be read or write. The upstream's own hints
	// are not trusted.
	//
	// +required
	ReadWrite ToolAccess `json:"readWrite"`

	// destructive says that a call may destroy what it touches. MUST NOT be true
	// for a read tool. Absent means not stated.
	//
	// +optional
	Destructive *bool `json:"destructive,omitempty"`

	// idempotent says that a call may be repeated without further effect. Only
	// read and idempotent tools are tried again after a lost connection. Absent
	// means not stated, and the tool is not tried again.
	//
	// +optional
	Idempotent *bool `json:"idempotent,omitempty"`

	// requirement is the authority that a call needs. There is no default.
	//
	// +required
	Requirement ToolRequirement `json:"requirement"`
}
