package controllers_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/controllers"
)

func admittedTurn() *v1alpha1.Turn {
	return &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "turn-uid"},
		Status:     v1alpha1.TurnStatus{Admission: &v1alpha1.TurnAdmission{CatalogHash: "hash"}},
	}
}

func usableHarness() *v1alpha1.Harness {
	return &v1alpha1.Harness{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"},
		Spec: v1alpha1.HarnessSpec{Type: v1alpha1.HarnessCustom, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent", v1alpha1.LabelTurn: "forged"}},
			Spec: corev1.PodSpec{
				AutomountServiceAccountToken: new(true), RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{
					{Name: v1alpha1.ContainerHarness, Image: "i", Command: []string{"/agent", "-x"}, Args: []string{"y"}},
					{Name: "other", Image: "o", Command: []string{"/other"}},
				},
			},
		}},
	}
}

func TestHarnessPod(t *testing.T) {
	turn, harness := admittedTurn(), usableHarness()
	before := harness.DeepCopy()
	pod := controllers.HarnessPod(turn, harness)
	if diff := cmp.Diff([]string{bridge.WrapperPath, "run", "--", "/agent", "-x"}, pod.Spec.Containers[0].Command); diff != "" {
		t.Errorf("the harness's command (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/other"}, pod.Spec.Containers[1].Command); diff != "" {
		t.Errorf("the other container's command (-want +got):\n%s", diff)
	}
	if pod.Labels[v1alpha1.LabelTurn] != "t" || pod.Labels["app"] != "agent" {
		t.Errorf("labels %v", pod.Labels)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod restarts, or has the API's token")
	}
	if !metav1.IsControlledBy(pod, turn) {
		t.Error("the pod would outlive its Turn")
	}
	if pod.Annotations[v1alpha1.AnnotationCatalogHash] != "hash" || pod.Annotations[v1alpha1.AnnotationExecutionID] != "turn-uid" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	if pod.Spec.ActiveDeadlineSeconds == nil {
		t.Error("nothing bounds the pod's life")
	}
	if diff := cmp.Diff(before, harness); diff != "" {
		t.Errorf("the Harness was changed:\n%s", diff)
	}
	again := admittedTurn()
	again.UID = "another"
	if controllers.HarnessPod(again, harness).Name == pod.Name {
		t.Error("a recreated Turn would take its predecessor's pod")
	}
}

func TestCheckHarness(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *v1alpha1.Harness)
		want   v1alpha1.ConditionReason
	}{
		"usable": {func(*v1alpha1.Harness) {}, ""},
		"no container": {
			func(h *v1alpha1.Harness) { h.Spec.Template.Spec.Containers[0].Name = "agent" }, v1alpha1.HarnessReasonContainerMissing,
		},
		"no command": {
			func(h *v1alpha1.Harness) { h.Spec.Template.Spec.Containers[0].Command = nil }, v1alpha1.HarnessReasonCommandMissing,
		},
		"host network": {
			func(h *v1alpha1.Harness) { h.Spec.Template.Spec.HostNetwork = true }, v1alpha1.HarnessReasonTemplateForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness := usableHarness()
			c.change(harness)
			var got v1alpha1.ConditionReason
			if fault := controllers.CheckHarness(harness); fault != nil {
				got = fault.Reason
			}
			if got != c.want {
				t.Errorf("reason %q, want %q", got, c.want)
			}
		})
	}
}

func TestEgressPolicy(t *testing.T) {
	harness := usableHarness()
	harness.Spec.ModelEgress = []v1alpha1.ModelEgress{{CIDR: "203.0.113.0/24", Ports: []int32{443}}}
	raw, err := json.Marshal(controllers.EgressPolicy(admittedTurn(), harness, controllers.EgressTarget{
		Namespace: "sys", PodLabels: map[string]string{"app": "manager"}, Port: 8444,
	}).Spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"podSelector":{"matchLabels":{"sharedos.dev/turn":"t"}},"egress":[` +
		`{"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}]},` +
		`{"ports":[{"protocol":"TCP","port":8444}],"to":[{"podSelector":{"matchLabels":{"app":"manager"}},` +
		`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"sys"}}}]},` +
		`{"ports":[{"protocol":"TCP","port":443}],"to":[{"ipBlock":{"cidr":"203.0.113.0/24"}}]}],"policyTypes":["Egress","Ingress"]}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}
