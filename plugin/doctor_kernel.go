package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endpoints are the addresses that are ready behind a Service.
func (p *patient) endpoints(ctx context.Context, namespace, service string) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	err := p.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		return nil, fmt.Errorf("list endpoints of %s: %w", service, err)
	}
	var ready []string
	for i := range list.Items {
		for _, endpoint := range list.Items[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
	}
	return ready, nil
}

// kernelService looks at the leader, which alone answers bridges. It announces itself, so
// an address may be that of a pod that is gone.
func (p *patient) kernelService(ctx context.Context) {
	const check = "kernel service"
	name := p.flag("kernel-service", p.base+"-kernel")
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.system, Name: name}, &corev1.Service{})
	if apierrors.IsNotFound(err) {
		p.say(check, stateFault, "there is no Service "+name+" in "+p.system, "install the chart again, or say where it is with --system-namespace")
		return
	}
	var ready []string
	if err == nil {
		ready, err = p.endpoints(ctx, p.system, name)
	}
	if err != nil {
		p.failed(check, err, "")
		return
	}
	if len(ready) == 0 {
		p.say(check, stateFault, "no leader answers at "+name, "the leader announces itself; see the log of the manager: "+p.managerLog())
		return
	}
	if !p.alive(ctx, ready) {
		p.say(check, stateFault, fmt.Sprintf("%s leads to %s, which is no pod of the manager that is ready", name, some(ready)),
			"bring a replica of the manager to Ready: the next leader corrects it")
		return
	}
	p.ok(check, "the leader answers at %s", name)
}

// alive reports whether one of the addresses is that of a manager that is ready. Who may
// not see pods gets the benefit of the doubt.
func (p *patient) alive(ctx context.Context, addresses []string) bool {
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, client.InNamespace(p.system), client.MatchingLabels{labelComponent: "manager"}); err != nil {
		return true
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isReady(pod) && slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool {
			return slices.Contains(addresses, ip.IP)
		}) {
			return true
		}
	}
	return false
}

// leaseName is the lease of every installation; it is in the installation's namespace.
const leaseName = "sharedos-manager"

// maxLeaseAge is how old the leader's last sign of life may be.
const maxLeaseAge = time.Minute

// lease looks at who leads, which only replicas do that were told to elect one.
func (p *patient) lease(ctx context.Context) {
	const check = "leader"
	if _, elects := p.given("leader-elect"); !elects {
		return
	}
	lease := &coordinationv1.Lease{}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.system, Name: leaseName}, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		p.failed(check, err, "")
		return
	}
	fix := "bring a replica of the manager to Ready, and see its log: " + p.managerLog()
	if err != nil || lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		p.say(check, stateFault, "nobody holds the lease "+leaseName+", so nothing is reconciled and no turn starts", fix)
		return
	}
	age := p.now().Sub(lease.Spec.RenewTime.Time)
	switch {
	case age > maxLeaseAge:
		p.say(check, stateFault, fmt.Sprintf("the lease %s was last renewed %s ago, by %s", leaseName, age.Round(time.Second), *lease.Spec.HolderIdentity), fix)
	case age < -maxSkew:
		p.say(check, stateFault, fmt.Sprintf("the clock of %s is %s ahead of the API server's", *lease.Spec.HolderIdentity, -age.Round(time.Second)),
			"synchronise the clocks of the nodes with a time server; windows of Grants depend on it")
	default:
		p.ok(check, "%s", *lease.Spec.HolderIdentity)
	}
}
