package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
repoProvider:
  enabled: true
  persistence: {enabled: true}
egress: {allow: [127.0.0.0/8, '::1'], only: [10.0.0.0/8]}
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}]}
metrics: {serviceMonitor: {enabled: true}, dashboard: {enabled: true}, alerts: {enabled: true}}
tracing: {endpoint: 'http://collector.monitoring:4318', sampleRatio: '0.25'}
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
		"ValidatingWebhookConfiguration/sharedos-validation",
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
		{name: "no validation", values: "webhook: {validation: {enabled: false}}", gone: []string{"ValidatingWebhookConfiguration/"}},
		{name: "no budget", values: "podDisruptionBudget: {enabled: false}", gone: []string{"PodDisruptionBudget/"}},
		{name: "no CRDs", values: "crds: {install: false}", gone: []string{"CustomResourceDefinition/"}},
		{name: "everything", values: everything, added: []string{
			"ConfigMap/sharedos-files-seed", "Deployment/sharedos-files-provider", "PersistentVolumeClaim/sharedos-files",
			"Service/sharedos-files-provider", "ServiceAccount/sharedos-files-provider", "NetworkPolicy/sharedos-manager",
			"NetworkPolicy/sharedos-files-provider", "ServiceMonitor/sharedos-manager",
			"Deployment/sharedos-repo-provider", "PersistentVolumeClaim/sharedos-repositories", "Service/sharedos-repo-provider",
			"ServiceAccount/sharedos-repo-provider", "NetworkPolicy/sharedos-repo-provider",
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
	// The leader's EndpointSlice and the bridges name exactly this port.
	if p := kernel.Spec.Ports[0]; len(kernel.Spec.Ports) != 1 || p.Name != "https" || p.Port != 8444 || p.TargetPort.IntVal != 8444 {
		t.Errorf("the kernel Service has the ports %+v, want https, 8444 inside and outside", kernel.Spec.Ports)
	}
}
