package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TurnOutcome is how a turn ended, as the protocol's status.
//
// +kubebuilder:validation:Enum=succeeded;denied;failed;cancelled;escalated
type TurnOutcome string

// The outcomes.
const (
	// TurnSucceeded means that the agent finished and left an output.
	TurnSucceeded TurnOutcome = "succeeded"
	// TurnDenied means that the turn was refused and nothing ran.
	TurnDenied TurnOutcome = "denied"
	// TurnFailed means that the agent or its pod failed.
	TurnFailed TurnOutcome = "failed"
	// TurnCancelled means that the turn's time was up or somebody ended it.
	TurnCancelled TurnOutcome = "cancelled"
	// TurnEscalated means that the agent asked for a human's decision.
	TurnEscalated TurnOutcome = "escalated"
)

// PodReference is the one pod that a turn runs in.
type PodReference struct {
	// name of the pod.
	//
	// +required
	Name ObjectName `json:"name"`

	// uid of the pod. Another pod of the same name is not bound.
	//
	// +required
	UID UID `json:"uid"`
}

// TurnUsage counts what the turn did.
type TurnUsage struct {
	// toolCalls is how many tool calls were made, refused ones included.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ToolCalls int64 `json:"toolCalls"`

	// denied is how many of them were denied.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Denied int64 `json:"denied"`

	// callsAfterEscalation is how many calls came after the agent had asked for a
	// human's decision. All of them were denied.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CallsAfterEscalation int64 `json:"callsAfterEscalation"`
}

// TurnError is why a turn did not succeed.
type TurnError struct {
	// code of the refusal or failure. Example: "no_matching_grant".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Code string `json:"code"`

	// message that explains the code to a person.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message"`

	// retryable says whether the same turn may be tried again without repeating
	// an effect. Absent means not stated.
	//
	// +optional
	Retryable *bool `json:"retryable,omitempty"`

	// details of the error, as the text of a JSON object. Example: '{"exitCode":2}'.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Details JSONText `json:"details,omitempty"`
}

// EscalationStatus is how far an escalation has come.
//
// +kubebuilder:validation:Enum=pending
type EscalationStatus string

// EscalationPending means that nobody has decided. A decision is another Grant,
// which the next turn loads; it never changes this turn.
const EscalationPending EscalationStatus = "pending"

// TurnEscalation is the agent's request for a human's decision. It is stored
// before the agent gets its answer, and from then on every call is denied.
type TurnEscalation struct {
	// reason that the agent gave.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`

	// reviewer who is asked.
	//
	// +required
	Reviewer Address `json:"reviewer"`

	// requestedAt is when the agent asked.
	//
	// +required
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// requestedAuthority is what would have sufficed, as the text of a JSON
	// CapabilityRequest. It describes authority and is none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	RequestedAuthority JSONText `json:"requestedAuthority,omitempty"`

	// status of the request. MUST be pending.
	//
	// +required
	Status EscalationStatus `json:"status"`
}

// TurnStatus is how a turn goes and how it ended. Only the manager writes it.
type TurnStatus struct {
	// observedGeneration is the generation of spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the Turn. Known types: Admitted, BridgeReady, Finished, and,
	// where there is something to say, EgressWidened and PodWithoutBridge.
	// Finished is always present; its reason is the state of the Turn.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// outcome of the turn. Absent until it has ended.
	//
	// +optional
	Outcome TurnOutcome `json:"outcome,omitempty"`

	// executionId of the turn.
	//
	// +optional
	ExecutionID Identifier `json:"executionId,omitempty"`

	// traceId that the turn is recorded under.
	//
	// +optional
	TraceID Identifier `json:"traceId,omitempty"`

	// admission is what the turn was admitted with. Another manager that takes
	// over rebuilds the turn from it and never adds authority.
	//
	// +optional
	Admission *TurnAdmission `json:"admission,omitempty"`

	// pod that the turn is bound to. Once set it does not change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a turn is bound to one pod for good"
	Pod *PodReference `json:"pod,omitempty"`

	// usage counts what the turn did.
	//
	// +optional
	Usage *TurnUsage `json:"usage,omitempty"`

	// checkpoint holds the counters to resume from after a failover.
	//
	// +optional
	Checkpoint *TurnCheckpoint `json:"checkpoint,omitempty"`

	// startedAt is when the turn was opened.
	//
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// completedAt is when the turn ended.
	//
	// +optional
	CompletedAt *metav1.MicroTime `json:"completedAt,omitempty"`

	// exitCode of the harness, if it exited.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	ExitCode *int32 `json:"exitCode,omitempty"`

	TurnOutput `json:",inline"`

	// error says why the turn was denied, failed or was cancelled.
	//
	// +optional
	Error *TurnError `json:"error,omitempty"`

	// escalation is the agent's request for a human's decision.
	//
	// +optional
	Escalation *TurnEscalation `json:"escalation,omitempty"`

	// refusals are the first 32 calls that were denied, in order, with what each
	// would have needed. usage.denied counts all of them; the audit log lists them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Refusals []TurnRefusal `json:"refusals,omitempty"`

	// events of the turn.
	//
	// +optional
	Events *TurnEvents `json:"events,omitempty"`

	// metadata of the result, as the text of a JSON object; for example the
	// harness's own outcome after an escalation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Metadata JSONText `json:"metadata,omitempty"`
}
