package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
)

func policy(rules ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: rules,
	}}
}

func block(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

func to(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{To: peers, Ports: ports}
}

// TestWidens: policies add up, so one that allows anything that the Turn's own does
// not makes it wider.
func TestWidens(t *testing.T) {
	tcp := func(port int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(port))}
	}
	udp := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(443))}
	blocks := func(p ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer { return p }
	own := policy(to(blocks(block("10.0.0.0/16")), tcp(443)))
	change := func(p *networkingv1.NetworkPolicy, f func(*networkingv1.NetworkPolicySpec)) *networkingv1.NetworkPolicy {
		f(&p.Spec)
		return p
	}
	for name, c := range map[string]struct {
		other *networkingv1.NetworkPolicy
		want  bool
	}{
		"the same":             {policy(to(blocks(block("10.0.0.0/16")), tcp(443))), false},
		"a part of the block":  {policy(to(blocks(block("10.0.7.0/24")), tcp(443))), false},
		"with an exception":    {policy(to(blocks(block("10.0.0.0/16", "10.0.1.0/24")), tcp(443))), false},
		"nothing":              {policy(), false},
		"a wider block":        {policy(to(blocks(block("10.0.0.0/8")), tcp(443))), true},
		"another block":        {policy(to(blocks(block("10.1.0.0/16")), tcp(443))), true},
		"one block too many":   {policy(to(blocks(block("10.0.7.0/24"), block("192.0.2.1/32")), tcp(443))), true},
		"no block at all":      {policy(to(nil, tcp(443))), true},
		"another port":         {policy(to(blocks(block("10.0.0.0/16")), tcp(80))), true},
		"all ports":            {policy(to(blocks(block("10.0.0.0/16")))), true},
		"another protocol":     {policy(to(blocks(block("10.0.0.0/16")), udp)), true},
		"a rule too many":      {policy(to(blocks(block("10.0.0.0/16")), tcp(443)), to(blocks(block("10.0.0.0/16")), tcp(22))), true},
		"what is not a prefix": {policy(to(blocks(block("ten")), tcp(443))), true},
		"pods instead of addresses": {policy(to(blocks(networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{}}), tcp(443))), true},
		"for other pods": {change(policy(to(nil)), func(s *networkingv1.NetworkPolicySpec) {
			s.PodSelector.MatchLabels = map[string]string{"app": "other"}
		}), false},
		"for all pods": {change(policy(to(nil)), func(s *networkingv1.NetworkPolicySpec) { s.PodSelector = metav1.LabelSelector{} }), true},
		"about ingress": {change(policy(), func(s *networkingv1.NetworkPolicySpec) {
			s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		}), false},
		"egress without saying so": {change(policy(to(nil)), func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = nil }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controllers.Widens(c.other, own, map[string]string{"app": "agent"}); got != c.want {
				t.Errorf("widens: %t, want %t", got, c.want)
			}
		})
	}
}

// TestHasBridge: a name alone is no bridge.
func TestHasBridge(t *testing.T) {
	injected := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationInjectedBy: "sharedos"}},
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{
				Name: v1alpha1.ContainerBridge, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			}}},
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"as it is injected": {func(*corev1.Pod) {}, true},
		"beside others": {func(p *corev1.Pod) {
			p.Spec.InitContainers = append([]corev1.Container{{Name: "a"}}, p.Spec.InitContainers...)
		}, true},
		"nobody says who did it":   {func(p *corev1.Pod) { p.Annotations = nil }, false},
		"another container":        {func(p *corev1.Pod) { p.Spec.InitContainers[0].Name = "bridge" }, false},
		"one that runs once":       {func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }, false},
		"no sidecar":               {func(p *corev1.Pod) { p.Spec.InitContainers = nil }, false},
		"as an ordinary container": {func(p *corev1.Pod) { p.Spec.Containers, p.Spec.InitContainers = p.Spec.InitContainers, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := injected()
			c.change(p)
			if got := controllers.HasBridge(p); got != c.want {
				t.Errorf("has a bridge: %t, want %t", got, c.want)
			}
		})
	}
}
