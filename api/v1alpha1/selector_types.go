package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelectorOperator relates a label to values.
//
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type SelectorOperator string

// The operators.
const (
	// SelectorIn holds when the label has one of the values.
	SelectorIn SelectorOperator = "In"
	// SelectorNotIn holds when the label has none of the values or is absent.
	SelectorNotIn SelectorOperator = "NotIn"
	// SelectorExists holds when the label is present.
	SelectorExists SelectorOperator = "Exists"
	// SelectorDoesNotExist holds when the label is absent.
	SelectorDoesNotExist SelectorOperator = "DoesNotExist"
)

// LabelValue is the value of a Kubernetes label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// SelectorRequirement is one condition on a label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",message="values must be set exactly when operator is In or NotIn"
type SelectorRequirement struct {
	// key of the label. Example: "team".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// operator that relates the label to values. MUST be In, NotIn, Exists or
	// DoesNotExist.
	//
	// +required
	Operator SelectorOperator `json:"operator"`

	// values for In and NotIn. MUST be absent for the other operators.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// PrincipalSelector chooses Principals of one namespace, either by labels or by
// names. An empty selector selects every Principal.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.names) && self.names.size() > 0) || !(has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="names must not be combined with labels"
type PrincipalSelector struct {
	// matchLabels selects Principals that have all of these labels.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions selects Principals for which all of these hold.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`

	// names selects the Principals named here. MUST NOT be combined with labels.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Names []ObjectName `json:"names,omitempty"`
}

// LabelSelector returns the label part of the selector for apimachinery to
// evaluate. A nil selector yields an empty one, which selects everything.
func (s *PrincipalSelector) LabelSelector() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if s == nil {
		return selector
	}
	if len(s.MatchLabels) > 0 {
		selector.MatchLabels = make(map[string]string, len(s.MatchLabels))
		for key, value := range s.MatchLabels {
			selector.MatchLabels[key] = string(value)
		}
	}
	for _, requirement := range s.MatchExpressions {
		values := make([]string, 0, len(requirement.Values))
		for _, value := range requirement.Values {
			values = append(values, string(value))
		}
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key:      requirement.Key,
			Operator: metav1.LabelSelectorOperator(requirement.Operator),
			Values:   values,
		})
	}
	return selector
}
