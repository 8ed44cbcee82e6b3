package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// line is what doctor must say: the check and state, what the message begins with or
// contains, and what the fix contains.
type line struct{ check, state, message, fix string }

// TestHealthy: nothing is wrong, so nothing is found.
func TestHealthy(t *testing.T) {
	must(t, renew(t.Context()))
	expect(t, server.admin, 0, nil)
}

// TestBroken breaks one thing at a time: it is said with its fix, and nothing else is.
func TestBroken(t *testing.T) {
	const fault = "FAULT"
	for name, c := range map[string]struct {
		broken func(*testing.T)
		ahead  time.Duration
		want   []line
	}{
		"another authority in a webhook": {
			broken: func(t *testing.T) {
				alter(t, injection(), func(o *admissionv1.MutatingWebhookConfiguration) {
					o.Webhooks[0].ClientConfig.CABundle = foreign(t, lifetime).pem
				})
			},
			want: []line{{"injection webhook", fault, "its CA bundle did not sign the certificate in Secret sharedos-manager-tls", "let nothing else do so"}},
		},
		"another authority in the other webhooks": {
			broken: func(t *testing.T) {
				alter(t, validation(), func(o *admissionv1.ValidatingWebhookConfiguration) {
					o.Webhooks[0].ClientConfig.CABundle = foreign(t, lifetime).pem
				})
			},
			want: []line{{"validation webhook grant", fault, "its CA bundle did not sign the certificate", "let nothing else do so"}},
		},
		"no authority in a webhook": {
			broken: func(t *testing.T) {
				alter(t, injection(), func(o *admissionv1.MutatingWebhookConfiguration) { o.Webhooks[0].ClientConfig.CABundle = nil })
			},
			want: []line{{"injection webhook", fault, "its CA bundle is empty", "kubectl -n sharedos-system logs"}},
		},
		"an authority that expired": {
			broken: func(t *testing.T) {
				alter(t, injection(), func(o *admissionv1.MutatingWebhookConfiguration) {
					o.Webhooks[0].ClientConfig.CABundle = foreign(t, -time.Hour).pem
				})
			},
			want: []line{{"injection webhook", fault, "its CA bundle expired at 20", "kubectl -n sharedos-system logs"}},
		},
		"a webhook that may be away": {
			broken: func(t *testing.T) {
				alter(t, injection(), func(o *admissionv1.MutatingWebhookConfiguration) {
					o.Webhooks[0].FailurePolicy = new(admissionv1.Ignore)
				})
			},
			want: []line{{"injection webhook", fault, "its failurePolicy is not Fail: a harness pod could start without", "install the chart again"}},
		},
		"no webhooks": {
			broken: func(t *testing.T) {
				remove(t, injection())
				remove(t, validation())
			},
			want: []line{
				{"injection webhook", fault, "there is none", "install the chart again"},
				{"validation webhook grant", fault, "there is none", "install the chart again"},
				{"validation webhook principal", fault, "there is none", "install the chart again"},
			},
		},
		"a certificate that expired": {
			broken: func(t *testing.T) { certificate(t, -time.Hour, names()...) },
			want:   []line{{"certificates", fault, "sharedos-manager-tls expired at 20", "kubectl -n sharedos-system patch secret sharedos-manager-tls"}},
		},
		"a certificate that was not renewed": {
			broken: func(t *testing.T) { certificate(t, 24*time.Hour, names()...) },
			want:   []line{{"certificates", "warning", "sharedos-manager-tls expires at 20", "patch secret sharedos-manager-tls"}},
		},
		"a certificate for another name": {
			broken: func(t *testing.T) { certificate(t, lifetime, names()[1]) },
			want: []line{
				{"injection webhook", fault, "its CA bundle signed a certificate that is not for sharedos-webhook.sharedos-system.svc", ""},
				{"validation webhook grant", fault, "its CA bundle signed a certificate that is not for", ""},
				{"validation webhook principal", fault, "its CA bundle signed a certificate that is not for", ""},
			},
		},
		"no certificate": {
			broken: func(t *testing.T) {
				alter(t, &corev1.Secret{ObjectMeta: meta("sharedos-files-provider-tls")}, func(o *corev1.Secret) { o.Data = nil })
			},
			want: []line{{"certificates", fault, "sharedos-files-provider-tls holds no certificate", "the leader makes it"}},
		},
		"no Secret": {
			broken: func(t *testing.T) { remove(t, &corev1.Secret{ObjectMeta: meta("sharedos-manager-tls")}) },
			want:   []line{{"certificates", fault, "there is no Secret sharedos-manager-tls", "upgrade the chart"}},
		},
		"an older definition": {
			broken: func(t *testing.T) {
				alter(t, definition("turns"), func(o *unstructured.Unstructured) {
					status := schemaOf(t, o, "properties", "status", "properties")
					delete(status, "usage")
					delete(status, "escalation")
				})
			},
			want: []line{{"resource definitions", fault, "older than this plugin: turns lacks status.escalation, status.usage", "upgrade the chart with crds.install=true"}},
		},
		"a definition without a rule": {
			broken: func(t *testing.T) {
				alter(t, definition("grants"), func(o *unstructured.Unstructured) {
					delete(schemaOf(t, o, "properties", "spec"), "x-kubernetes-validations")
				})
			},
			want: []line{{"resource definitions", fault, "older than this plugin: grants lacks a rule about spec", "upgrade the chart"}},
		},
		"a definition without the version": {
			broken: func(t *testing.T) {
				alter(t, definition("harnesses"), func(o *unstructured.Unstructured) {
					stored := versionOf(t, o)
					other, _ := runtime.DeepCopyJSONValue(stored).(map[string]any)
					stored["served"], other["name"], other["storage"] = false, "v1alpha0", false
					must(t, unstructured.SetNestedSlice(o.Object, []any{stored, other}, "spec", "versions"))
				})
			},
			want: []line{{"resource definitions", fault, "older than this plugin: harnesses lacks version v1alpha1", "upgrade the chart"}},
		},
		"no binding of the manager": {
			broken: func(t *testing.T) {
				remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-manager"}})
			},
			want: []line{{"manager's rights", fault, "ServiceAccount sharedos-manager may not create/delete/get/list/patch/watch configmaps, ", "makes the roles and bindings sharedos-*"}},
		},
		"an older role of the manager": {
			broken: func(t *testing.T) {
				alter(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-manager"}}, func(o *rbacv1.ClusterRole) {
					for i, rule := range o.Rules {
						if rule.APIGroups[0] == "networking.k8s.io" {
							o.Rules = append(o.Rules[:i:i], o.Rules[i+1:]...)
							return
						}
					}
				})
			},
			want: []line{{"manager's rights", fault, "ServiceAccount sharedos-manager may not create/delete/get/list/patch/watch networkpolicies.networking.k8s.io", "install the chart again"}},
		},
		"no role for the lease": {
			broken: func(t *testing.T) { remove(t, &rbacv1.RoleBinding{ObjectMeta: meta("sharedos-leader-election")}) },
			want: []line{{
				"manager's rights", fault, "ServiceAccount sharedos-manager may not create/get/list/patch/update/watch leases.coordination.k8s.io in sharedos-system", "install the chart again",
			}},
		},
		"no lease": {
			broken: func(t *testing.T) { remove(t, &coordinationv1.Lease{ObjectMeta: meta("sharedos-manager")}) },
			want:   []line{{"leader", fault, "nobody holds the lease sharedos-manager", "bring a replica of the manager to Ready"}},
		},
		"a lease that nobody renews": {
			broken: func(t *testing.T) { renewed(t, -time.Hour-5*time.Second) },
			want:   []line{{"leader", fault, "the lease sharedos-manager was last renewed 1h0m", "bring a replica of the manager to Ready"}},
		},
		"the clock of the leader's node": {
			broken: func(t *testing.T) { renewed(t, time.Hour) },
			want:   []line{{"leader", fault, "the clock of " + leader + " is ", "time server"}},
		},
		"the clock of this machine": {
			broken: func(*testing.T) {}, ahead: -5*time.Minute - 5*time.Second,
			want: []line{{"clock", fault, "this machine is behind the API server by 5m", "time server"}},
		},
		"the clock of this machine, ahead": {
			broken: func(*testing.T) {}, ahead: 12 * time.Hour,
			want: []line{{"clock", fault, "this machine is ahead of the API server by 12h0m", "time server"}},
		},
		"nothing behind the webhooks": {
			broken: func(t *testing.T) {
				alter(t, endpoints("sharedos-webhook"), func(o *discoveryv1.EndpointSlice) { o.Endpoints[0].Conditions.Ready = new(false) })
			},
			want: []line{
				{"injection webhook", fault, "nothing answers at Service sharedos-system/sharedos-webhook", "bring a replica"},
				{"validation webhook grant", fault, "nothing answers at Service sharedos-system/sharedos-webhook", "bring a replica"},
				{"validation webhook principal", fault, "nothing answers at Service sharedos-system/sharedos-webhook", "bring a replica"},
			},
		},
		"nobody announced the kernel": {
			broken: func(t *testing.T) { remove(t, endpoints("sharedos-kernel")) },
			want:   []line{{"kernel service", fault, "no leader answers at sharedos-kernel", "kubectl -n sharedos-system logs"}},
		},
		"the kernel leads to a pod that is gone": {
			broken: func(t *testing.T) {
				alter(t, endpoints("sharedos-kernel"), func(o *discoveryv1.EndpointSlice) { o.Endpoints[0].Addresses = []string{"10.9.9.9"} })
			},
			want: []line{{"kernel service", fault, "sharedos-kernel leads to 10.9.9.9, which is no pod of the manager that is ready", "bring a replica"}},
		},
		"no Service of the kernel": {
			broken: func(t *testing.T) { remove(t, &corev1.Service{ObjectMeta: meta("sharedos-kernel")}) },
			want:   []line{{"kernel service", fault, "there is no Service sharedos-kernel in sharedos-system", "install the chart again"}},
		},
		"no policy": {
			broken: func(t *testing.T) {
				remove(t, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-kernel-token"}})
			},
			want: []line{{"admission policies", fault, "kernel-token is missing", "admissionPolicies.enabled=true"}},
		},
		"a policy that is not bound": {
			broken: func(t *testing.T) {
				remove(t, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-issue"}})
			},
			want: []line{{"admission policies", fault, "issue has no binding that denies", "admissionPolicies.enabled=true"}},
		},
		"a policy that only warns": {
			broken: func(t *testing.T) {
				alter(t, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "sharedos-use"}}, func(o *admissionv1.ValidatingAdmissionPolicyBinding) {
					o.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
				})
			},
			want: []line{{"admission policies", fault, "use has no binding that denies", "admissionPolicies.enabled=true"}},
		},
		"replicas that are not ready": {
			broken: func(t *testing.T) {
				alter(t, &appsv1.StatefulSet{ObjectMeta: meta("sharedos-manager")}, func(o *appsv1.StatefulSet) { o.Status.ReadyReplicas = 0 })
			},
			want: []line{{"manager", fault, "0 of 1 replicas of sharedos-manager are ready", "describe pods"}},
		},
		"another version": {
			broken: func(t *testing.T) {
				alter(t, &appsv1.StatefulSet{ObjectMeta: meta("sharedos-manager")}, func(o *appsv1.StatefulSet) { o.Labels["app.kubernetes.io/version"] = "9.9.9" })
			},
			want: []line{{"version", "unknown", `installed "9.9.9", plugin "dev"`, "make plugin"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, renew(t.Context()))
			c.broken(t)
			expect(t, server.admin, c.ahead, c.want)
		})
	}
}

