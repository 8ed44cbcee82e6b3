//go:build load

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
)

// TestFloor makes the requests without which no turn of somebody's pod is driven to its
// end, and nothing else: no manager runs. It is what the API server and etcd of this
// machine allow at most.
func TestFloor(t *testing.T) {
	w := &world{t: t, namespace: "load-floor"}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta("default")})
	settled(t)
	began, before := time.Now(), cpu(t)
	parallel(64, *turns, func(i int) {
		if err := w.bare(t.Context(), fmt.Sprintf("t%04d", i)); err != nil {
			t.Errorf("turn %d: %v", i, err)
		}
	})
	took := time.Since(began)
	t.Logf("CPU for one turn: %s", spent(t, before, *turns))
	t.Logf("%d turns' least requests in %s: %.1f a second", *turns, took.Round(time.Millisecond), float64(*turns)/took.Seconds())
}

// bare makes a turn's requests: created, held, admitted, its pod made, its token asked
// for and reviewed, bound, running, ended, released.
func (w *world) bare(ctx context.Context, name string) error {
	turn := w.turn(name, "")
	patch := func(body map[string]any, status bool) error {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		p := client.RawPatch(types.MergePatchType, raw)
		if status {
			return env.client.Status().Patch(ctx, turn, p)
		}
		return env.client.Patch(ctx, turn, p)
	}
	condition := func(kind v1alpha1.ConditionType, is metav1.ConditionStatus, reason v1alpha1.ConditionReason) metav1.Condition {
		c := v1alpha1.Condition(kind, is, reason, "", 1)
		c.LastTransitionTime = metav1.Now()
		return c
	}
	status := func(more map[string]any, state v1alpha1.ConditionReason, finished metav1.ConditionStatus) error {
		more["conditions"] = []metav1.Condition{
			condition(v1alpha1.TurnConditionAdmitted, metav1.ConditionTrue, v1alpha1.TurnStateAdmitted),
			condition(v1alpha1.TurnConditionFinished, finished, state),
		}
		return patch(map[string]any{"status": more}, true)
	}
	if err := patch(map[string]any{"metadata": map[string]any{"finalizers": []string{v1alpha1.FinalizerTurn}}}, false); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	if err := status(map[string]any{"executionId": string(turn.UID)}, v1alpha1.TurnStateAdmitted, metav1.ConditionFalse); err != nil {
		return fmt.Errorf("admit: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: w.meta(name + "-pod"), Spec: podSpec()}
	if err := env.client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the pod: %w", err)
	}
	token, err := env.clientset.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{bridge.Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for the token: %w", err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token, Audiences: []string{bridge.Audience}}}
	if _, err := env.clientset.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("review the token: %w", err)
	}
	bound := map[string]any{"pod": map[string]any{"name": pod.Name, "uid": pod.UID}}
	for _, step := range []struct {
		state    v1alpha1.ConditionReason
		finished metav1.ConditionStatus
	}{
		{v1alpha1.TurnStateAdmitted, metav1.ConditionFalse},
		{v1alpha1.TurnStateRunning, metav1.ConditionFalse},
		{v1alpha1.TurnStateSucceeded, metav1.ConditionTrue},
	} {
		if err := status(bound, step.state, step.finished); err != nil {
			return fmt.Errorf("store %s: %w", step.state, err)
		}
	}
	if err := patch(map[string]any{"metadata": map[string]any{"finalizers": nil}}, false); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}
