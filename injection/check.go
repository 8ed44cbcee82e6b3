package injection

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
)

// Limits of the bridge port annotation.
const (
	minBridgePort = 1024
	maxBridgePort = 65535
)

// Check lists every reason why the pod must not run for a Turn; each names the
// field and the fix. An empty list means that [Mutate] may be applied.
//
// It refuses what would let another container see the sidecar's credentials or
// act around it: shared host namespaces, host paths, privileges, the operator's
// audience in any other volume, and the pod's own API credentials.
func Check(pod *corev1.Pod, cfg Config, target Target) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, checkPodLevel(&pod.Spec, spec)...)
	errs = append(errs, checkPort(pod)...)
	errs = append(errs, checkVolumes(pod, spec.Child("volumes"))...)
	errs = append(errs, checkSidecarName(pod, cfg, target, spec)...)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != v1alpha1.ContainerBridge {
			errs = append(errs, checkContainer(c, spec.Child("initContainers").Index(i))...)
		}
	}
	for i := range pod.Spec.Containers {
		errs = append(errs, checkContainer(&pod.Spec.Containers[i], spec.Child("containers").Index(i))...)
	}
	return errs
}

func checkPodLevel(s *corev1.PodSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.HostNetwork {
		errs = append(errs, field.Forbidden(p.Child("hostNetwork"), "the bridge listens on the pod's own loopback; remove hostNetwork"))
	}
	if s.HostPID {
		errs = append(errs, field.Forbidden(p.Child("hostPID"), "it would show the sidecar's files through /proc; remove hostPID"))
	}
	if s.HostIPC {
		errs = append(errs, field.Forbidden(p.Child("hostIPC"), "remove hostIPC"))
	}
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace {
		errs = append(errs, field.Forbidden(p.Child("shareProcessNamespace"), "it would show the sidecar's files through /proc; remove shareProcessNamespace"))
	}
	if s.RestartPolicy != corev1.RestartPolicyNever {
		errs = append(errs, field.Invalid(p.Child("restartPolicy"), s.RestartPolicy, "a turn runs once; set restartPolicy: Never (and backoffLimit: 0 on a Job)"))
	}
	if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		errs = append(errs, field.Invalid(p.Child("automountServiceAccountToken"), s.AutomountServiceAccountToken, "an agent acts through its grants, not through the Kubernetes API; set automountServiceAccountToken: false"))
	}
	return errs
}

func checkPort(pod *corev1.Pod) field.ErrorList {
	value, ok := pod.Annotations[v1alpha1.AnnotationBridgePort]
	path := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationBridgePort)
	port := bridge.DefaultPort
	if ok {
		n, err := strconv.Atoi(value)
		if err != nil || n < minBridgePort || n > maxBridgePort {
			return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be a port from %d to %d", minBridgePort, maxBridgePort))}
		}
		port = n
	}
	for i := range pod.Spec.Containers {
		for j, cp := range pod.Spec.Containers[i].Ports {
			if int(cp.ContainerPort) == port {
				return field.ErrorList{field.Invalid(
					field.NewPath("spec", "containers").Index(i).Child("ports").Index(j).Child("containerPort"), cp.ContainerPort,
					"the bridge listens here; move it with the annotation "+v1alpha1.AnnotationBridgePort)}
			}
		}
	}
	return nil
}

func checkVolumes(pod *corev1.Pod, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	injected := indexContainer(pod.Spec.InitContainers, v1alpha1.ContainerBridge) >= 0
	for i := range pod.Spec.Volumes {
		v, at := &pod.Spec.Volumes[i], p.Index(i)
		reserved := v.Name == v1alpha1.VolumeShared || v.Name == v1alpha1.VolumeKernelToken
		if reserved && !injected {
			errs = append(errs, field.Forbidden(at.Child("name"), "the name is reserved for the bridge; rename the volume"))
		}
		if v.HostPath != nil {
			errs = append(errs, field.Forbidden(at.Child("hostPath"), "a host path can reach the sidecar's credentials on the node; use another volume type"))
		}
		if v.Projected == nil || v.Name == v1alpha1.VolumeKernelToken {
			continue
		}
		for j, src := range v.Projected.Sources {
			if src.ServiceAccountToken != nil {
				errs = append(errs, checkProjectedToken(src.ServiceAccountToken, at.Child("projected", "sources").Index(j))...)
			}
		}
	}
	return errs
}

