package injection_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/injection"
)

var (
	config = injection.Config{Image: "sidecar:1", KernelURL: "https://kernel.sys.svc:8444", KernelPort: 8444, KernelCA: "PEM"}
	target = injection.Target{Turn: "t", Harness: "claude-code"}
)

// pod is a harness pod that may run, as somebody would write it.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{v1alpha1.LabelTurn: "t"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "harness", Image: "h"}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func TestCheckNamesTheFieldAndTheFix(t *testing.T) {
	if errs := injection.Check(pod(), config, target); len(errs) != 0 {
		t.Fatalf("a good pod: %v", errs)
	}
	first := func(c func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { c(&p.Spec.Containers[0]) }
	}
	security := func(s corev1.SecurityContext) func(*corev1.Pod) {
		return first(func(c *corev1.Container) { c.SecurityContext = &s })
	}
	volume := func(v corev1.Volume) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, v) }
	}
	token := func(audience string) corev1.Volume {
		return corev1.Volume{Name: "mine", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "t"}}},
		}}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		field  string
	}{
		"host network":            {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "spec.hostNetwork"},
		"host PIDs":               {func(p *corev1.Pod) { p.Spec.HostPID = true }, "spec.hostPID"},
		"host IPC":                {func(p *corev1.Pod) { p.Spec.HostIPC = true }, "spec.hostIPC"},
		"shared PIDs":             {func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }, "spec.shareProcessNamespace"},
		"restarts":                {func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, "spec.restartPolicy"},
		"an API token":            {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }, "spec.automountServiceAccountToken"},
		"a projected API token":   {volume(token("")), "spec.volumes[0].projected.sources[0].serviceAccountToken.audience"},
		"the kernel's audience":   {volume(token(bridge.Audience)), "spec.volumes[0].projected.sources[0].serviceAccountToken.audience"},
		"the HTTP API's audience": {volume(token("sharedos")), "spec.volumes[0].projected.sources[0].serviceAccountToken.audience"},
		"a host path":             {volume(corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}), "spec.volumes[0].hostPath"},
		"our volume's name":       {volume(corev1.Volume{Name: v1alpha1.VolumeKernelToken}), "spec.volumes[0].name"},
		"the other volume":        {volume(corev1.Volume{Name: v1alpha1.VolumeShared}), "spec.volumes[0].name"},
		"privilege":               {security(corev1.SecurityContext{Privileged: new(true)}), "spec.containers[0].securityContext.privileged"},
		"a capability":            {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}), "spec.containers[0].securityContext.capabilities.add"},
		"unmasked proc":           {security(corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}), "spec.containers[0].securityContext.procMount"},
		"the token's mount":       {first(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: v1alpha1.VolumeKernelToken}} }), "spec.containers[0].volumeMounts[0].name"},
		"a writable share":        {first(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: v1alpha1.VolumeShared}} }), "spec.containers[0].volumeMounts[0].readOnly"},
		"our port":                {first(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: bridge.DefaultPort}} }), "spec.containers[0].ports[0].containerPort"},
		"a bad port":              {func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.AnnotationBridgePort: "80"} }, "metadata.annotations[sharedos.dev/bridge-port]"},
		"a container of our name": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: v1alpha1.ContainerBridge})
		}, "spec.containers[1].name"},
		"an init container of our name": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.ContainerBridge, Image: "evil"}}
		}, "spec.initContainers[0].name"},
		"an init container that mounts the token": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", VolumeMounts: []corev1.VolumeMount{{Name: v1alpha1.VolumeKernelToken}}}}
		}, "spec.initContainers[0].volumeMounts[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := injection.Check(pod(c.change), config, target)
			found := false
			for _, e := range errs {
				found = found || e.Field == c.field
			}
			if !found {
				t.Errorf("%v; want a refusal of %s", errs, c.field)
			}
		})
	}
}

func TestMutate(t *testing.T) {
	p := pod()
	injection.Mutate(p, config, target)
	sidecar := p.Spec.InitContainers[0]
	if sidecar.Name != v1alpha1.ContainerBridge || sidecar.Image != config.Image || *sidecar.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("sidecar %+v", sidecar)
	}
	if sidecar.StartupProbe == nil || sidecar.StartupProbe.Exec == nil {
		t.Error("no exec startup probe: the harness would start before its tools")
	}
	harness := p.Spec.Containers[0]
	want := []corev1.EnvVar{
		{Name: bridge.EnvTurn, Value: "t"},
		{Name: bridge.EnvMCPURL, Value: fmt.Sprintf("http://127.0.0.1:%d/mcp", bridge.DefaultPort)},
		{Name: bridge.EnvMCPConfig, Value: "/sharedos/mcp/.mcp.json"},
		{Name: bridge.EnvMessage, Value: bridge.MessageFile},
	}
	if diff := cmp.Diff(want, harness.Env); diff != "" {
		t.Errorf("the harness's environment (-want +got):\n%s", diff)
	}
	for _, m := range harness.VolumeMounts {
		if m.Name == v1alpha1.VolumeKernelToken || !m.ReadOnly {
			t.Errorf("the harness mounts %+v", m)
		}
	}
	for key, want := range map[string]string{
		"traffic.sidecar.istio.io/excludeOutboundPorts": "8444", "config.linkerd.io/skip-outbound-ports": "8444",
		v1alpha1.AnnotationInjectedBy: config.Image,
	} {
		if got := p.Annotations[key]; got != want {
			t.Errorf("annotation %s = %q, want %q", key, got, want)
		}
	}
}

func TestTheSidecarFollowsTheMesh(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	p := pod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "istio-init"}, {Name: "istio-proxy", RestartPolicy: &always}, {Name: "setup"},
		}
	})
	injection.Mutate(p, config, target)
	var names []string
	for i := range p.Spec.InitContainers {
		names = append(names, p.Spec.InitContainers[i].Name)
	}
	if diff := cmp.Diff([]string{"istio-init", "istio-proxy", v1alpha1.ContainerBridge, "setup"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestASecondPassChangesNothing injects many generated pods twice.
func TestASecondPassChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		p := generated(random)
		if errs := injection.Check(p, config, target); len(errs) != 0 {
			t.Fatalf("pod %d: %v", i, errs)
		}
		injection.Mutate(p, config, target)
		once := p.DeepCopy()
		if errs := injection.Check(p, config, target); len(errs) != 0 {
			t.Fatalf("pod %d, injected: %v", i, errs)
		}
		injection.Mutate(p, config, target)
		if diff := cmp.Diff(once, p); diff != "" {
			t.Fatalf("pod %d changed (-once +twice):\n%s", i, diff)
		}
	}
}

// generated is a pod with some of what pods have.
func generated(r *rand.Rand) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return pod(func(p *corev1.Pod) {
		for i := range r.IntN(4) {
			c := corev1.Container{Name: fmt.Sprintf("init-%d", i)}
			if r.IntN(2) == 0 {
				c.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
		for i := range r.IntN(3) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
				Name: fmt.Sprintf("c-%d", i), Env: []corev1.EnvVar{{Name: bridge.EnvTurn, Value: "forged"}, {Name: "X", Value: "y"}},
			})
		}
		for i := range r.IntN(3) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v-%d", i)})
		}
		if r.IntN(2) == 0 {
			p.Annotations = map[string]string{
				v1alpha1.AnnotationBridgePort:                   "9000",
				"traffic.sidecar.istio.io/excludeOutboundPorts": strings.Repeat("15020,", r.IntN(3)) + "15021",
			}
		}
	})
}
