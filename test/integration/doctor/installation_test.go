package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	system   = "sharedos-system"
	address  = "10.1.2.3" // of the manager's pod
	leader   = "sharedos-manager-0_1"
	lifetime = 300 * 24 * time.Hour
)

// names of the certificate that webhooks and kernel are served with.
func names() []string {
	return []string{"sharedos-webhook." + system + ".svc", "sharedos-kernel." + system + ".svc"}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }

// install applies the manifests as they are shipped, and does what a running manager and
// the cluster's own controllers would do.
func install(ctx context.Context) error {
	if err := server.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return err
	}
	for _, path := range []string{"rbac/manager_roles.yaml", "rbac/user_roles.yaml", "manager/manager.yaml", "webhook/manifests.yaml", "webhook/policies.yaml"} {
		if err := apply(ctx, filepath.Join(root, "config", path)); err != nil {
			return err
		}
	}
	if err := certify(ctx); err != nil {
		return err
	}
	return start(ctx)
}

// apply creates the objects of a file.
func apply(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return file.Close()
		}
		if err == nil && len(object.Object) > 0 {
			err = server.client.Create(ctx, object)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
	}
}

// certify makes the certificates and tells the webhooks who signed them.
func certify(ctx context.Context) error {
	until := time.Now().Add(lifetime)
	ca, err := newAuthority(until)
	if err != nil {
		return err
	}
	for name, hosts := range map[string][]string{"sharedos-manager-tls": names(), "sharedos-files-provider-tls": {"sharedos-files-provider." + system + ".svc"}} {
		secret := &corev1.Secret{ObjectMeta: meta(name)}
		err := edit(ctx, secret, func() error {
			secret.Data, err = ca.issue(until, hosts...)
			return err
		})
		if err != nil {
			return err
		}
	}
	mutating, validating := injection(), validation()
	err = edit(ctx, mutating, func() error {
		mutating.Webhooks[0].ClientConfig.CABundle = ca.pem
		return nil
	})
	if err != nil {
		return err
	}
	return edit(ctx, validating, func() error {
		for i := range validating.Webhooks {
			validating.Webhooks[i].ClientConfig.CABundle = ca.pem
		}
		return nil
	})
}

func injection() *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-injection"}}
}

func validation() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-validation"}}
}

// start has one replica of the manager run and lead.
func start(ctx context.Context) error {
	set := &appsv1.StatefulSet{ObjectMeta: meta("sharedos-manager")}
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	set.Status.Replicas, set.Status.ReadyReplicas = 1, 1
	pod := &corev1.Pod{ObjectMeta: meta("sharedos-manager-0"), Spec: set.Spec.Template.Spec}
	pod.Labels = set.Spec.Template.Labels
	if err := errors.Join(server.client.Status().Update(ctx, set), server.client.Create(ctx, pod)); err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return errors.Join(
		server.client.Status().Update(ctx, pod),
		server.client.Create(ctx, endpoints("sharedos-webhook")), server.client.Create(ctx, endpoints("sharedos-kernel")),
		server.client.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta("sharedos-manager")}),
	)
}

// endpoints are those of a Service that the manager's pod is behind.
func endpoints(service string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta(service + "-1"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return slice
}

// renew has the leader give a sign of life now.
func renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: meta("sharedos-manager")}
	return edit(ctx, lease, func() error {
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new(leader), &metav1.MicroTime{Time: time.Now()}
		return nil
	})
}

// edit changes an object as it is now.
func edit(ctx context.Context, object client.Object, change func() error) error {
	if err := server.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("get %s: %w", object.GetName(), err)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("a copy is no object")
	}
	if err := change(); err != nil {
		return err
	}
	if err := server.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch %s: %w", object.GetName(), err)
	}
	return nil
}

// alter changes an object, with its status, until the test is over.
func alter[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	must(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatal("a copy is no object")
	}
	change(object)
	write(t.Context(), t, object)
	t.Cleanup(func() { write(context.Background(), t, before) })
}

// write updates an object, and its status if it has one, whatever it is now.
func write(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	now, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatal("a copy is no object")
	}
	updates := []func(client.Object) error{func(o client.Object) error { return server.client.Update(ctx, o) }}
	switch object.(type) {
	case *appsv1.StatefulSet, *corev1.Pod:
		updates = append(updates, func(o client.Object) error { return server.client.Status().Update(ctx, o) })
	}
	for _, update := range updates {
		if err := server.client.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
			t.Error(err)
		}
		next, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("a copy is no object")
		}
		next.SetResourceVersion(now.GetResourceVersion())
		if err := update(next); err != nil {
			t.Error(err)
		}
	}
}

// remove deletes an object until the test is over.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	must(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	must(t, server.client.Delete(t.Context(), object, client.GracePeriodSeconds(0)))
	t.Cleanup(func() {
		object.SetResourceVersion("")
		object.SetUID("")
		again, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("a copy is no object")
		}
		if err := server.client.Create(context.Background(), again); err != nil {
			t.Error(err)
		}
		object.SetUID(again.GetUID())
		write(context.Background(), t, object)
	})
}
