package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions are what the manager keeps of the cluster, and how much of it.
func cacheOptions(namespace string) ctrlcache.Options {
	return ctrlcache.Options{
		// Who wrote which field is of no use here, and a third of what would be kept.
		DefaultTransform: ctrlcache.TransformStripManagedFields(),
		ByObject: map[client.Object]ctrlcache.ByObject{
			&corev1.Pod{}:    {Label: hasTurnLabel(), Transform: essential},
			&corev1.Secret{}: {Namespaces: map[string]ctrlcache.Config{namespace: {}}},
		},
	}
}

var _ cache.TransformFunc = essential

// essential leaves of a harness pod what the controllers look at: its metadata, its
// status, and which containers it has. Its environment and volumes are most of it.
func essential(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("a %T among the pods", object)
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy,
		InitContainers: named(pod.Spec.InitContainers), Containers: named(pod.Spec.Containers),
	}
	return pod, nil
}

func named(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		out[i] = corev1.Container{Name: containers[i].Name, RestartPolicy: containers[i].RestartPolicy}
	}
	return out
}
