package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/injection"
)

// TestEssentialPodsAreJudgedTheSame: what is left out of the cache is nothing that a
// controller looks at.
func TestEssentialPodsAreJudgedTheSame(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "s",
			InitContainers: []corev1.Container{{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Command: []string{"c"}}},
			Containers:     []corev1.Container{{Name: "harness", Image: "i", Env: []corev1.EnvVar{{Name: "E", Value: "v"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{
			Name: "mesh", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
		}}},
	}
	injection.Mutate(pod, injection.Config{Image: "side"}, injection.Target{Turn: "t"})
	whole := pod.DeepCopy()
	kept, err := essential(pod)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := kept.(*corev1.Pod)
	if !ok {
		t.Fatalf("a %T", kept)
	}
	if !controllers.HasBridge(whole) || !controllers.HasBridge(got) {
		t.Error("the bridge is not seen any more")
	}
	if diff := cmp.Diff(controllers.JudgePod(whole), controllers.JudgePod(got)); diff != "" {
		t.Errorf("judged otherwise: %s", diff)
	}
	if diff := cmp.Diff(whole.Status, got.Status); diff != "" {
		t.Errorf("status: %s", diff)
	}
	if got.Spec.Containers[0].Env != nil || got.Spec.Volumes != nil || got.ManagedFields != nil {
		t.Error("nothing was left out")
	}
	if _, err := essential(&corev1.Secret{}); err == nil {
		t.Error("another kind is taken")
	}
}
