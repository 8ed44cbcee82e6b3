package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition on one of this group's kinds.
type ConditionType string

// ConditionReason is the reason of a condition on one of this group's kinds.
// Every reason that can occur is a constant next to its kind.
type ConditionReason string

// Condition returns a condition about an object's generation. The time of its
// last transition is left to [SetCondition].
func Condition(
	conditionType ConditionType, status metav1.ConditionStatus, reason ConditionReason, message string, generation int64,
) metav1.Condition {
	return metav1.Condition{
		Type:               string(conditionType),
		Status:             status,
		Reason:             string(reason),
		Message:            message,
		ObservedGeneration: generation,
	}
}

// SetCondition puts a condition into a list and reports whether anything
// changed, so that a status nobody needs is never written. It keeps the time of
// the last transition while the condition's status stays the same.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition) bool {
	return meta.SetStatusCondition(conditions, condition)
}

// FindCondition returns the condition of a type, or nil.
func FindCondition(conditions []metav1.Condition, conditionType ConditionType) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(conditionType))
}

// ConditionIsCurrent reports whether the condition of a type is True and about
// the given generation. A condition about an older generation establishes nothing.
func ConditionIsCurrent(conditions []metav1.Condition, conditionType ConditionType, generation int64) bool {
	condition := FindCondition(conditions, conditionType)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == generation
}
