package controllers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/injection"
)

// errUndecided means that a dry run said nothing about the template.
var errUndecided = errors.New("the dry run was not answered")

// dryRun lets the API server judge a pod as it would be made for a Turn, bridge and
// all. Nil means that it would be taken; an error wraps [errUndecided].
func (r *HarnessReconciler) dryRun(ctx context.Context, h *v1alpha1.Harness) (*HarnessFault, error) {
	cfg, err := r.Sidecar()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecided, err)
	}
	pod := dryRunPod(h, cfg)
	sidecar := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerBridge })
	err = r.Client.Create(ctx, pod, client.DryRunAll, client.FieldOwner(FieldOwner))
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // no fault and no error
	case apierrors.IsInvalid(err):
		return &HarnessFault{Reason: v1alpha1.HarnessReasonTemplateInvalid, Message: templateFields(err, sidecar)}, nil
	case apierrors.IsForbidden(err):
		return &HarnessFault{
			Reason:  v1alpha1.HarnessReasonTemplateForbidden,
			Message: "spec.template: the API server would not take its pods: " + reasonOf(err),
		}, nil
	default:
		return nil, fmt.Errorf("%w: %w", errUndecided, err)
	}
}

// dryRunPod is the pod of a Turn as the webhook would leave it. It runs no Turn, so
// it has no label.
func dryRunPod(h *v1alpha1.Harness, cfg injection.Config) *corev1.Pod {
	const turn = "dry-run"
	pod := HarnessPod(&v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: turn},
		Status:     v1alpha1.TurnStatus{Admission: &v1alpha1.TurnAdmission{}},
	}, h)
	delete(pod.Labels, v1alpha1.LabelTurn)
	pod.OwnerReferences = nil
	injection.Mutate(pod, cfg, injection.Target{Turn: turn, Harness: string(h.Spec.Type)})
	return pod
}

// initField is the path of an init container in a pod.
var initField = regexp.MustCompile(`^spec\.initContainers\[(\d+)\]`)

// templateFields puts the API server's complaints into words about the template,
// which does not know of the sidecar.
func templateFields(err error, sidecar int) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return "spec.template: " + reasonOf(err)
	}
	causes := status.Status().Details.Causes
	out := make([]string, 0, len(causes))
	for _, cause := range causes {
		field := cause.Field
		if m := initField.FindStringSubmatch(field); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n > sidecar {
				field = fmt.Sprintf("spec.initContainers[%d]%s", n-1, field[len(m[0]):])
			}
		}
		out = append(out, "spec.template."+field+": "+cause.Message)
	}
	return strings.Join(out, "; ")
}

// reasonOf is an API error without the name of a pod that is never made.
func reasonOf(err error) string {
	_, reason, found := strings.Cut(err.Error(), ": ")
	if !found {
		return err.Error()
	}
	return reason
}
