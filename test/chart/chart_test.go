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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// everything turns on all that values can turn on.
const everything = `
manager: {replicas: 2}
audit: {persistence: {enabled: true}}
webhook: {validation: {enabled: true}, excludedNamespaces: [legacy]}
filesProvider:
  enabled: true
  seed:
    team-atlas/Work/atlas/status.md: "On track.\n"
    team-atlas/README: "{{ not a template }}"
  persistence: {enabled: true}
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}]}
metrics: {serviceMonitor: {enabled: true}}
`

func TestLint(t *testing.T) {
	if _, err := helm(t, "lint", "--strict", chartPath); err != nil {
		t.Error(err)
	}
}

func TestDefaultObjects(t *testing.T) {
	var got []string
	for _, name := range names(t, render(t, "")) {
		if !strings.HasPrefix(name, "CustomResourceDefinition/") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	want := []string{
		"ClusterRole/sharedos-admin", "ClusterRole/sharedos-agent", "ClusterRole/sharedos-editor", "ClusterRole/sharedos-issuer",
		"ClusterRole/sharedos-manager", "ClusterRole/sharedos-metrics-reader", "ClusterRole/sharedos-viewer", "ClusterRole/sharedos-webhook-configuration",
		"ClusterRoleBinding/sharedos-manager", "ClusterRoleBinding/sharedos-webhook-configuration",
		"MutatingWebhookConfiguration/sharedos-injection",
		"PodDisruptionBudget/sharedos-manager",
		"Role/sharedos-leader-election", "Role/sharedos-manager",
		"RoleBinding/sharedos-leader-election", "RoleBinding/sharedos-manager",
		"Secret/sharedos-execution-token", "Secret/sharedos-files-provider-tls", "Secret/sharedos-manager-tls",
		"Service/sharedos-kernel", "Service/sharedos-metrics", "Service/sharedos-webhook",
		"ServiceAccount/sharedos-manager",
		"StatefulSet/sharedos-manager",
		"ValidatingAdmissionPolicy/sharedos-harness-pod-connect", "ValidatingAdmissionPolicy/sharedos-harness-pod-create",
		"ValidatingAdmissionPolicy/sharedos-harness-pod-update", "ValidatingAdmissionPolicy/sharedos-issue",
		"ValidatingAdmissionPolicy/sharedos-kernel-token", "ValidatingAdmissionPolicy/sharedos-status",
		"ValidatingAdmissionPolicy/sharedos-turn-finalizer", "ValidatingAdmissionPolicy/sharedos-use",
		"ValidatingAdmissionPolicyBinding/sharedos-harness-pod-connect", "ValidatingAdmissionPolicyBinding/sharedos-harness-pod-create",
		"ValidatingAdmissionPolicyBinding/sharedos-harness-pod-update", "ValidatingAdmissionPolicyBinding/sharedos-issue",
		"ValidatingAdmissionPolicyBinding/sharedos-kernel-token", "ValidatingAdmissionPolicyBinding/sharedos-status",
		"ValidatingAdmissionPolicyBinding/sharedos-turn-finalizer", "ValidatingAdmissionPolicyBinding/sharedos-use",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestSwitches(t *testing.T) {
	for _, test := range []struct {
		name, values string
		gone         []string
		added        []string
	}{
		{name: "no policies", values: "admissionPolicies: {enabled: false}", gone: []string{"ValidatingAdmissionPolicy/", "ValidatingAdmissionPolicyBinding/"}},
		{name: "no budget", values: "podDisruptionBudget: {enabled: false}", gone: []string{"PodDisruptionBudget/"}},
		{name: "no CRDs", values: "crds: {install: false}", gone: []string{"CustomResourceDefinition/"}},
		{name: "everything", values: everything, added: []string{
			"ConfigMap/sharedos-files-seed", "Deployment/sharedos-files-provider", "PersistentVolumeClaim/sharedos-files",
			"Service/sharedos-files-provider", "ServiceAccount/sharedos-files-provider", "NetworkPolicy/sharedos-manager",
			"NetworkPolicy/sharedos-files-provider", "ServiceMonitor/sharedos-manager", "ValidatingWebhookConfiguration/sharedos-validation",
		}},
		{name: "own claim", values: "filesProvider: {enabled: true, persistence: {enabled: true, existingClaim: mine}}", gone: []string{"PersistentVolumeClaim/"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := names(t, render(t, test.values))
			for _, prefix := range test.gone {
				if slices.ContainsFunc(all, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
					t.Errorf("%s is still rendered", prefix)
				}
			}
			for _, name := range test.added {
				if !slices.Contains(all, name) {
					t.Errorf("%s is missing", name)
				}
			}
		})
	}
}

func TestNamesFollowTheRelease(t *testing.T) {
	for _, test := range []struct{ release, values, prefix string }{
		{"sharedos", "", "sharedos-"},
		{"team", "", "team-sharedos-"},
		{"team", "fullnameOverride: agents", "agents-"},
		{"sharedos", "nameOverride: kernel", "sharedos-kernel-"},
	} {
		text, err := tryRender(t, test.release, everything+test.values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, text) {
			if _, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
				continue
			}
			if name := accessor(t, object).GetName(); !strings.HasPrefix(name, test.prefix) {
				t.Errorf("release %q, %q: name %q does not start with %q", test.release, test.values, name, test.prefix)
			}
		}
	}
}

func TestEveryObjectIsLabelledAndPlaced(t *testing.T) {
	clusterScoped := map[string]bool{
		"ClusterRole": true, "ClusterRoleBinding": true, "MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "CustomResourceDefinition": true,
	}
	for _, object := range render(t, everything+"commonLabels: {team: platform}") {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		meta := accessor(t, object)
		want := namespace
		if clusterScoped[kind] {
			want = ""
		}
		if got := meta.GetNamespace(); got != want {
			t.Errorf("%s/%s is in namespace %q, want %q", kind, meta.GetName(), got, want)
		}
		if kind == "CustomResourceDefinition" {
			continue
		}
		if meta.GetLabels()["app.kubernetes.io/name"] != "sharedos" || meta.GetLabels()["team"] != "platform" {
			t.Errorf("%s/%s lacks labels: %v", kind, meta.GetName(), meta.GetLabels())
		}
	}
}

func TestCustomResourceDefinitions(t *testing.T) {
	for _, test := range []struct {
		values string
		keep   bool
	}{{"", true}, {"crds: {keep: false}", false}} {
		var got []string
		for _, crd := range list[*apiextensionsv1.CustomResourceDefinition](render(t, test.values)) {
			got = append(got, crd.Spec.Names.Kind)
			if kept := crd.Annotations["helm.sh/resource-policy"] == "keep"; kept != test.keep {
				t.Errorf("%q: %s kept = %t, want %t", test.values, crd.Name, kept, test.keep)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"Grant", "Harness", "Principal", "ToolNamespace", "Turn"}, got); diff != "" {
			t.Errorf("kinds (-want +got):\n%s", diff)
		}
	}
}

// Two renderings are byte for byte the same: a GitOps tool sees no drift.
func TestRenderingIsDeterministic(t *testing.T) {
	first, err := tryRender(t, release, everything)
	if err != nil {
		t.Fatal(err)
	}
	second, err := tryRender(t, release, everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two renderings differ:\n%s", diff)
	}
}

// What the manager writes must not be declared, or every sync would take it back.
func TestManagerOwnedFieldsAreAbsent(t *testing.T) {
	all := render(t, everything)
	for _, secret := range list[*corev1.Secret](all) {
		if len(secret.Data)+len(secret.StringData) > 0 {
			t.Errorf("Secret %s declares data", secret.Name)
		}
	}
	for _, webhook := range list[*admissionv1.MutatingWebhookConfiguration](all) {
		for _, w := range webhook.Webhooks {
			if w.ClientConfig.CABundle != nil {
				t.Errorf("%s declares caBundle", w.Name)
			}
		}
	}
	for _, webhook := range list[*admissionv1.ValidatingWebhookConfiguration](all) {
		for _, w := range webhook.Webhooks {
			if w.ClientConfig.CABundle != nil {
				t.Errorf("%s declares caBundle", w.Name)
			}
		}
	}
	kernel := find[*corev1.Service](t, all, "sharedos-kernel")
	if kernel.Spec.Selector != nil {
		t.Errorf("the kernel Service has the selector %v; its EndpointSlice is the leader's", kernel.Spec.Selector)
	}
}

func TestManagerFlags(t *testing.T) {
	manager := find[*appsv1.StatefulSet](t, render(t, ""), "sharedos-manager")
	want := []string{
		"--namespace=$(POD_NAMESPACE)", "--pod-name=$(POD_NAME)", "--pod-ip=$(POD_IP)",
		"--health-listen=:8081", "--metrics-listen=:8080", "--webhook-port=9443", "--kernel-port=8444",
		"--kernel-service=sharedos-kernel", "--webhook-service=sharedos-webhook",
		"--tls-secret=sharedos-manager-tls", "--provider-tls-secret=sharedos-files-provider-tls",
		"--provider-service=sharedos-files-provider", "--token-secret=sharedos-execution-token",
		"--mutating-webhook=sharedos-injection", "--validating-webhook=",
		"--sidecar-image=sharedos.dev/bridge-sidecar:dev", "--sidecar-image-pull-policy=IfNotPresent",
		"--leader-elect", "--audit-dir=/var/lib/sharedos/audit", "-v=0",
	}
	if diff := cmp.Diff(want, manager.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	manager = find[*appsv1.StatefulSet](t, render(t, `
images: {prefix: registry.example/team, tag: v1, pullPolicy: Always}
sidecar: {image: "other.example/side@sha256:aa", pullPolicy: Never}
webhook: {validation: {enabled: true}}
manager: {logLevel: 4, extraArgs: [--more]}
`), "sharedos-manager")
	container := manager.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example/team/manager:v1" || container.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("image = %s, %s", container.Image, container.ImagePullPolicy)
	}
	for _, flag := range []string{"--sidecar-image=other.example/side@sha256:aa", "--sidecar-image-pull-policy=Never", "--validating-webhook=sharedos-validation", "-v=4", "--more"} {
		if !slices.Contains(container.Args, flag) {
			t.Errorf("flags lack %s: %v", flag, container.Args)
		}
	}
}

func TestAuditVolume(t *testing.T) {
	manager := find[*appsv1.StatefulSet](t, render(t, ""), "sharedos-manager")
	if len(manager.Spec.VolumeClaimTemplates) != 0 || !hasVolume(manager.Spec.Template.Spec, "audit") {
		t.Error("by default the audit log belongs in an emptyDir")
	}
	manager = find[*appsv1.StatefulSet](t, render(t, "audit: {persistence: {enabled: true, size: 5Gi, storageClassName: fast}}"), "sharedos-manager")
	if len(manager.Spec.VolumeClaimTemplates) != 1 || hasVolume(manager.Spec.Template.Spec, "audit") {
		t.Fatal("with persistence the audit log belongs in a claim per replica")
	}
	claim := manager.Spec.VolumeClaimTemplates[0]
	if claim.Name != "audit" || claim.Spec.Resources.Requests.Storage().String() != "5Gi" || ptr.Deref(claim.Spec.StorageClassName, "") != "fast" {
		t.Errorf("claim = %+v", claim)
	}
}

func hasVolume(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

func TestInjectionWebhook(t *testing.T) {
	all := render(t, everything)
	webhook := find[*admissionv1.MutatingWebhookConfiguration](t, all, "sharedos-injection").Webhooks[0]
	if ptr.Deref(webhook.FailurePolicy, "") != admissionv1.Fail || ptr.Deref(webhook.SideEffects, "") != admissionv1.SideEffectClassNone ||
		ptr.Deref(webhook.ReinvocationPolicy, "") != admissionv1.IfNeededReinvocationPolicy || ptr.Deref(webhook.TimeoutSeconds, 0) != 5 {
		t.Errorf("webhook = %+v", webhook)
	}
	selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"team-atlas": true, "kube-system": false, namespace: false, "legacy": false} {
		if got := selector.Matches(labels.Set{"kubernetes.io/metadata.name": name}); got != want {
			t.Errorf("pods of %s are injected: %t, want %t", name, got, want)
		}
	}
	selector, err = metav1.LabelSelectorAsSelector(webhook.ObjectSelector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set{"sharedos.dev/turn": ""}) || selector.Matches(labels.Set{"app": "x"}) {
		t.Error("the webhook must look at exactly the pods that carry the label")
	}
}

func TestSeedFiles(t *testing.T) {
	all := render(t, everything)
	seed := find[*corev1.ConfigMap](t, all, "sharedos-files-seed")
	provider := find[*appsv1.Deployment](t, all, "sharedos-files-provider")
	got := map[string]string{}
	for _, volume := range provider.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for _, item := range volume.ConfigMap.Items {
			got[item.Path] = seed.Data[item.Key]
		}
	}
	want := map[string]string{"team-atlas/Work/atlas/status.md": "On track.\n", "team-atlas/README": "{{ not a template }}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seeded files (-want +got):\n%s", diff)
	}
}

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
	if service.Name == "sharedos-files-provider" {
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

// Every pod of ours passes Pod Security "restricted" and cannot write its own image.
func TestPodsAreRestricted(t *testing.T) {
	for _, template := range podTemplates(render(t, everything)) {
		pod := template.spec.Spec
		s := pod.SecurityContext
		if s == nil || !ptr.Deref(s.RunAsNonRoot, false) || ptr.Deref(s.RunAsUser, 0) != 65532 || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context = %+v", template.owner, s)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s shares the host's namespaces", template.owner)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || ptr.Deref(s.AllowPrivilegeEscalation, true) || !ptr.Deref(s.ReadOnlyRootFilesystem, false) ||
				!ptr.Deref(s.RunAsNonRoot, false) || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: container security context = %+v", template.owner, s)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has no memory request or limit", template.owner, c.Name)
			}
		}
	}
	provider := find[*appsv1.Deployment](t, render(t, everything), "sharedos-files-provider")
	if ptr.Deref(provider.Spec.Template.Spec.AutomountServiceAccountToken, true) {
		t.Error("the files provider needs no Kubernetes API and must not have a token for it")
	}
}
