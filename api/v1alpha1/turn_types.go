package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExecutionOptions bound one turn. They are validated and never clamped.
type ExecutionOptions struct {
	// maxSteps is how many steps of its loop the agent may take, 1 to 1000.
	// Absent means 16.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxSteps *int64 `json:"maxSteps,omitempty"`

	// maxToolCalls is how many tool calls the turn may make, 1 to 10000. Absent
	// means maxSteps.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxToolCalls *int64 `json:"maxToolCalls,omitempty"`

	// timeoutMs is how long the turn may run, in milliseconds, counted from when
	// the bridge is ready, 1 to 600000. Absent means 120000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600000
	TimeoutMs *int64 `json:"timeoutMs,omitempty"`
}

// MessageProvenance says where a message came from. It is data, never authority.
type MessageProvenance struct {
	// source that the message came from. Example: "inbox".
	//
	// +required
	Source Identifier `json:"source"`

	// parentIds are the ids of messages that led to this one.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ParentIDs []Identifier `json:"parentIds,omitempty"`

	// metadata about the origin. It MUST be the text of a JSON object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Metadata JSONText `json:"metadata,omitempty"`
}

// TurnMessage is what the agent is given. Exactly one of text and payload MUST
// be set. A message never carries authority.
//
// +kubebuilder:validation:XValidation:rule="has(self.text) != has(self.payload)",message="exactly one of text and payload must be set"
type TurnMessage struct {
	// id of the message. Absent means the turn's execution id.
	//
	// +optional
	ID Identifier `json:"id,omitempty"`

	// from names the Principal that sends the message. Absent means the turn's
	// own Principal. Example: "alice".
	//
	// +optional
	From ObjectName `json:"from,omitempty"`

	// text of the message, up to 262144 characters. It is the payload
	// {"text": …} in a form that people write. Example: "When does Atlas ship?".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Text string `json:"text,omitempty"`

	// payload of the message as JSON text, up to 262144 characters, so that
	// every digit arrives. Example: '{"orderId": 9007199254740993}'.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Payload JSONText `json:"payload,omitempty"`

	// replyTo is the id of the message that this one answers.
	//
	// +optional
	ReplyTo Identifier `json:"replyTo,omitempty"`

	// provenance says where the message came from.
	//
	// +optional
	Provenance *MessageProvenance `json:"provenance,omitempty"`

	// createdAt is when the message was written. Absent means when the Turn was
	// created.
	//
	// +optional
	CreatedAt Timestamp `json:"createdAt,omitempty"`

	// traceId that the message and the whole turn are recorded under. Absent
	// means a fresh one, shown in status.traceId.
	//
	// +optional
	TraceID Identifier `json:"traceId,omitempty"`
}

// ExternalPod says which pod may run a turn that has no Harness.
type ExternalPod struct {
	// ownerUID is the UID of the object that controls the pod, for example of a
	// Job. Only a pod that this object controls may attach to the turn.
	//
	// +required
	OwnerUID UID `json:"ownerUID"`
}

// TurnSpec asks for one bounded run of one agent. All of it but cancel is
// immutable.
//
// +kubebuilder:validation:XValidation:rule="has(self.purpose) == has(oldSelf.purpose) && has(self.executionId) == has(oldSelf.executionId) && has(self.state) == has(oldSelf.state) && has(self.options) == has(oldSelf.options) && has(self.tools) == has(oldSelf.tools) && has(self.harness) == has(oldSelf.harness) && has(self.externalPod) == has(oldSelf.externalPod) && has(self.startTimeoutMs) == has(oldSelf.startTimeoutMs) && has(self.ttlSecondsAfterFinished) == has(oldSelf.ttlSecondsAfterFinished)",message="a Turn is immutable except for cancel; no field can be added or removed"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.cancel) && oldSelf.cancel) || (has(self.cancel) && self.cancel)",message="a cancelled Turn cannot be resumed; create another one",fieldPath=".cancel"
// +kubebuilder:validation:XValidation:rule="!(has(self.harness) && has(self.externalPod))",message="externalPod must not be set together with harness"
type TurnSpec struct {
	// principal names the Principal that acts. Its address MUST be an agent.
	// Example: "alice-assistant".
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Principal ObjectName `json:"principal"`

	// purpose that the turn declares. MUST be one of the Principal's purposes.
	// Absent means the first of them.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Purpose Purpose `json:"purpose,omitempty"`

	// executionId of the turn, chosen by its creator. Absent means the Turn's UID.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	ExecutionID Identifier `json:"executionId,omitempty"`

	// message that the agent is given.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Message TurnMessage `json:"message"`

	// state to resume from, as JSON text, up to 262144 characters. SharedOS hands
	// it to the agent and does not read it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	State JSONText `json:"state,omitempty"`

	// options that bound the turn. What is absent comes from the Harness.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Options *ExecutionOptions `json:"options,omitempty"`

	// tools that are asked for, by name. The agent is given those of them that it
	// is also allowed. Absent means every tool that is allowed; an empty list
	// means none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Tools []ToolName `json:"tools,omitzero"`

	// harness names the Harness that runs the agent. Absent means that somebody
	// else brings the pod, labelled sharedos.dev/turn with the Turn's name.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	Harness ObjectName `json:"harness,omitempty"`

	// externalPod says which pod somebody else brings. MUST NOT be set together
	// with harness. With neither, the pod's creator needs the verb use on the
	// Principal.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	ExternalPod *ExternalPod `json:"externalPod,omitempty"`

	// startTimeoutMs is how long the pod may take, in milliseconds, until the
	// bridge is ready, 1 to 3600000. Absent means what the Harness says.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	StartTimeoutMs *int64 `json:"startTimeoutMs,omitempty"`

	// ttlSecondsAfterFinished is how long the finished Turn is kept. Absent means
	// what the Harness says.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Turn is immutable except for cancel"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// cancel ends the turn. Once true it cannot be unset.
	//
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// Turn is one bounded run of one agent. Its name has at most 63 characters,
// because pods carry it in a label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=turns,singular=turn,scope=Namespaced,shortName=trn,categories=sharedos
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters"
// +kubebuilder:selectablefield:JSONPath=`.spec.executionId`
// +kubebuilder:selectablefield:JSONPath=`.spec.principal`
// +kubebuilder:printcolumn:name="Principal",type=string,JSONPath=`.spec.principal`
// +kubebuilder:printcolumn:name="Harness",type=string,JSONPath=`.spec.harness`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Finished")].reason`
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=`.status.error.code`
// +kubebuilder:printcolumn:name="Tools",type=integer,JSONPath=`.status.admission.toolCount`
// +kubebuilder:printcolumn:name="Calls",type=integer,JSONPath=`.status.usage.toolCalls`
// +kubebuilder:printcolumn:name="Denied",type=integer,JSONPath=`.status.usage.denied`,priority=1
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.pod.name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Turn struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec asks for the run.
	//
	// +required
	Spec TurnSpec `json:"spec"`

	// status is how the run goes and how it ended.
	//
	// +optional
	Status TurnStatus `json:"status,omitzero"`
}

// TurnList is a list of Turns.
//
// +kubebuilder:object:root=true
type TurnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []Turn `json:"items"`
}