// TestAnotherName: a release of another name calls its objects otherwise.
func TestAnotherName(t *testing.T) {
	must(t, renew(t.Context()))
	set := &appsv1.StatefulSet{ObjectMeta: meta("sharedos-manager")}
	remove(t, set)
	other := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "acme-sharedos-manager", Labels: set.Labels}, Spec: set.Spec}
	must(t, server.client.Create(t.Context(), other))
	t.Cleanup(func() { must(t, server.client.Delete(context.Background(), other)) })
	found, _ := examine(t, server.admin, 0)
	for _, f := range found {
		if f.Check == "admission policies" && !strings.HasPrefix(f.Message, "issue is missing, use is missing, ") {
			t.Errorf("the policies of another release were taken for its own: %+v", f)
		}
	}
}

// TestLooker: what the caller may not see is no fault.
func TestLooker(t *testing.T) {
	must(t, renew(t.Context()))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "looker"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"admissionregistration.k8s.io", "apps", "coordination.k8s.io", "discovery.k8s.io", "sharedos.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "looker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "looker"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "looker"}},
	}
	for _, object := range []client.Object{role, binding} {
		must(t, server.client.Create(t.Context(), object))
	}
	const hidden = "you may not look at it"
	expect(t, server.looker, 0, []line{
		{"manager's rights", "unknown", hidden, "--as-user"},
		{"certificates", "unknown", hidden, "--as-user"},
		{"your rights: create turns", "warning", "you may not", "sharedos-editor"},
		{"your rights: create grants", "warning", "you may not", "sharedos-issuer"},
	})
}

