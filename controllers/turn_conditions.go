package controllers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/translate"
)

// setConditions derives the three conditions from the rest of the status. Admitted
// keeps what admission said when it refused.
func (s *turnScope) setConditions() {
	s.setAdmitted()
	s.setBridgeReady()
	s.setFinished()
}

func (s *turnScope) set(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	v1alpha1.SetCondition(&s.turn.Status.Conditions,
		v1alpha1.Condition(kind, status, reason, translate.Text(message, translate.MaxMessage), s.turn.Generation))
}

func (s *turnScope) setAdmitted() {
	status := &s.turn.Status
	switch {
	case status.Admission != nil:
		s.set(v1alpha1.TurnConditionAdmitted, metav1.ConditionTrue, v1alpha1.TurnReasonAdmitted,
			fmt.Sprintf("%d tools under %d grants", status.Admission.ToolCount, status.Admission.GrantCount))
	case v1alpha1.FindCondition(status.Conditions, v1alpha1.TurnConditionAdmitted) == nil:
		s.set(v1alpha1.TurnConditionAdmitted, metav1.ConditionUnknown, v1alpha1.TurnReasonPending, "not looked at yet")
	}
}

func (s *turnScope) setBridgeReady() {
	status := &s.turn.Status
	ready := s.session != nil && !s.session.State().ReadyAt.IsZero()
	was := v1alpha1.FindCondition(status.Conditions, v1alpha1.TurnConditionBridgeReady)
	switch {
	case status.Outcome != "" && (ready || was != nil && was.Status == metav1.ConditionTrue):
		s.set(v1alpha1.TurnConditionBridgeReady, metav1.ConditionFalse, v1alpha1.TurnReasonClosed, "the turn has ended")
	case status.Outcome != "" && status.Admission != nil:
		message := s.waiting
		if message == "" {
			message = "the turn ended before its bridge was ready"
		}
		s.set(v1alpha1.TurnConditionBridgeReady, metav1.ConditionFalse, v1alpha1.TurnReasonNotStarted, message)
	case ready:
		s.set(v1alpha1.TurnConditionBridgeReady, metav1.ConditionTrue, v1alpha1.TurnReasonAttached, "the pod's bridge serves the catalogue")
	case status.Admission != nil && (was == nil || was.Status != metav1.ConditionTrue):
		message := s.waiting
		if message == "" {
			message = "waiting for the pod"
		}
		s.set(v1alpha1.TurnConditionBridgeReady, metav1.ConditionFalse, v1alpha1.TurnReasonWaitingForPod, message)
	case was == nil:
		s.set(v1alpha1.TurnConditionBridgeReady, metav1.ConditionUnknown, v1alpha1.TurnReasonPending, "not admitted")
	}
}

func (s *turnScope) setFinished() {
	status := &s.turn.Status
	bridge := v1alpha1.FindCondition(status.Conditions, v1alpha1.TurnConditionBridgeReady)
	switch {
	case status.Outcome != "":
		message := "the turn has ended"
		if status.Error != nil {
			message = status.Error.Code + ": " + status.Error.Message
		}
		s.set(v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.StateOf(status.Outcome), message)
	case status.Admission == nil:
		s.set(v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStatePending, "waiting to be admitted")
	case bridge != nil && bridge.Status == metav1.ConditionTrue:
		message := "the agent may act"
		if s.waiting != "" {
			message = "the bridge is ready; the harness is not: " + s.waiting
		}
		s.set(v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStateRunning, message)
	default:
		s.set(v1alpha1.TurnConditionFinished, metav1.ConditionFalse, v1alpha1.TurnStateAdmitted, "the pod is starting")
	}
}
