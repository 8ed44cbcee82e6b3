package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of what a Turn's status holds inline. What is larger goes into a
// ConfigMap that the status names.
const (
	// MaxInlineGrants is how many grants an admission lists.
	MaxInlineGrants = 64
	// MaxInlineOutput is how many bytes of output a status holds.
	MaxInlineOutput = 32 << 10
	// MaxReferencedOutput is how many bytes of output a ConfigMap holds. Longer
	// output is cut there.
	MaxReferencedOutput = 900 << 10
	// MaxFirstEvents is how many of the first events a status lists.
	MaxFirstEvents = 32
	// MaxLastEvents is how many of the last events a status lists.
	MaxLastEvents = 96
	// MaxRefusals is how many of the first denied calls a status lists.
	MaxRefusals = 32
	// MaxRequiredAuthority is how many bytes of what one of them needed a status
	// holds.
	MaxRequiredAuthority = 2048
)

// GrantReference names one generation of one Grant.
type GrantReference struct {
	// name of the Grant.
	//
	// +required
	Name ObjectName `json:"name"`

	// uid of the Grant. Another Grant of the same name is another authority.
	//
	// +required
	UID UID `json:"uid"`

	// generation of the Grant that was loaded.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`
}

// AdmittedContext is the identity that a turn was admitted with. Later edits of
// the Principal do not change it.
type AdmittedContext struct {
	// actor is who acts.
	//
	// +required
	Actor Address `json:"actor"`

	// authority is whose grants are exercised.
	//
	// +required
	Authority Address `json:"authority"`

	// owner is whose resources are touched.
	//
	// +required
	Owner Address `json:"owner"`

	// purpose that the turn declared.
	//
	// +required
	Purpose Purpose `json:"purpose"`

	// enabledToolNamespaces are the names of the ToolNamespaces that were on for
	// the Principal.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	EnabledToolNamespaces []LabelName `json:"enabledToolNamespaces,omitempty"`
}

// TurnAdmission is what a turn was admitted with.
type TurnAdmission struct {
	// at is the instant of admission, at which grants are judged.
	//
	// +required
	At metav1.MicroTime `json:"at"`

	// context that the turn acts in.
	//
	// +optional
	Context *AdmittedContext `json:"context,omitempty"`

	// options that bound the turn, with every default filled in.
	//
	// +optional
	Options *ExecutionOptions `json:"options,omitempty"`

	// authorityHash is the digest of the grants that were loaded.
	//
	// +required
	AuthorityHash Digest `json:"authorityHash"`

	// grants that were loaded, the first 64 by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Grants []GrantReference `json:"grants,omitempty"`

	// grantCount is how many grants were loaded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	GrantCount int32 `json:"grantCount"`

	// grantsRef names the ConfigMap that lists every grant when there are more
	// than 64.
	//
	// +optional
	GrantsRef *LocalReference `json:"grantsRef,omitempty"`

	// catalogHash is the digest of the catalogue that the turn is served.
	//
	// +required
	CatalogHash Digest `json:"catalogHash"`

	// toolCount is how many tools the catalogue holds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=512
	ToolCount int32 `json:"toolCount"`

	// deadline is when the turn is cancelled. It is set when the bridge is ready,
	// because the turn's time counts from then.
	//
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`

	// policyHash is the digest of the Harness's tool policy.
	//
	// +optional
	PolicyHash Digest `json:"policyHash,omitempty"`
}

// TurnCheckpoint holds counters that are at least what the turn has used, so
// that a manager that takes over never gives back a budget.
type TurnCheckpoint struct {
	// at is when the checkpoint was written.
	//
	// +required
	At metav1.MicroTime `json:"at"`

	// toolCalls that count against the budget, rounded up.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ToolCalls int64 `json:"toolCalls"`

	// denied calls so far.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Denied int64 `json:"denied"`

	// steps that were seen, rounded up.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Steps int64 `json:"steps"`

	// nextSequence is the sequence number of the next event.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NextSequence int64 `json:"nextSequence"`

	// effects says that a call which is neither read nor idempotent may have had
	// an effect, so that the turn must not be repeated.
	//
	// +optional
	Effects bool `json:"effects,omitempty"`
}

// DataReference names one key of a ConfigMap in the same namespace.
type DataReference struct {
	// name of the ConfigMap.
	//
	// +required
	Name ObjectName `json:"name"`

	// key inside it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// TurnOutput is what the agent left.
type TurnOutput struct {
	// output of the agent, up to 32 KiB. It is the text itself when outputFormat
	// is text, and JSON text when it is json.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Output *string `json:"output,omitempty"`

	// outputFormat says how output is read. MUST be text or json.
	//
	// +optional
	OutputFormat OutputFormat `json:"outputFormat,omitempty"`

	// outputRef names the ConfigMap that holds an output of more than 32 KiB, up
	// to 900 KiB.
	//
	// +optional
	OutputRef *DataReference `json:"outputRef,omitempty"`

	// outputTruncated says that the output was longer and was cut.
	//
	// +optional
	OutputTruncated bool `json:"outputTruncated,omitempty"`

	// outputSize is the size of the whole output in bytes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	OutputSize *int64 `json:"outputSize,omitempty"`

	// outputSHA256 is the digest of the whole output.
	//
	// +optional
	OutputSHA256 Digest `json:"outputSHA256,omitempty"`
}

// EventType is the type of one entry in a turn's record.
//
// +kubebuilder:validation:Enum=turn.started;tool.requested;tool.completed;runtime.event;turn.completed;turn.escalated;turn.failed;turn.denied;turn.cancelled
type EventType string

// TurnEvent is one entry in a turn's record. Arguments, outputs and payloads
// never appear in it.
type TurnEvent struct {
	// sequence of the event: 0 for the first, without gaps.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Sequence int64 `json:"sequence"`

	// eventId of the event.
	//
	// +required
	EventID Identifier `json:"eventId"`

	// type of the event.
	//
	// +required
	Type EventType `json:"type"`

	// occurredAt is when it happened.
	//
	// +required
	OccurredAt metav1.MicroTime `json:"occurredAt"`

	// data of the event, as the text of a JSON object. Data of more than 4096
	// characters is only in the ConfigMap.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Data JSONText `json:"data,omitempty"`
}

// TurnEvents is an excerpt of a turn's record.
type TurnEvents struct {
	// count of all events.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int64 `json:"count"`

	// items are the first 32 and the last 96 events in order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Items []TurnEvent `json:"items,omitempty"`

	// ref names the ConfigMap that holds every event.
	//
	// +optional
	Ref *LocalReference `json:"ref,omitempty"`
}

// TurnRefusal is one call that was denied, with what it would have needed. It
// grants nothing, and of the call's arguments it holds the place alone.
type TurnRefusal struct {
	// callId of the call, as its events name it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=256
	CallID string `json:"callId"`

	// tool that was called, which need not exist.
	//
	// +required
	// +kubebuilder:validation:MaxLength=256
	Tool string `json:"tool"`

	// code of the refusal. Example: "no_matching_grant".
	//
	// +required
	// +kubebuilder:validation:MaxLength=128
	Code string `json:"code"`

	// requiredAuthority is what the call needed, as the text of a JSON
	// CapabilityRequest: the action, the place, the purpose and who asked. For a
	// tool that no Grant opens it is the place below which some Grant would have to
	// reach. It describes authority and is none. Absent for a call that was refused
	// before that was known, as by a budget, and for one whose text has more than
	// 2048 bytes; the audit log has those of the latter.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RequiredAuthority JSONText `json:"requiredAuthority,omitempty"`
}
