package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope says how far below its path a capability reaches.
//
// +kubebuilder:validation:Enum=exact;descendants
type Scope string

// The scopes.
const (
	// ScopeExact covers the path itself and nothing else.
	ScopeExact Scope = "exact"
	// ScopeDescendants covers the path and everything below it, segment by
	// segment and never by string prefix.
	ScopeDescendants Scope = "descendants"
)

// CapabilityResource names the place that a capability is about.
type CapabilityResource struct {
	// namespace of the resource: the plane it lives in, not a Kubernetes
	// namespace. Examples: "files", "repo", "sharedos.execution".
	//
	// +required
	Namespace Identifier `json:"namespace"`

	// path of the resource inside its plane, one segment per item. An empty list
	// is the root of the plane. Example: ["Work", "atlas"].
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Path []PathSegment `json:"path"`

	// owner names the Principal whose resource it is. Absent means the owner of
	// the context in which the grant is used. Example: "alice".
	//
	// +optional
	Owner ObjectName `json:"owner,omitempty"`
}

// Capability is one thing a grant allows. A request is allowed only by one
// capability that matches all of it; two are never combined.
type Capability struct {
	// resource that the capability is about.
	//
	// +required
	Resource CapabilityResource `json:"resource"`

	// actions that are allowed, compared by equality; "*" stands for every
	// action. Example: ["list", "stat", "read"].
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Actions []Action `json:"actions"`

	// scope of the capability. MUST be exact or descendants; there is no default.
	//
	// +required
	Scope Scope `json:"scope"`
}

// GrantConstraints bound a grant. An absent field does not constrain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || !has(self.expiresAt) || self.notBefore <= self.expiresAt",message="notBefore must not be after expiresAt"
type GrantConstraints struct {
	// purposes for which the grant may be used, compared by equality. Absent
	// means any purpose. Example: ["atlas-status"].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Purposes []Purpose `json:"purposes,omitempty"`

	// notBefore is the instant from which the grant is active. MUST NOT be after
	// expiresAt. Example: "2026-09-01T00:00:00Z".
	//
	// +optional
	NotBefore Timestamp `json:"notBefore,omitempty"`

	// expiresAt is the instant at which the grant ends, also for a turn that is
	// already running. Example: "2026-09-30T17:00:00Z".
	//
	// +optional
	ExpiresAt Timestamp `json:"expiresAt,omitempty"`

	// maxUses is how many operations the grant allows in total. Absent means
	// unbounded. A bounded grant cannot be delegated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	MaxUses *int64 `json:"maxUses,omitempty"`

	// delegationDepth is how many more times the grant may be passed on. Absent
	// means 0: not at all.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	DelegationDepth *int64 `json:"delegationDepth,omitempty"`
}

// GrantSpec is authority: what subject may do with issuer's authority.
//
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked grant cannot be reinstated; create another one"
type GrantSpec struct {
	// issuer names the Principal whose authority is granted. Who writes a Grant
	// needs the verb issue on that Principal. Example: "alice".
	//
	// +required
	Issuer ObjectName `json:"issuer"`

	// subject names the Principal that may use the grant. Example: "alice-assistant".
	//
	// +required
	Subject ObjectName `json:"subject"`

	// capabilities that the grant gives. The list is atomic: one applier owns
	// all of it.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Capabilities []Capability `json:"capabilities"`

	// constraints on the grant. Absent means unconstrained.
	//
	// +optional
	Constraints *GrantConstraints `json:"constraints,omitempty"`

	// parentGrant names the Grant that this one is derived from. The parent and
	// all its ancestors are loaded and checked at every use. MUST NOT be this
	// Grant's own name.
	//
	// +optional
	ParentGrant ObjectName `json:"parentGrant,omitempty"`

	// revoked ends the grant. Once true it cannot be unset. A turn that was
	// admitted earlier keeps the grant; the next one does not get it.
	//
	// +optional
	Revoked bool `json:"revoked,omitempty"`
}

// GrantStatus is what was found out about a Grant.
type GrantStatus struct {
	// observedGeneration is the generation of spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// uses is how many operations a bounded grant has allowed so far. It is
	// raised by compare-and-set before the operation runs. An unbounded grant
	// does not count.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Uses int64 `json:"uses,omitempty"`

	// remainingUses is how many operations a bounded grant still allows. Absent
	// for an unbounded grant.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RemainingUses *int64 `json:"remainingUses,omitempty"`

	// issuedAt is when the Grant was created.
	//
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// revokedAt is when the revocation was first seen.
	//
	// +optional
	RevokedAt *metav1.MicroTime `json:"revokedAt,omitempty"`

	// chain holds the names of the grants that this one is derived from, its
	// parent first. Empty for a grant without a parent.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Chain []ObjectName `json:"chain,omitempty"`

	// conditions of the Grant. Known type: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Grant is authority: what one Principal may do for another. Its id in the
// protocol is its name. An edited Grant is a new generation; a running turn
// keeps the generation it was admitted with or loses it, and never gains.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=grants,singular=grant,scope=Namespaced,shortName=gnt,categories=sharedos
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parentGrant) || self.spec.parentGrant != self.metadata.name",message="parentGrant must not be the grant itself",fieldPath=".spec.parentGrant"
// +kubebuilder:printcolumn:name="Issuer",type=string,JSONPath=`.spec.issuer`
// +kubebuilder:printcolumn:name="Subject",type=string,JSONPath=`.spec.subject`
// +kubebuilder:printcolumn:name="Actions",type=string,JSONPath=`.spec.capabilities[*].actions`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Uses",type=integer,JSONPath=`.status.uses`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.constraints.expiresAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Grant struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the authority.
	//
	// +required
	Spec GrantSpec `json:"spec"`

	// status is what the controller found.
	//
	// +optional
	Status GrantStatus `json:"status,omitzero"`
}

// GrantList is a list of Grants.
//
// +kubebuilder:object:root=true
type GrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []Grant `json:"items"`
}
