package turns

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// has reports whether the Turn has a condition with that reason.
func has(kind v1alpha1.ConditionType, reason v1alpha1.ConditionReason, mentions string) func(*v1alpha1.Turn) bool {
	return func(t *v1alpha1.Turn) bool {
		c := v1alpha1.FindCondition(t.Status.Conditions, kind)
		return c != nil && c.Reason == string(reason) && strings.Contains(c.Message, mentions)
	}
}

// TestAnotherPolicyWidensEgress: NetworkPolicies add up, so a strict turn says which
// one lets its pod out, and no longer when it is gone.
func TestAnotherPolicyWidensEgress(t *testing.T) {
	start(t)
	w := newWorld(t, "widened")
	w.mayRun()
	all := metav1.LabelSelector{}
	dns := &networkingv1.NetworkPolicy{ObjectMeta: w.meta("dns"), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: all, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{portOf(corev1.ProtocolUDP, 53)}}},
	}}
	w.create(dns)
	w.turn("t")
	w.until("t", hasPod)
	open := &networkingv1.NetworkPolicy{ObjectMeta: w.meta("open"), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: all, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{}},
	}}
	w.create(open)
	turn := w.until("t", has(v1alpha1.TurnConditionEgressWidened, v1alpha1.TurnReasonOtherPolicies, "open"))
	if c := v1alpha1.FindCondition(turn.Status.Conditions, v1alpha1.TurnConditionEgressWidened); strings.Contains(c.Message, "dns") {
		t.Errorf("a policy that allows no more than ours is named: %s", c.Message)
	}
	must(t, server.client.Delete(t.Context(), open))
	w.until("t", has(v1alpha1.TurnConditionEgressWidened, v1alpha1.TurnReasonStrict, ""))
}

// TestAPodWithoutItsBridgeIsNamed: somebody put the label on a running pod, or the
// webhook was not asked.
func TestAPodWithoutItsBridgeIsNamed(t *testing.T) {
	start(t)
	w := newWorld(t, "bare")
	w.mayRun()
	w.turn("t")
	w.until("t", hasPod)
	bare := podFor(w.meta("bare"), nil)
	w.create(bare)
	before := bare.DeepCopy()
	bare.Labels = map[string]string{v1alpha1.LabelTurn: "t"}
	must(t, server.client.Patch(t.Context(), bare, client.MergeFrom(before)))
	w.until("t", has(v1alpha1.TurnConditionPodWithoutBridge, v1alpha1.TurnReasonNotInjected, "bare"))
	w.cancelled("t")
	must(t, server.client.Delete(t.Context(), bare, client.GracePeriodSeconds(0)))
	w.until("t", has(v1alpha1.TurnConditionPodWithoutBridge, v1alpha1.TurnReasonAllInjected, ""))
}

// TestTheWebhookIsAway: while nobody answers, no harness pod is made, and the Turn
// says why; where the webhook is not asked at all, the pod is ended at once.
func TestTheWebhookIsAway(t *testing.T) {
	start(t)
	w := newWorld(t, "away")
	w.mayRun()
	must(t, server.webhooks.down())
	t.Cleanup(func() { must(t, server.webhooks.up()) })
	w.turn("t")
	w.until("t", has(v1alpha1.TurnConditionBridgeReady, v1alpha1.TurnReasonWaitingForPod, "injection.sharedos.dev"))
	if err := server.client.Create(t.Context(), podFor(w.meta("own"), map[string]string{v1alpha1.LabelTurn: "t"})); err == nil {
		t.Error("a harness pod was made while the webhook was away")
	}
	must(t, server.webhooks.up())
	w.until("t", hasPod)

	hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	must(t, server.client.Get(t.Context(), types.NamespacedName{Name: "sharedos-injection"}, hook))
	never := hook.DeepCopy()
	never.Webhooks[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
	must(t, server.client.Update(t.Context(), never))
	t.Cleanup(func() {
		back := &admissionregistrationv1.MutatingWebhookConfiguration{}
		must(t, server.client.Get(context.Background(), types.NamespacedName{Name: "sharedos-injection"}, back))
		back.Webhooks = hook.Webhooks
		must(t, server.client.Update(context.Background(), back))
		must(t, awaitWebhooks())
	})
	// The API server takes the change over in its own time.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := server.client.Create(ctx, podFor(w.meta("probe"), map[string]string{v1alpha1.LabelTurn: "none"}), client.DryRunAll)
		return err == nil, client.IgnoreNotFound(ignoreForbidden(err))
	})
	must(t, err)
	w.turn("bypassed")
	turn := w.ended("bypassed")
	if turn.State() != v1alpha1.TurnStateFailed || !strings.Contains(string(turn.Status.Error.Details), "BridgeMissing") {
		t.Errorf("%s %+v", turn.State(), turn.Status.Error)
	}
	gone := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: string(turn.Status.Pod.Name)}, pod)
		return apierrors.IsNotFound(err) || !pod.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
	})
	if gone != nil {
		t.Error("the pod without a bridge was left running")
	}
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// TestATemplateIsTriedOnTheAPIServer: what only the API server knows to be wrong is
// said with the field, once for each generation.
func TestATemplateIsTriedOnTheAPIServer(t *testing.T) {
	start(t)
	w := newWorld(t, "template")
	condition := func(name string, wanted v1alpha1.ConditionReason) *v1alpha1.Harness {
		t.Helper()
		h := &v1alpha1.Harness{}
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			err := server.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, h)
			c := v1alpha1.FindCondition(h.Status.Conditions, v1alpha1.HarnessReady)
			return c != nil && c.Reason == string(wanted) && c.ObservedGeneration == h.Generation, err
		})
		if err != nil {
			t.Fatalf("harness %s: %+v, want %s", name, h.Status.Conditions, wanted)
		}
		return h
	}
	good := condition("h", v1alpha1.HarnessReasonValid)
	bad := &v1alpha1.Harness{ObjectMeta: w.meta("bad"), Spec: *good.Spec.DeepCopy()}
	bad.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "i", ImagePullPolicy: "Sometimes"}}
	w.create(bad)
	bad = condition("bad", v1alpha1.HarnessReasonTemplateInvalid)
	message := v1alpha1.FindCondition(bad.Status.Conditions, v1alpha1.HarnessReady).Message
	if !strings.Contains(message, "spec.template.spec.initContainers[0].imagePullPolicy") {
		t.Errorf("message %q; want the template's own field", message)
	}
	fixed := bad.DeepCopy()
	fixed.Spec.Template.Spec.InitContainers[0].ImagePullPolicy = ""
	must(t, server.client.Update(t.Context(), fixed))
	condition("bad", v1alpha1.HarnessReasonValid)

	stranger := &v1alpha1.Harness{ObjectMeta: w.meta("stranger"), Spec: *good.Spec.DeepCopy()}
	stranger.Spec.Template.Spec.ServiceAccountName = "nobody"
	w.create(stranger)
	condition("stranger", v1alpha1.HarnessReasonTemplateForbidden)
	var pods corev1.PodList
	must(t, server.client.List(t.Context(), &pods, client.InNamespace(w.namespace)))
	if len(pods.Items) != 0 {
		t.Errorf("the dry runs left %d pods", len(pods.Items))
	}
}

func portOf(protocol corev1.Protocol, port int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intOrString(port))}
}