// expect compares all that is not ok, in order.
func expect(t *testing.T, kubeconfig string, ahead time.Duration, want []line) {
	t.Helper()
	found, code := examine(t, kubeconfig, ahead)
	var got []finding
	faulty := 0
	for _, f := range found {
		if f.State == "FAULT" {
			faulty = 1
		}
		if f.State != "ok" {
			got = append(got, f)
		}
	}
	if code != faulty {
		t.Errorf("exit code %d, want %d", code, faulty)
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("not found: %+v", want[i])
		case i >= len(want):
			t.Errorf("found too: %+v", got[i])
		case got[i].Check != want[i].check || got[i].State != want[i].state || !strings.HasPrefix(got[i].Message, want[i].message) ||
			got[i].Fix == "" || !strings.Contains(got[i].Fix, want[i].fix):
			t.Errorf("found %+v, want %+v", got[i], want[i])
		}
	}
}

// foreign is an authority that signed nothing here.
func foreign(t *testing.T, valid time.Duration) *authority {
	t.Helper()
	ca, err := newAuthority(time.Now().Add(valid))
	must(t, err)
	return ca
}

// certificate gives the manager another certificate, of an authority that the webhooks
// know, until the test is over.
func certificate(t *testing.T, valid time.Duration, hosts ...string) {
	t.Helper()
	ca := foreign(t, lifetime)
	data, err := ca.issue(time.Now().Add(valid), hosts...)
	must(t, err)
	alter(t, &corev1.Secret{ObjectMeta: meta("sharedos-manager-tls")}, func(o *corev1.Secret) { o.Data = data })
	alter(t, injection(), func(o *admissionv1.MutatingWebhookConfiguration) { o.Webhooks[0].ClientConfig.CABundle = ca.pem })
	alter(t, validation(), func(o *admissionv1.ValidatingWebhookConfiguration) {
		for i := range o.Webhooks {
			o.Webhooks[i].ClientConfig.CABundle = ca.pem
		}
	})
}

// renewed has the leader's last sign of life be at another time.
func renewed(t *testing.T, at time.Duration) {
	t.Helper()
	alter(t, &coordinationv1.Lease{ObjectMeta: meta("sharedos-manager")}, func(o *coordinationv1.Lease) {
		o.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(at)}
	})
}

func definition(plural string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	object.SetName(plural + ".sharedos.dev")
	return object
}

// versionOf is the definition's only version, to be changed in place.
func versionOf(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
	must(t, err)
	list, ok := versions.([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("not one version in %v", versions)
	}
	version, ok := list[0].(map[string]any)
	if !ok {
		t.Fatalf("no version in %v", versions)
	}
	return version
}

// schemaOf is a part of the schema, to be changed in place.
func schemaOf(t *testing.T, o *unstructured.Unstructured, path ...string) map[string]any {
	t.Helper()
	part, found, err := unstructured.NestedFieldNoCopy(versionOf(t, o), append([]string{"schema", "openAPIV3Schema"}, path...)...)
	must(t, err)
	out, ok := part.(map[string]any)
	if !found || !ok {
		t.Fatalf("no %v in the schema", path)
	}
	return out
}