// checkProjectedToken refuses a token for the kernel, for the HTTP API and for the API
// server.
func checkProjectedToken(t *corev1.ServiceAccountTokenProjection, p *field.Path) field.ErrorList {
	switch t.Audience {
	case bridge.Audience:
		return field.ErrorList{field.Forbidden(p.Child("serviceAccountToken", "audience"), "only the sidecar may hold a token for the kernel; remove it")}
	case v1alpha1.AudienceAPI:
		return field.ErrorList{field.Forbidden(p.Child("serviceAccountToken", "audience"), "a token for the HTTP API lets the agent act beside its turn, which then bounds nothing; remove it")}
	case "":
		return field.ErrorList{field.Forbidden(p.Child("serviceAccountToken", "audience"), "a token for the Kubernetes API lets the agent act outside its grants; set an audience of its own or remove it")}
	}
	return nil
}

// checkSidecarName refuses a container that poses as the sidecar. A reinvocation
// sees our own sidecar again: what it runs and sees must be what we would inject.
func checkSidecarName(pod *corev1.Pod, cfg Config, target Target, p *field.Path) field.ErrorList {
	if i := indexContainer(pod.Spec.Containers, v1alpha1.ContainerBridge); i >= 0 {
		return field.ErrorList{field.Forbidden(p.Child("containers").Index(i).Child("name"), "the name is reserved for the bridge; rename the container")}
	}
	i := indexContainer(pod.Spec.InitContainers, v1alpha1.ContainerBridge)
	if i < 0 {
		return nil
	}
	got, want := &pod.Spec.InitContainers[i], sidecarContainer(cfg, target, bridgePort(pod))
	same := got.Image == want.Image && slices.Equal(got.Command, want.Command) && slices.Equal(got.Args, want.Args) &&
		isRestartable(got) && slices.EqualFunc(got.Env, want.Env, func(a, b corev1.EnvVar) bool {
		return a.Name == b.Name && a.Value == b.Value && a.ValueFrom == nil
	})
	if !same {
		return field.ErrorList{field.Forbidden(p.Child("initContainers").Index(i).Child("name"), "the name is reserved for the bridge; rename the container")}
	}
	return nil
}

func checkContainer(c *corev1.Container, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, m := range c.VolumeMounts {
		at := p.Child("volumeMounts").Index(i)
		if m.Name == v1alpha1.VolumeKernelToken {
			errs = append(errs, field.Forbidden(at.Child("name"), "only the sidecar may mount this volume; remove the mount"))
		}
		if m.Name == v1alpha1.VolumeShared && !m.ReadOnly {
			errs = append(errs, field.Forbidden(at.Child("readOnly"), "the shared volume is read-only for every container but the sidecar; remove the mount"))
		}
	}
	sc := c.SecurityContext
	if sc == nil {
		return errs
	}
	at := p.Child("securityContext")
	if sc.Privileged != nil && *sc.Privileged {
		errs = append(errs, field.Forbidden(at.Child("privileged"), "a privileged container can read the sidecar's credentials; remove privileged"))
	}
	if sc.Capabilities != nil && len(sc.Capabilities.Add) > 0 {
		errs = append(errs, field.Forbidden(at.Child("capabilities", "add"), "added capabilities can reach the sidecar; remove them"))
	}
	if sc.ProcMount != nil && *sc.ProcMount != corev1.DefaultProcMount {
		errs = append(errs, field.Forbidden(at.Child("procMount"), "use the default proc mount"))
	}
	return errs
}
