package injection

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
)

// Config is what the operator decides about every sidecar.
type Config struct {
	// Image is the bridge sidecar's image.
	Image string
	// PullPolicy of the sidecar's image; empty leaves Kubernetes' default.
	PullPolicy corev1.PullPolicy
	// KernelURL is the kernel service, https://name.namespace.svc:port.
	KernelURL string
	// KernelPort is excluded from a service mesh's redirection.
	KernelPort int
	// KernelCA is the PEM bundle that signs the kernel service's certificate.
	KernelCA string
	// Resources of the sidecar.
	Resources corev1.ResourceRequirements
}

// Target says which Turn a pod runs for.
type Target struct {
	// Turn is the Turn's name.
	Turn string
	// Harness is the Harness' type; it decides the connection file.
	Harness string
}

const (
	// tokenExpirySeconds is the least that Kubernetes takes. The kubelet replaces the
	// token after four fifths of it.
	tokenExpirySeconds = 600
	sidecarUID         = 65532
	sidecarBinary      = "/bridge-sidecar"
	// startupFailures bounds the wait for the kernel. A probe waits up to three
	// seconds for the bridge, so this is five minutes.
	startupFailures = 100
)

// Mutate adds the sidecar and its volumes to the pod. Applied again to its own
// result it changes nothing. The pod must have passed [Check].
func Mutate(pod *corev1.Pod, cfg Config, target Target) {
	port := bridgePort(pod)
	insertSidecar(pod, sidecarContainer(cfg, target, port))
	setVolume(pod, sharedVolume())
	setVolume(pod, tokenVolume())
	for i := range pod.Spec.Containers {
		shareWith(&pod.Spec.Containers[i], target, port)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[v1alpha1.AnnotationInjectedBy] = cfg.Image
	excludeFromMesh(pod, cfg.KernelPort)
}

// sidecarContainer is the whole sidecar: passing Pod Security "restricted".
func sidecarContainer(cfg Config, target Target, port int) corev1.Container {
	return corev1.Container{
		Name:            v1alpha1.ContainerBridge,
		Image:           cfg.Image,
		ImagePullPolicy: cfg.PullPolicy,
		Command:         []string{sidecarBinary},
		Args:            []string{"serve"},
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			{Name: bridge.EnvKernelURL, Value: cfg.KernelURL},
			{Name: bridge.EnvKernelCA, Value: cfg.KernelCA},
			{Name: bridge.EnvTurn, Value: target.Turn},
			{Name: bridge.EnvBridgePort, Value: strconv.Itoa(port)},
		},
		Resources: cfg.Resources,
		VolumeMounts: []corev1.VolumeMount{
			{Name: v1alpha1.VolumeShared, MountPath: bridge.SharedDir},
			{Name: v1alpha1.VolumeKernelToken, MountPath: path.Dir(bridge.TokenFile), ReadOnly: true},
		},
		StartupProbe: &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{sidecarBinary, "probe"}}},
			PeriodSeconds:    1,
			TimeoutSeconds:   5,
			FailureThreshold: startupFailures,
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot:             new(true),
			RunAsUser:                ptr.To[int64](sidecarUID),
			RunAsGroup:               ptr.To[int64](sidecarUID),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// insertSidecar replaces the sidecar, or puts it after the last restartable init
// container (a service mesh's proxy must run first), else first.
func insertSidecar(pod *corev1.Pod, sidecar corev1.Container) {
	inits := pod.Spec.InitContainers
	if at := indexContainer(inits, sidecar.Name); at >= 0 {
		keepServerFields(&sidecar, &inits[at])
		inits[at] = sidecar
		return
	}
	at := 0
	for i := range inits {
		if isRestartable(&inits[i]) {
			at = i + 1
		}
	}
	pod.Spec.InitContainers = slices.Insert(inits, at, sidecar)
}

// keepServerFields carries over what the API server defaulted, and mounts other
// admission plugins added, so that a second pass is not a change.
func keepServerFields(fresh, old *corev1.Container) {
	fresh.TerminationMessagePath = old.TerminationMessagePath
	fresh.TerminationMessagePolicy = old.TerminationMessagePolicy
	if fresh.ImagePullPolicy == "" {
		fresh.ImagePullPolicy = old.ImagePullPolicy
	}
	if old.StartupProbe != nil {
		fresh.StartupProbe.SuccessThreshold = old.StartupProbe.SuccessThreshold
	}
	for _, m := range old.VolumeMounts {
		if !slices.ContainsFunc(fresh.VolumeMounts, func(f corev1.VolumeMount) bool { return f.MountPath == m.MountPath }) {
			fresh.VolumeMounts = append(fresh.VolumeMounts, m)
		}
	}
}

func sharedVolume() corev1.Volume {
	return corev1.Volume{
		Name:         v1alpha1.VolumeShared,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}
}

func tokenVolume() corev1.Volume {
	return corev1.Volume{
		Name: v1alpha1.VolumeKernelToken,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To[int32](0o444),
			Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience:          bridge.Audience,
					ExpirationSeconds: ptr.To[int64](tokenExpirySeconds),
					Path:              path.Base(bridge.TokenFile),
				},
			}},
		}},
	}
}

func setVolume(pod *corev1.Pod, v corev1.Volume) {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == v.Name {
			pod.Spec.Volumes[i] = v
			return
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
}

// shareWith mounts the shared volume read-only and sets the harness's environment.
func shareWith(c *corev1.Container, target Target, port int) {
	mount := corev1.VolumeMount{Name: v1alpha1.VolumeShared, MountPath: bridge.SharedDir, ReadOnly: true}
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == mount.Name }) {
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	setEnv(c, bridge.EnvTurn, target.Turn)
	setEnv(c, bridge.EnvMCPURL, "http://127.0.0.1:"+strconv.Itoa(port)+"/mcp")
	setEnv(c, bridge.EnvMCPConfig, path.Join(bridge.ConfigDir, bridge.ConfigFileName(target.Harness)))
	setEnv(c, bridge.EnvMessage, bridge.MessageFile)
}

func setEnv(c *corev1.Container, name, value string) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			c.Env[i] = corev1.EnvVar{Name: name, Value: value}
			return
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

// Annotations by which service meshes leave a port alone.
var meshExclusions = []string{
	"traffic.sidecar.istio.io/excludeOutboundPorts",
	"config.linkerd.io/skip-outbound-ports",
}

// excludeFromMesh keeps the kernel's port out of a mesh's redirection: the
// sidecar authenticates the kernel itself, and starts before some proxies.
func excludeFromMesh(pod *corev1.Pod, port int) {
	if port == 0 {
		return
	}
	want := strconv.Itoa(port)
	for _, key := range meshExclusions {
		ports := strings.FieldsFunc(pod.Annotations[key], func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.Contains(ports, want) {
			pod.Annotations[key] = strings.Join(append(ports, want), ",")
		}
	}
}

func isRestartable(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func indexContainer(cs []corev1.Container, name string) int {
	return slices.IndexFunc(cs, func(c corev1.Container) bool { return c.Name == name })
}

// bridgePort is the annotation's port, already checked, or the default.
func bridgePort(pod *corev1.Pod) int {
	if p, err := strconv.Atoi(pod.Annotations[v1alpha1.AnnotationBridgePort]); err == nil {
		return p
	}
	return bridge.DefaultPort
}
