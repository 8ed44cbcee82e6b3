package contract

// ReadWrite classes a tool.
type ReadWrite string

// The two classes.
const (
	ClassRead  ReadWrite = "read"
	ClassWrite ReadWrite = "write"
)

// ToolAnnotations are the definition's own hints; absent means not stated.
type ToolAnnotations struct {
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
}

// ToolDefinition is the management view of a tool. RequiredCapability is the
// ceiling used for discovery; a call is authorized on its exact requirement.
type ToolDefinition struct {
	Name               string                `json:"name"`
	Description        string                `json:"description"`
	Namespace          string                `json:"namespace"`
	Source             string                `json:"source"`
	ReadWrite          ReadWrite             `json:"readWrite"`
	InputSchema        Object                `json:"inputSchema"`
	OutputSchema       Object                `json:"outputSchema,omitempty"`
	RequiredCapability CapabilityRequirement `json:"requiredCapability"`
	Annotations        *ToolAnnotations      `json:"annotations,omitempty"`
	Metadata           Object                `json:"metadata,omitempty"`
}

// ToolCall is one invocation as the kernel sees it.
type ToolCall struct {
	ID          string    `json:"id"`
	Tool        string    `json:"tool"`
	Arguments   Object    `json:"arguments"`
	TraceID     string    `json:"traceId"`
	RequestedAt Timestamp `json:"requestedAt"`
}

// Status is how an operation or a turn ended.
type Status string

// Every status; tools and resources use the first three.
const (
	StatusSucceeded Status = "succeeded"
	StatusDenied    Status = "denied"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusEscalated Status = "escalated"
)

// ProtocolError is a refusal or a failure as a caller may see it.
type ProtocolError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty"`
	Details   Object `json:"details,omitempty"`
}

// ToolResult answers one [ToolCall]: Output when succeeded, Error otherwise.
type ToolResult struct {
	CallID      string         `json:"callId"`
	Tool        string         `json:"tool"`
	Status      Status         `json:"status"`
	Output      Value          `json:"output,omitempty"`
	Error       *ProtocolError `json:"error,omitempty"`
	CompletedAt Timestamp      `json:"completedAt"`
	Metadata    Object         `json:"metadata,omitempty"`
}

// PublishedAnnotations are MCP's hints.
type PublishedAnnotations struct {
	ReadOnlyHint    *bool `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool `json:"openWorldHint,omitempty"`
}

// PublishedMetadata is a tool's provenance.
type PublishedMetadata struct {
	Namespace string `json:"namespace,omitempty"`
	Source    string `json:"source,omitempty"`
}

// PublishedTool is all of a tool that may cross to a harness.
type PublishedTool struct {
	Name         string                `json:"name"`
	Description  string                `json:"description"`
	InputSchema  Object                `json:"inputSchema"`
	OutputSchema Object                `json:"outputSchema,omitempty"`
	Annotations  *PublishedAnnotations `json:"annotations,omitempty"`
	Metadata     *PublishedMetadata    `json:"metadata,omitempty"`
}

// MaxCatalogueTools is the most tools one catalogue may hold.
const MaxCatalogueTools = 512

// Catalogue is what one turn may see, sorted by name.
type Catalogue struct {
	Version     string          `json:"version"`
	ExecutionID string          `json:"executionId"`
	CatalogHash string          `json:"catalogHash"`
	Tools       []PublishedTool `json:"tools"`
}

// ToolNamespaceUpdate narrows or restores a caller's tool namespaces.
type ToolNamespaceUpdate struct {
	Enable  []string `json:"enable,omitempty"`
	Disable []string `json:"disable,omitempty"`
}

// ToolNamespaceEntry describes one tool namespace.
type ToolNamespaceEntry struct {
	Namespace string   `json:"namespace"`
	Sources   []string `json:"sources"`
	ToolCount int      `json:"toolCount"`
	Enabled   bool     `json:"enabled"`
}

// ToolNamespaceSummary counts the entries of a [ToolNamespaceCatalog].
type ToolNamespaceSummary struct {
	Total    int `json:"total"`
	Enabled  int `json:"enabled"`
	Disabled int `json:"disabled"`
}

// ToolNamespaceCatalog lists tool namespaces with a summary.
type ToolNamespaceCatalog struct {
	Namespaces []ToolNamespaceEntry `json:"namespaces"`
	Summary    ToolNamespaceSummary `json:"summary"`
}
