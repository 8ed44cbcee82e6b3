package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/injection"
)

// HarnessFault is why a Harness cannot be used.
type HarnessFault struct {
	Reason  v1alpha1.ConditionReason
	Message string
}

// CheckHarness finds what would keep the Harness's pods from being made: the same
// rules that the webhook holds a pod to. It is pure; nil means usable.
func CheckHarness(h *v1alpha1.Harness) *HarnessFault {
	spec := &h.Spec.Template.Spec
	var harness *corev1.Container
	found := 0
	for i := range spec.Containers {
		if spec.Containers[i].Name == v1alpha1.ContainerHarness {
			harness = &spec.Containers[i]
			found++
		}
	}
	switch {
	case h.Spec.TemplateFault() != "":
		return &HarnessFault{Reason: v1alpha1.HarnessReasonTemplateInvalid, Message: "spec.template: " + h.Spec.TemplateFault()}
	case found != 1:
		return &HarnessFault{
			Reason:  v1alpha1.HarnessReasonContainerMissing,
			Message: fmt.Sprintf("spec.template.spec.containers: exactly one container must be named %q", v1alpha1.ContainerHarness),
		}
	case len(harness.Command) == 0:
		return &HarnessFault{
			Reason:  v1alpha1.HarnessReasonCommandMissing,
			Message: "spec.template.spec.containers[harness].command: must be set, because it is wrapped",
		}
	}
	pod := HarnessPod(&v1alpha1.Turn{Status: v1alpha1.TurnStatus{Admission: &v1alpha1.TurnAdmission{}}}, h)
	if errs := injection.Check(pod, injection.Config{}, injection.Target{}); len(errs) > 0 {
		return &HarnessFault{Reason: v1alpha1.HarnessReasonTemplateForbidden, Message: "spec.template." + errs.ToAggregate().Error()}
	}
	return nil
}
