package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// What is written by hand anywhere must point at something that exists.
func TestReferences(t *testing.T) {
	all := render(t, everything)
	services := map[string]*corev1.Service{}
	for _, service := range list[*corev1.Service](all) {
		services[service.Name] = service
		checkServiceSelectsPods(t, all, service)
	}
	for _, template := range podTemplates(all) {
		checkPodReferences(t, all, template)
	}
	for _, webhook := range list[*admissionv1.MutatingWebhookConfiguration](all) {
		for _, w := range webhook.Webhooks {
			checkWebhookService(t, services, w.Name, w.ClientConfig)
		}
	}
	for _, webhook := range list[*admissionv1.ValidatingWebhookConfiguration](all) {
		for _, w := range webhook.Webhooks {
			checkWebhookService(t, services, w.Name, w.ClientConfig)
		}
	}
	for _, binding := range list[*admissionv1.ValidatingAdmissionPolicyBinding](all) {
		find[*admissionv1.ValidatingAdmissionPolicy](t, all, binding.Spec.PolicyName)
	}
	for _, binding := range list[*rbacv1.ClusterRoleBinding](all) {
		find[*rbacv1.ClusterRole](t, all, binding.RoleRef.Name)
		find[*corev1.ServiceAccount](t, all, binding.Subjects[0].Name)
	}
	for _, binding := range list[*rbacv1.RoleBinding](all) {
		find[*rbacv1.Role](t, all, binding.RoleRef.Name)
		find[*corev1.ServiceAccount](t, all, binding.Subjects[0].Name)
	}
	for _, budget := range list[*policyv1.PodDisruptionBudget](all) {
		if len(selected(t, all, budget.Spec.Selector)) != 1 {
			t.Errorf("PodDisruptionBudget %s selects no pods of ours", budget.Name)
		}
	}
	for _, policy := range list[*networkingv1.NetworkPolicy](all) {
		if len(selected(t, all, &policy.Spec.PodSelector)) != 1 {
			t.Errorf("NetworkPolicy %s selects no pods of ours", policy.Name)
		}
	}
	set := find[*appsv1.StatefulSet](t, all, "sharedos-manager")
	if services[set.Spec.ServiceName] == nil || services[set.Spec.ServiceName].Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the StatefulSet's Service %q is not a headless one of ours", set.Spec.ServiceName)
	}
}

// podTemplate is a pod template with the selector of what makes its pods.
type podTemplate struct {
	owner    string
	selector *metav1.LabelSelector
	spec     corev1.PodTemplateSpec
	claims   []string
}

func podTemplates(all objects) []podTemplate {
	var templates []podTemplate
	for _, d := range list[*appsv1.Deployment](all) {
		templates = append(templates, podTemplate{owner: d.Name, selector: d.Spec.Selector, spec: d.Spec.Template})
	}
	for _, s := range list[*appsv1.StatefulSet](all) {
		template := podTemplate{owner: s.Name, selector: s.Spec.Selector, spec: s.Spec.Template}
		for _, claim := range s.Spec.VolumeClaimTemplates {
			template.claims = append(template.claims, claim.Name)
		}
		templates = append(templates, template)
	}
	return templates
}

// selected answers the owners of the pods that a selector selects.
func selected(t *testing.T, all objects, selector *metav1.LabelSelector) []string {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	var owners []string
	for _, template := range podTemplates(all) {
		if s.Matches(labels.Set(template.spec.Labels)) {
			owners = append(owners, template.owner)
		}
	}
	return owners
}

func checkServiceSelectsPods(t *testing.T, all objects, service *corev1.Service) {
	t.Helper()
	owner := "sharedos-manager"
	if strings.HasSuffix(service.Name, "-provider") {
		owner = service.Name
	}
	if service.Spec.Selector != nil {
		got := selected(t, all, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
		if diff := cmp.Diff([]string{owner}, got); diff != "" {
			t.Errorf("Service %s selects pods (-want +got):\n%s", service.Name, diff)
		}
	}
	for _, template := range podTemplates(all) {
		if template.owner != owner {
			continue
		}
		for _, port := range service.Spec.Ports {
			if !slices.ContainsFunc(template.spec.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
				return p.ContainerPort == port.TargetPort.IntVal
			}) {
				t.Errorf("Service %s leads to port %s, which %s does not have", service.Name, port.TargetPort.String(), owner)
			}
		}
	}
}

func checkWebhookService(t *testing.T, services map[string]*corev1.Service, name string, config admissionv1.WebhookClientConfig) {
	t.Helper()
	service := services[config.Service.Name]
	if service == nil || service.Namespace != config.Service.Namespace {
		t.Errorf("webhook %s calls the Service %s/%s, which does not exist", name, config.Service.Namespace, config.Service.Name)
		return
	}
	if service.Spec.Ports[0].Port != ptr.Deref(config.Service.Port, 443) {
		t.Errorf("webhook %s calls a port its Service does not have", name)
	}
}

func checkPodReferences(t *testing.T, all objects, template podTemplate) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(template.selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(template.spec.Labels)) {
		t.Errorf("%s does not select its own pods", template.owner)
	}
	pod := template.spec.Spec
	find[*corev1.ServiceAccount](t, all, pod.ServiceAccountName)
	volumes := slices.Clone(template.claims)
	for _, volume := range pod.Volumes {
		volumes = append(volumes, volume.Name)
		switch {
		case volume.Secret != nil:
			find[*corev1.Secret](t, all, volume.Secret.SecretName)
		case volume.ConfigMap != nil:
			find[*corev1.ConfigMap](t, all, volume.ConfigMap.Name)
		case volume.PersistentVolumeClaim != nil:
			find[*corev1.PersistentVolumeClaim](t, all, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, container := range pod.Containers {
		var mounted []string
		for _, mount := range container.VolumeMounts {
			mounted = append(mounted, mount.Name)
		}
		slices.Sort(volumes)
		slices.Sort(mounted)
		if diff := cmp.Diff(volumes, mounted); diff != "" {
			t.Errorf("%s: volumes and mounts differ (-volumes +mounts):\n%s", template.owner, diff)
		}
	}
}
