package controllers

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// HasBridge reports whether the pod carries the injected sidecar. It is pure.
func HasBridge(pod *corev1.Pod) bool {
	return pod.Annotations[v1alpha1.AnnotationInjectedBy] != "" &&
		slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == v1alpha1.ContainerBridge && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
}

// watchdog names every pod that claims to run the Turn and has no bridge: one that
// was made while the webhook was not asked. Such a pod can do nothing as the agent,
// but it runs, and whoever made it believes that it is guarded.
func (r *TurnReconciler) watchdog(ctx context.Context, s *turnScope) error {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(s.turn.Namespace), client.MatchingFields{indexTurn: s.turn.Name})
	if err != nil {
		return fmt.Errorf("list the turn's pods: %w", err)
	}
	var bare []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; !HasBridge(pod) && !podOver(pod) {
			bare = append(bare, pod.Name)
		}
	}
	slices.Sort(bare)
	s.flag(v1alpha1.TurnConditionPodWithoutBridge, len(bare) > 0, v1alpha1.TurnReasonNotInjected, v1alpha1.TurnReasonAllInjected,
		"without the bridge: "+strings.Join(bare, ", ")+"; delete them and see why the injection webhook is not asked")
	return nil
}

// inspect is [TurnReconciler.watchdog] for a Turn that has ended. It writes only
// when there is something to say.
func (r *TurnReconciler) inspect(ctx context.Context, t *v1alpha1.Turn) error {
	s := newTurnScope(t, r.Clock())
	if err := r.watchdog(ctx, s); err != nil {
		return err
	}
	if err := patchStatus(ctx, r.Client, s.before, s.turn, s.before.Status, s.turn.Status); err != nil {
		return err
	}
	s.turn.DeepCopyInto(t)
	return nil
}

// widened says in a condition which other policies let the Turn's pod reach more
// than its own strict policy does: NetworkPolicies add up.
func (r *TurnReconciler) widened(ctx context.Context, s *turnScope, pod *corev1.Pod, own *networkingv1.NetworkPolicy) error {
	var wide []string
	if own != nil {
		var others networkingv1.NetworkPolicyList
		err := r.Client.List(ctx, &others, client.InNamespace(pod.Namespace), client.MatchingFields{indexForeign: yes})
		if err != nil {
			return fmt.Errorf("list network policies: %w", err)
		}
		for i := range others.Items {
			if Widens(&others.Items[i], own, pod.Labels) {
				wide = append(wide, others.Items[i].Name)
			}
		}
	}
	slices.Sort(wide)
	s.flag(v1alpha1.TurnConditionEgressWidened, len(wide) > 0, v1alpha1.TurnReasonOtherPolicies, v1alpha1.TurnReasonStrict,
		"the pod may reach more than its Harness allows, through the NetworkPolicies "+strings.Join(wide, ", ")+
			"; keep them off pods with the label "+v1alpha1.LabelTurn)
	return nil
}

// flag sets a condition that a Turn has only once there was a reason for it.
func (s *turnScope) flag(kind v1alpha1.ConditionType, on bool, yes, no v1alpha1.ConditionReason, message string) {
	switch {
	case on:
		s.set(kind, metav1.ConditionTrue, yes, message)
	case v1alpha1.FindCondition(s.turn.Status.Conditions, kind) != nil:
		s.set(kind, metav1.ConditionFalse, no, "not any more")
	}
}

// Widens reports whether a policy lets a pod of those labels reach anything that
// the own policy does not. What it cannot compare, it takes for wider. It is pure.
func Widens(policy, own *networkingv1.NetworkPolicy, podLabels map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || !selector.Matches(labels.Set(podLabels)) {
		return false // a selector that the API server would refuse selects nothing
	}
	egress := slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) ||
		len(policy.Spec.PolicyTypes) == 0 && len(policy.Spec.Egress) > 0
	if !egress {
		return false
	}
	return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return !slices.ContainsFunc(own.Spec.Egress, func(mine networkingv1.NetworkPolicyEgressRule) bool { return covers(&mine, &rule) })
	})
}

// covers reports whether everything that rule allows, mine does. An empty list
// allows all.
func covers(mine, rule *networkingv1.NetworkPolicyEgressRule) bool {
	return coversAll(mine.To, rule.To, coversPeer) && coversAll(mine.Ports, rule.Ports, coversPort)
}

func coversAll[T any](mine, theirs []T, one func(mine, theirs *T) bool) bool {
	if len(mine) == 0 {
		return true
	}
	if len(theirs) == 0 {
		return false
	}
	for i := range theirs {
		if !slices.ContainsFunc(mine, func(m T) bool { return one(&m, &theirs[i]) }) {
			return false
		}
	}
	return true
}

func coversPeer(mine, theirs *networkingv1.NetworkPolicyPeer) bool {
	if mine.IPBlock == nil || theirs.IPBlock == nil {
		return equality.Semantic.DeepEqual(mine, theirs)
	}
	outer, err := netip.ParsePrefix(mine.IPBlock.CIDR)
	if err != nil {
		return false
	}
	inner, err := netip.ParsePrefix(theirs.IPBlock.CIDR)
	return err == nil && len(mine.IPBlock.Except) == 0 && outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

func coversPort(mine, theirs *networkingv1.NetworkPolicyPort) bool {
	return protocolOf(mine) == protocolOf(theirs) &&
		(mine.Port == nil || equality.Semantic.DeepEqual(mine.Port, theirs.Port) && equality.Semantic.DeepEqual(mine.EndPort, theirs.EndPort))
}

func protocolOf(p *networkingv1.NetworkPolicyPort) corev1.Protocol {
	if p.Protocol == nil {
		return corev1.ProtocolTCP
	}
	return *p.Protocol
}
