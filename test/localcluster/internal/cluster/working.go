package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/sharedos-dev/operator/test/localcluster/internal/kube"
	"github.com/sharedos-dev/operator/test/localcluster/internal/proc"
)

const (
	nodePath           = "/api/v1/nodes/" + NodeName
	dnsPath            = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
	serviceAccountPath = "/api/v1/namespaces/default/serviceaccounts/default"
)

// getter reads an API path into an object.
type getter interface {
	Get(ctx context.Context, path string, out any) error
}

// awaitWorking waits until a pod created now would start and find services.
func (c *Cluster) awaitWorking(ctx context.Context, client *kube.Client, kubelet proc.Record, p Programs) error {
	controllers, running := c.procs.Running("kube-controller-manager")
	if !running {
		return errors.New("kube-controller-manager ended; see " + c.logFile("kube-controller-manager"))
	}
	scheduler, running := c.procs.Running("kube-scheduler")
	if !running {
		return errors.New("kube-scheduler ended; see " + c.logFile("kube-scheduler"))
	}
	for _, step := range []struct {
		what  string
		by    proc.Record
		check func(context.Context) error
	}{
		{"kube-controller-manager to be ready", controllers, c.controllerManager(p).ready},
		{"kube-scheduler to be ready", scheduler, c.scheduler(p).ready},
		{"kubelet to be ready", kubelet, c.kubelet(p).ready},
		{"the node to be ready", kubelet, func(ctx context.Context) error { return nodeReady(ctx, client) }},
		{"the default service account", controllers, func(ctx context.Context) error { return client.Get(ctx, serviceAccountPath, nil) }},
		{"CoreDNS to be available", kubelet, func(ctx context.Context) error { return dnsAvailable(ctx, client) }},
		{"the kubelet to know its pods", kubelet, func(ctx context.Context) error { return podsKnown(ctx, client) }},
		{"names of services to resolve", kubelet, dnsAnswers},
	} {
		if err := c.await(ctx, step.what, daemonLimit, step.by, step.check); err != nil {
			return err
		}
	}
	return nil
}

func nodeReady(ctx context.Context, client getter) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key, Effect string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := client.Get(ctx, nodePath, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status != "True" {
			return fmt.Errorf("node is not ready: %s", condition.Message)
		}
		for _, taint := range node.Spec.Taints {
			if taint.Effect == "NoSchedule" || taint.Effect == "NoExecute" {
				return fmt.Errorf("node does not take pods yet: taint %s", taint.Key)
			}
		}
		return nil
	}
	return errors.New("node does not say whether it is ready")
}

func dnsAvailable(ctx context.Context, client getter) error {
	var deployment struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			ObservedGeneration int64
			UpdatedReplicas    int
			AvailableReplicas  int
		}
	}
	if err := client.Get(ctx, dnsPath, &deployment); err != nil {
		return err
	}
	s := deployment.Status
	if s.ObservedGeneration < deployment.Metadata.Generation || s.UpdatedReplicas < 1 || s.AvailableReplicas < 1 {
		return fmt.Errorf("%d of 1 pods of CoreDNS are available", s.AvailableReplicas)
	}
	return nil
}

// podsKnown asks the kubelet itself: right after it was started again the API
// server still tells what was before, and exec and logs fail.
func podsKnown(ctx context.Context, client getter) error {
	var pods struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if err := client.Get(ctx, nodePath+"/proxy/pods", &pods); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Metadata.Namespace == "kube-system" && strings.HasPrefix(pod.Metadata.Name, "coredns-") {
			return nil
		}
	}
	return fmt.Errorf("the kubelet knows %d pods, and none of CoreDNS", len(pods.Items))
}

// dnsAnswers asks the name server through its service, which also shows that
// this machine reaches services: API server and webhooks depend on it.
func dnsAnswers(ctx context.Context) error {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(dnsIP, "53"))
	}}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	if err != nil {
		return err
	}
	if len(addresses) != 1 || addresses[0] != serviceIP {
		return fmt.Errorf("the name of the API server resolves to %q, not %s", addresses, serviceIP)
	}
	return nil
}
