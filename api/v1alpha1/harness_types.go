package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HarnessType is the program that runs the agent's loop. It decides which
// connection file the pod finds.
//
// +kubebuilder:validation:Enum=claude-code;codex;deepseek;pi;custom
type HarnessType string

// The types of harness.
const (
	// HarnessClaudeCode is Claude Code: .mcp.json.
	HarnessClaudeCode HarnessType = "claude-code"
	// HarnessCodex is Codex CLI: config.toml.
	HarnessCodex HarnessType = "codex"
	// HarnessDeepSeek is DeepSeek Harness: cordis.patch.yml.
	HarnessDeepSeek HarnessType = "deepseek"
	// HarnessPi is Pi: .mcp.json.
	HarnessPi HarnessType = "pi"
	// HarnessCustom is any other program; it finds the endpoint in SHAREDOS_MCP_URL.
	HarnessCustom HarnessType = "custom"
)

// OutputFormat says how a harness's standard output is read.
//
// +kubebuilder:validation:Enum=text;json
type OutputFormat string

// The formats.
const (
	// OutputText is plain text.
	OutputText OutputFormat = "text"
	// OutputJSON is one JSON value.
	OutputJSON OutputFormat = "json"
)

// ToolPolicyMode says whether tools that SharedOS does not manage may exist.
//
// +kubebuilder:validation:Enum=strict;hybrid
type ToolPolicyMode string

// The modes.
const (
	// ToolPolicyStrict allows no external tools. It is enforced: the pod's
	// network reaches DNS, the kernel and modelEgress, nothing else.
	ToolPolicyStrict ToolPolicyMode = "strict"
	// ToolPolicyHybrid allows the external tools that the policy lists.
	ToolPolicyHybrid ToolPolicyMode = "hybrid"
)

// ToolPolicy declares which tools a harness has besides those SharedOS gives it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'strict' || !has(self.externalDirect) || self.externalDirect.size() == 0",message="a strict policy cannot list external servers"
type ToolPolicy struct {
	// mode of the policy. MUST be strict or hybrid. Absent means strict when
	// externalDirect is empty and hybrid otherwise.
	//
	// +optional
	Mode ToolPolicyMode `json:"mode,omitempty"`

	// managedMcp are the MCP servers that SharedOS serves. Absent means ["sharedos"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ManagedMCP []Identifier `json:"managedMcp,omitempty"`

	// harnessLocal are the harness's own tools, which SharedOS never sees.
	// Example: ["Read", "Bash"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	HarnessLocal []Identifier `json:"harnessLocal,omitempty"`

	// externalDirect are MCP servers that the harness reaches by itself. MUST be
	// empty when mode is strict.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExternalDirect []Identifier `json:"externalDirect,omitempty"`
}

// ModelEgress is one network that the agent's own model is reached in.
type ModelEgress struct {
	// cidr of the network. Host names cannot be enforced by a NetworkPolicy.
	// Examples: "192.0.2.0/24", "2001:db8::/32".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a CIDR without host bits, such as 192.0.2.0/24"
	CIDR string `json:"cidr"`

	// ports that are reached over TCP. Example: [443].
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports"`
}

// HarnessDefaults are used for what a Turn does not say.
type HarnessDefaults struct {
	ExecutionOptions `json:",inline"`

	// startTimeoutMs is how long a pod may take, in milliseconds, until the
	// bridge is ready. The turn's own time counts from then. Absent means 120000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	StartTimeoutMs *int64 `json:"startTimeoutMs,omitempty"`

	// ttlSecondsAfterFinished is how long a finished Turn is kept. Absent means
	// forever.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// HarnessSpec says how an agent is run.
type HarnessSpec struct {
	// type of the harness. MUST be claude-code, codex, deepseek, pi or custom.
	//
	// +required
	Type HarnessType `json:"type"`

	// template of the pods, as in a Job. It MUST have one container named harness
	// that sets command. Its schema is that of the cluster it is applied to, so
	// it is checked by a dry run and not by this resource; the condition Ready
	// tells the result.
	//
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`

	// output says how standard output is read. MUST be text or json. Absent means
	// text.
	//
	// +optional
	Output OutputFormat `json:"output,omitempty"`

	// toolPolicy declares which tools the harness has besides those SharedOS
	// gives it. Absent means strict.
	//
	// +optional
	ToolPolicy *ToolPolicy `json:"toolPolicy,omitempty"`

	// modelEgress are the networks that the agent's own model is reached in.
	// Absent means none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ModelEgress []ModelEgress `json:"modelEgress,omitempty"`

	// defaults for what a Turn does not say.
	//
	// +optional
	Defaults *HarnessDefaults `json:"defaults,omitempty"`
}

// HarnessStatus is what was found out about a Harness.
type HarnessStatus struct {
	// observedGeneration is the generation of spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the Harness. Known type: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Harness says how to run an agent. Editing it changes the turns that start
// afterwards.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=harnesses,singular=harness,scope=Namespaced,shortName=hrn,categories=sharedos
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Output",type=string,JSONPath=`.spec.output`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.toolPolicy.mode`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Harness struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how the agent is run.
	//
	// +required
	Spec HarnessSpec `json:"spec"`

	// status is what the controller found.
	//
	// +optional
	Status HarnessStatus `json:"status,omitzero"`
}

// HarnessList is a list of Harnesses.
//
// +kubebuilder:object:root=true
type HarnessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []Harness `json:"items"`
}
