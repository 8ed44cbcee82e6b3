package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/mcp"
)

// EgressTarget is the kernel service as a NetworkPolicy sees it: after address
// translation, so the manager's pods and their own port.
type EgressTarget struct {
	Namespace string
	PodLabels map[string]string
	Port      int32
}

const dnsPort = 53

// applyEgress keeps a harness under a strict tool policy from every network but
// DNS, the kernel and its own model. Under a hybrid one nothing is enforced.
func (r *TurnReconciler) applyEgress(ctx context.Context, t *v1alpha1.Turn, h *v1alpha1.Harness) error {
	if PolicyMode(h.Spec.ToolPolicy) != v1alpha1.ToolPolicyStrict {
		return nil
	}
	policy := EgressPolicy(t, h, r.Egress)
	if err := r.Client.Apply(ctx, policy, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the network policy: %w", err)
	}
	return nil
}

// confine applies the network policy of a Turn that was admitted just now, while that
// is being stored; done waits for it. If it fails, it is tried again, and told, before
// the pod is made.
func (r *TurnReconciler) confine(ctx context.Context, s *turnScope) (done func() bool) {
	if s.harness == nil || s.before.Status.Admission != nil || s.turn.Status.Admission == nil {
		return func() bool { return s.confined }
	}
	owner := &v1alpha1.Turn{ObjectMeta: *s.turn.ObjectMeta.DeepCopy()} // the scope's own is being written
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { err = r.applyEgress(ctx, owner, s.harness) })
	return func() bool {
		wg.Wait()
		return err == nil
	}
}

// restoreEgress puts back the policy of a running turn that somebody deleted or
// changed, and returns the one that was found as it was made.
func (r *TurnReconciler) restoreEgress(ctx context.Context, t *v1alpha1.Turn) (*networkingv1.NetworkPolicy, error) {
	if t.Spec.Harness == "" {
		return nil, nil //nolint:nilnil // no policy of ours and no error
	}
	policy := &networkingv1.NetworkPolicy{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: PodName(t)}, policy)
	if err == nil && policy.Generation == 1 {
		return policy, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the network policy: %w", err)
	}
	harness := &v1alpha1.Harness{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: string(t.Spec.Harness)}, harness); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return nil, r.applyEgress(ctx, t, harness) // it is seen on its way back
}

// PolicyMode is the mode of a tool policy, which is strict unless it says or implies
// otherwise.
func PolicyMode(p *v1alpha1.ToolPolicy) v1alpha1.ToolPolicyMode {
	switch {
	case p == nil:
		return v1alpha1.ToolPolicyStrict
	case p.Mode != "":
		return p.Mode
	case len(p.ExternalDirect) > 0:
		return v1alpha1.ToolPolicyHybrid
	default:
		return v1alpha1.ToolPolicyStrict
	}
}

// policyHash is the hash of the effective tool policy.
func policyHash(p *v1alpha1.ToolPolicy) (string, error) {
	var declared mcp.ToolPolicy
	if p != nil {
		declared = mcp.ToolPolicy{
			Mode: mcp.PolicyMode(p.Mode), ManagedMCP: names(p.ManagedMCP),
			HarnessLocal: names(p.HarnessLocal), ExternalDirect: names(p.ExternalDirect),
		}
	}
	effective, err := mcp.NewToolPolicy(declared)
	if err != nil {
		return "", fmt.Errorf("complete the tool policy: %w", err)
	}
	hash, err := mcp.PolicyHash(effective)
	if err != nil {
		return "", fmt.Errorf("hash the tool policy: %w", err)
	}
	return hash, nil
}

func names(in []v1alpha1.Identifier) []string {
	out := make([]string, 0, len(in))
	for _, name := range in {
		out = append(out, string(name))
	}
	return out
}

// EgressPolicy is the NetworkPolicy of one Turn's pod. It is pure.
func EgressPolicy(t *v1alpha1.Turn, h *v1alpha1.Harness, to EgressTarget) *applynetworkingv1.NetworkPolicyApplyConfiguration {
	rules := make([]*applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration, 0, 2+len(h.Spec.ModelEgress))
	rules = append(rules,
		applynetworkingv1.NetworkPolicyEgressRule().WithPorts(port(corev1.ProtocolUDP, dnsPort), port(corev1.ProtocolTCP, dnsPort)),
		applynetworkingv1.NetworkPolicyEgressRule().WithPorts(port(corev1.ProtocolTCP, to.Port)).
			WithTo(applynetworkingv1.NetworkPolicyPeer().
				WithNamespaceSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: to.Namespace})).
				WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(to.PodLabels))),
	)
	for i := range h.Spec.ModelEgress {
		model := &h.Spec.ModelEgress[i]
		rule := applynetworkingv1.NetworkPolicyEgressRule().
			WithTo(applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(model.CIDR)))
		for _, p := range model.Ports {
			rule.WithPorts(port(corev1.ProtocolTCP, p))
		}
		rules = append(rules, rule)
	}
	return applynetworkingv1.NetworkPolicy(PodName(t), t.Namespace).
		WithLabels(map[string]string{v1alpha1.LabelTurn: t.Name}).
		WithOwnerReferences(ownedBy(t)).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{v1alpha1.LabelTurn: t.Name})).
			WithPolicyTypes(networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress).
			WithEgress(rules...))
}

func port(protocol corev1.Protocol, n int32) *applynetworkingv1.NetworkPolicyPortApplyConfiguration {
	return applynetworkingv1.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(n))
}
