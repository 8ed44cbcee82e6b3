package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition type of a Principal.
const (
	// PrincipalReady says whether the Principal may take part in anything. A
	// Principal whose Ready condition is not True for its current generation has no
	// authority, resolves no caller and runs no turn.
	PrincipalReady ConditionType = "Ready"
)

// Reasons of [PrincipalReady] when it is True.
const (
	// PrincipalReasonResolved means that the address and the identities are
	// unique in the namespace and every reference was found.
	PrincipalReasonResolved ConditionReason = "Resolved"
)

// Reasons of [PrincipalReady] when it is False.
const (
	// PrincipalReasonDuplicateAddress means that another Principal in the
	// namespace has the same address. All of them are disabled.
	PrincipalReasonDuplicateAddress ConditionReason = "DuplicateAddress"

	// PrincipalReasonDuplicateIdentity means that another Principal in the
	// namespace lists one of the same identities. Callers with that identity
	// are refused.
	PrincipalReasonDuplicateIdentity ConditionReason = "DuplicateIdentity"

	// PrincipalReasonAuthorityNotFound means that spec.authority names no Principal.
	PrincipalReasonAuthorityNotFound ConditionReason = "AuthorityNotFound"

	// PrincipalReasonOwnerNotFound means that spec.owner names no Principal.
	PrincipalReasonOwnerNotFound ConditionReason = "OwnerNotFound"

	// PrincipalReasonHarnessNotFound means that spec.harness names no Harness.
	PrincipalReasonHarnessNotFound ConditionReason = "HarnessNotFound"
)

// Reasons of [PrincipalReady] when it is Unknown.
const (
	// PrincipalReasonPending means that the Principal was not examined yet.
	PrincipalReasonPending ConditionReason = "Pending"
)

// ServiceAccountIdentity names one Kubernetes ServiceAccount.
type ServiceAccountIdentity struct {
	// name of the ServiceAccount. Example: "alice-assistant".
	//
	// +required
	Name ObjectName `json:"name"`

	// namespace of the ServiceAccount. It is never implied: a ServiceAccount of
	// the same name elsewhere is somebody else. Example: "team-atlas".
	//
	// +required
	Namespace LabelName `json:"namespace"`
}

// Identity is a Kubernetes identity that is this Principal. Exactly one of
// serviceAccount and user MUST be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccount) != has(self.user)",message="exactly one of serviceAccount and user must be set"
type Identity struct {
	// serviceAccount whose tokens authenticate as this Principal. If a Principal
	// lists ServiceAccounts, the pods of its turns MUST run as one of them.
	//
	// +optional
	ServiceAccount *ServiceAccountIdentity `json:"serviceAccount,omitempty"`

	// user is the name of a Kubernetes user, as the API server authenticates it.
	// A ServiceAccount MUST be given as serviceAccount, and the anonymous user
	// is nobody. Example: "alice@example.com".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:serviceaccount:')",message="a ServiceAccount must be given as serviceAccount {name, namespace}"
	// +kubebuilder:validation:XValidation:rule="self != 'system:anonymous'",message="the anonymous user cannot be a Principal"
	User string `json:"user,omitempty"`
}

// PrincipalSpec says who a Principal is and whom it acts for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.harness) || self.address.kind == 'agent'",message="harness may be set only when address.kind is agent"
type PrincipalSpec struct {
	// address is the Principal's name in the protocol. It is immutable and MUST
	// be unique in the namespace; Principals that share one are all disabled.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="address is immutable"
	Address Address `json:"address"`

	// authority names the Principal whose grants this one exercises. Absent
	// means the Principal itself. Example: "alice".
	//
	// +optional
	Authority ObjectName `json:"authority,omitempty"`

	// owner names the Principal whose resources this one touches. Absent means
	// the Principal itself. Example: "alice".
	//
	// +optional
	Owner ObjectName `json:"owner,omitempty"`

	// identities are the Kubernetes identities that are this Principal. An
	// identity MUST NOT belong to two Principals of one namespace.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Identities []Identity `json:"identities,omitempty"`

	// purposes are those the Principal may declare; the first is used when it
	// declares none. A Principal without purposes cannot act.
	// Example: ["atlas-status", "atlas-planning"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Purposes []Purpose `json:"purposes,omitempty"`

	// disabledToolNamespaces are names of ToolNamespaces that this Principal does
	// not want. They only narrow what Git enabled. The HTTP API writes this list;
	// as a set it can be shared with other appliers.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	DisabledToolNamespaces []LabelName `json:"disabledToolNamespaces,omitempty"`

	// harness names the Harness that runs this agent when a message for it
	// arrives. Absent means that a message never runs it. It grants nothing: the
	// sender still needs authority to send to the agent and to run it.
	//
	// +optional
	Harness ObjectName `json:"harness,omitempty"`
}

// PrincipalStatus is what was found out about a Principal.
type PrincipalStatus struct {
	// observedGeneration is the generation of spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the Principal. Known type: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Principal says who exists in a world and which Kubernetes identity is whom.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=principals,singular=principal,scope=Namespaced,shortName=prn,categories=sharedos
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.address.kind`
// +kubebuilder:printcolumn:name="Authority",type=string,JSONPath=`.spec.authority`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Harness",type=string,JSONPath=`.spec.harness`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Principal struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says who the Principal is.
	//
	// +required
	Spec PrincipalSpec `json:"spec"`

	// status is what the controller found.
	//
	// +optional
	Status PrincipalStatus `json:"status,omitzero"`
}

// PrincipalList is a list of Principals.
//
// +kubebuilder:object:root=true
type PrincipalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []Principal `json:"items"`
}
