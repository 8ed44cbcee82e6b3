package chart

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func TestManagerFlags(t *testing.T) {
	manager := find[*appsv1.StatefulSet](t, render(t, ""), "sharedos-manager")
	want := []string{
		"--namespace=$(POD_NAMESPACE)", "--pod-name=$(POD_NAME)", "--pod-ip=$(POD_IP)",
		"--health-listen=:8081", "--metrics-listen=:8080", "--console-listen=127.0.0.1:8090", "--webhook-port=9443", "--kernel-port=8444",
		"--kernel-service=sharedos-kernel", "--webhook-service=sharedos-webhook",
		"--tls-secret=sharedos-manager-tls", "--provider-tls-secret=sharedos-files-provider-tls",
		"--provider-service=sharedos-files-provider,sharedos-repo-provider", "--token-secret=sharedos-execution-token",
		"--mutating-webhook=sharedos-injection", "--validating-webhook=sharedos-validation",
		"--sidecar-image=sharedos.dev/bridge-sidecar:dev", "--sidecar-image-pull-policy=IfNotPresent",
		"--leader-elect", "--audit-dir=/var/lib/sharedos/audit", "-v=0",
	}
	if diff := cmp.Diff(want, manager.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	manager = find[*appsv1.StatefulSet](t, render(t, `
images: {prefix: registry.example/team, tag: v1, pullPolicy: Always}
sidecar: {image: "other.example/side@sha256:aa", pullPolicy: Never}
webhook: {validation: {enabled: false}}
console: {enabled: false}
manager: {logLevel: 4, extraArgs: [--more]}
`), "sharedos-manager")
	container := manager.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example/team/manager:v1" || container.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("image = %s, %s", container.Image, container.ImagePullPolicy)
	}
	for _, flag := range []string{"--sidecar-image=other.example/side@sha256:aa", "--sidecar-image-pull-policy=Never", "--validating-webhook=", "--console-listen=0", "-v=4", "--more"} {
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

// What a provider takes operations from, and where the manager may dial, comes from
// the chart.
func TestProvidersAndEgress(t *testing.T) {
	all := render(t, everything)
	for _, name := range []string{"files-provider", "repo-provider"} {
		container := find[*appsv1.Deployment](t, all, "sharedos-"+name).Spec.Template.Spec.Containers[0]
		for _, want := range []string{"--client-names=sharedos-webhook.sharedos-system.svc", "--health-listen=:8081", "--client-ca=/client-ca/ca.crt"} {
			if !slices.Contains(container.Args, want) {
				t.Errorf("%s has no %s: %q", name, want, container.Args)
			}
		}
		if probe := container.ReadinessProbe; probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/readyz" {
			t.Errorf("%s: readiness %+v", name, probe)
		}
	}
	manager := find[*appsv1.StatefulSet](t, all, "sharedos-manager").Spec.Template.Spec.Containers[0]
	for _, want := range []string{"--egress-allow=127.0.0.0/8,::1", "--egress-only=10.0.0.0/8"} {
		if !slices.Contains(manager.Args, want) {
			t.Errorf("the manager has no %s: %q", want, manager.Args)
		}
	}
}

// TestMemoryIsCollectedBelowTheLimit: the Go runtime is told of nine tenths of it.
func TestMemoryIsCollectedBelowTheLimit(t *testing.T) {
	for limit, want := range map[string]string{"512Mi": "471859KiB", "1Gi": "943718KiB", "1000M": ""} {
		manager := find[*appsv1.StatefulSet](t, render(t, "manager: {resources: {limits: {memory: "+limit+"}}}"), "sharedos-manager")
		got := ""
		for _, e := range manager.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "GOMEMLIMIT" {
				got = e.Value
			}
		}
		if got != want {
			t.Errorf("of %s: %q, want %q", limit, got, want)
		}
	}
}
