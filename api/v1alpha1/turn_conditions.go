package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a Turn.
const (
	// TurnConditionAdmitted says whether the envelope let the turn in.
	TurnConditionAdmitted ConditionType = "Admitted"

	// TurnConditionBridgeReady says whether the pod's bridge is attached and
	// serves the catalogue.
	TurnConditionBridgeReady ConditionType = "BridgeReady"

	// TurnConditionFinished says whether the turn has ended. It is always present
	// and its reason is the state of the Turn.
	TurnConditionFinished ConditionType = "Finished"

	// TurnConditionEgressWidened says that other NetworkPolicies let the pod reach
	// more than a strict tool policy allows. It is absent until there is one.
	TurnConditionEgressWidened ConditionType = "EgressWidened"

	// TurnConditionPodWithoutBridge names running pods that carry the Turn's label
	// and not its bridge: the injection webhook was not asked about them. They
	// cannot act as the agent. It is absent until there is one.
	TurnConditionPodWithoutBridge ConditionType = "PodWithoutBridge"
)

// Reasons of [TurnConditionEgressWidened] when it is True.
const (
	// TurnReasonOtherPolicies means that the NetworkPolicies in the message select
	// the pod too; policies add up.
	TurnReasonOtherPolicies ConditionReason = "OtherPolicies"
)

// Reasons of [TurnConditionEgressWidened] when it is False.
const (
	// TurnReasonStrict means that no other policy widens the Turn's own any more.
	TurnReasonStrict ConditionReason = "Strict"
)

// Reasons of [TurnConditionPodWithoutBridge] when it is True.
const (
	// TurnReasonNotInjected means that the pods in the message run without a bridge.
	TurnReasonNotInjected ConditionReason = "NotInjected"
)

// Reasons of [TurnConditionPodWithoutBridge] when it is False.
const (
	// TurnReasonAllInjected means that no such pod runs any more.
	TurnReasonAllInjected ConditionReason = "AllInjected"
)

// Reasons of [TurnConditionFinished] when it is False.
const (
	// TurnStatePending means that the turn is not admitted yet.
	TurnStatePending ConditionReason = "Pending"

	// TurnStateAdmitted means that the turn is admitted and its pod is starting.
	TurnStateAdmitted ConditionReason = "Admitted"

	// TurnStateRunning means that the bridge is attached and the agent may act.
	TurnStateRunning ConditionReason = "Running"
)

// Reasons of [TurnConditionFinished] when it is True. status.outcome says the
// same in the protocol's words.
const (
	// TurnStateSucceeded means that the agent finished and left an output.
	TurnStateSucceeded ConditionReason = "Succeeded"

	// TurnStateDenied means that the turn was refused; no pod was made.
	TurnStateDenied ConditionReason = "Denied"

	// TurnStateFailed means that the agent or its pod failed.
	TurnStateFailed ConditionReason = "Failed"

	// TurnStateCancelled means that the turn's time was up or somebody ended it.
	TurnStateCancelled ConditionReason = "Cancelled"

	// TurnStateEscalated means that the agent asked for a human's decision.
	TurnStateEscalated ConditionReason = "Escalated"
)

// Reasons of [TurnConditionAdmitted] when it is True.
const (
	// TurnReasonAdmitted means that the turn has its authority and its catalogue.
	TurnReasonAdmitted ConditionReason = "Admitted"
)

// Reasons of [TurnConditionAdmitted] when it is False.
const (
	// TurnReasonDenied means that the envelope refused the turn; status.error has
	// the code.
	TurnReasonDenied ConditionReason = "Denied"

	// TurnReasonPrincipalNotReady means that the Principal does not exist, is not
	// an agent, or is not Ready.
	TurnReasonPrincipalNotReady ConditionReason = "PrincipalNotReady"

	// TurnReasonHarnessNotReady means that the Harness does not exist or is not
	// Ready.
	TurnReasonHarnessNotReady ConditionReason = "HarnessNotReady"

	// TurnReasonInvalid means that something the schema cannot check does not
	// hold, for example that payload is JSON.
	TurnReasonInvalid ConditionReason = "Invalid"

	// TurnReasonCancelled means that the turn was cancelled before it was admitted.
	TurnReasonCancelled ConditionReason = "Cancelled"
)

// Reasons of [TurnConditionBridgeReady] when it is True.
const (
	// TurnReasonAttached means that the bound pod holds the execution token.
	TurnReasonAttached ConditionReason = "Attached"
)

// Reasons of [TurnConditionBridgeReady] when it is False.
const (
	// TurnReasonWaitingForPod means that no pod has attached yet.
	TurnReasonWaitingForPod ConditionReason = "WaitingForPod"

	// TurnReasonNotStarted means that no pod attached before the start timeout;
	// the message has the pod's waiting reason.
	TurnReasonNotStarted ConditionReason = "NotStarted"

	// TurnReasonClosed means that the turn ended and the bridge answers nothing.
	TurnReasonClosed ConditionReason = "Closed"
)

// Reasons of [TurnConditionAdmitted] and [TurnConditionBridgeReady] when they are Unknown.
const (
	// TurnReasonPending means that nothing was decided yet.
	TurnReasonPending ConditionReason = "Pending"
)

// State returns the state of the turn: the reason of its Finished condition, or
// Pending while it has none.
func (t *Turn) State() ConditionReason {
	condition := FindCondition(t.Status.Conditions, TurnConditionFinished)
	if condition == nil {
		return TurnStatePending
	}
	return ConditionReason(condition.Reason)
}

// IsFinished reports whether the turn has ended.
func (t *Turn) IsFinished() bool {
	condition := FindCondition(t.Status.Conditions, TurnConditionFinished)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// StateOf returns the state of a turn that ended with an outcome. An unknown
// outcome is a failure.
func StateOf(outcome TurnOutcome) ConditionReason {
	switch outcome {
	case TurnSucceeded:
		return TurnStateSucceeded
	case TurnDenied:
		return TurnStateDenied
	case TurnCancelled:
		return TurnStateCancelled
	case TurnEscalated:
		return TurnStateEscalated
	case TurnFailed:
		return TurnStateFailed
	default:
		return TurnStateFailed
	}
}

// EffectiveExecutionID returns the execution id of the turn: its creator's, or
// its UID.
func (t *Turn) EffectiveExecutionID() string {
	if t.Spec.ExecutionID != "" {
		return string(t.Spec.ExecutionID)
	}
	return string(t.UID)
}
