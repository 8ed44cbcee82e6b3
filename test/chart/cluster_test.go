package chart

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// world is the namespace of the tests on an API server.
const world = "team-atlas"

// The people of the tests. What each may do is in [people].
const (
	admin   = "admin"  // the standard role admin in the world
	editor  = "editor" // the standard role edit in the world
	viewer  = "viewer" // the standard role view in the world
	issuer  = "issuer" // edit, and may issue alice's grants
	runner  = "runner" // edit, and may run turns as assistant
	manager = "system:serviceaccount:" + namespace + ":sharedos-manager"
	kubelet = "system:node:one"
)

// cluster is an API server with the chart's definitions, roles and policies.
type cluster struct {
	config *rest.Config
	admin  client.Client
}

// startCluster starts an API server, or skips the test where there is none to start.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if os.Getenv("SHAREDOS_FORBID_SKIP") == "1" {
			t.Fatal("KUBEBUILDER_ASSETS is not set, and SHAREDOS_FORBID_SKIP=1 forbids skipping")
		}
		t.Skip("KUBEBUILDER_ASSETS is not set: the policies are not tried on an API server")
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(chartPath, "files", "crds")}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	config.QPS, config.Burst = -1, -1
	c := &cluster{config: config}
	c.admin = c.client(t, "")
	c.setUp(t)
	return c
}

// client acts as user, or as the cluster's administrator when user is empty.
func (c *cluster) client(t *testing.T, user string) client.Client {
	t.Helper()
	s, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.New(c.as(user), client.Options{Scheme: s})
	if err != nil {
		t.Fatalf("make client of %s: %v", user, err)
	}
	return result
}

// as answers a configuration that impersonates user.
func (c *cluster) as(user string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = user
	if strings.HasPrefix(user, "system:node:") {
		config.Impersonate.Groups = []string{"system:nodes", "system:authenticated"}
	}
	return config
}

// setUp creates the world, who may do what in it, and the chart's policies, and
// waits until the API server enforces all of it.
func (c *cluster) setUp(t *testing.T) {
	t.Helper()
	for _, name := range []string{namespace, world} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: world}})
	for _, object := range render(t, "") {
		switch object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding,
			*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			c.create(t, object.(client.Object))
		}
	}
	c.bindPeople(t)
	c.waitForEnforcement(t)
}

func (c *cluster) bindPeople(t *testing.T) {
	t.Helper()
	// envtest runs no controllers, so nothing aggregates roles: the tests bind what
	// aggregation would give. TestAggregation checks the labels.
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "core"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}})
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "statuses"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"sharedos.dev"}, Resources: []string{"turns/status", "grants/status"}, Verbs: []string{"get", "patch", "update"}},
	}})
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alices-issuer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"sharedos.dev"}, Resources: []string{"principals"}, ResourceNames: []string{"alice"}, Verbs: []string{"issue"}},
	}})
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "assistants-user"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"sharedos.dev"}, Resources: []string{"principals"}, ResourceNames: []string{"assistant"}, Verbs: []string{"use"}},
	}})
	for user, roles := range map[string][]string{
		admin:   {"core", "statuses", "sharedos-viewer", "sharedos-editor", "sharedos-issuer", "sharedos-agent", "sharedos-admin"},
		editor:  {"core", "statuses", "sharedos-viewer", "sharedos-editor"},
		viewer:  {"sharedos-viewer"},
		issuer:  {"core", "sharedos-editor", "alices-issuer"},
		runner:  {"core", "sharedos-editor", "assistants-user"},
		kubelet: {"core"},
		manager: {"core"},
	} {
		for _, role := range roles {
			c.create(t, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: world, Name: strings.ReplaceAll(user, ":", ".") + "-" + role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			})
		}
	}
}

// waitForEnforcement tries, per policy, something that it must refuse until it does.
// The API server takes policies up in the background.
func (c *cluster) waitForEnforcement(t *testing.T) {
	t.Helper()
	c.create(t, grant("probe", "alice"))
	c.create(t, turn("probe", "assistant", ""))
	pod := harnessPod("probe")
	c.create(t, pod)
	probes := map[string]func(context.Context) error{
		"issue": func(ctx context.Context) error {
			return c.client(t, editor).Create(ctx, grant("probe-2", "alice"), client.DryRunAll)
		},
		"use": func(ctx context.Context) error {
			return c.client(t, editor).Create(ctx, turn("probe-2", "assistant", ""), client.DryRunAll)
		},
		"status": func(ctx context.Context) error { return patchStatus(ctx, c.client(t, editor), grant("probe", "alice")) },
		"turn-finalizer": func(ctx context.Context) error {
			return c.client(t, editor).Patch(ctx, turn("probe", "assistant", ""), patch(`{"metadata":{"finalizers":["sharedos.dev/turn"]}}`), client.DryRunAll)
		},
		"harness-pod-create": func(ctx context.Context) error {
			bare := harnessPod("probe-2")
			bare.Spec.InitContainers = nil
			return c.client(t, editor).Create(ctx, bare, client.DryRunAll)
		},
		"harness-pod-update": func(ctx context.Context) error {
			return c.client(t, editor).Patch(ctx, harnessPod("probe"), patch(`{"metadata":{"labels":{"sharedos.dev/turn":"other"}}}`), client.DryRunAll)
		},
		"harness-pod-connect": func(ctx context.Context) error { return c.connect(ctx, t, editor, "probe", "exec") },
		"kernel-token": func(ctx context.Context) error {
			return c.client(t, editor).SubResource("token").Create(ctx, defaultAccount(), kernelToken())
		},
	}
	if want := len(list[*admissionv1.ValidatingAdmissionPolicy](render(t, ""))); len(probes) != want {
		t.Fatalf("%d probes for %d policies", len(probes), want)
	}
	for name, probe := range probes {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			return refusedBy(probe(ctx), "sharedos-"+name), nil
		})
		if err != nil {
			t.Fatalf("policy sharedos-%s is not enforced: %v; last answer: %v", name, err, probe(t.Context()))
		}
	}
}

func (c *cluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.admin.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// connect asks for a connection to a pod. There is no kubelet: an allowed request
// fails later, and not with Forbidden.
func (c *cluster) connect(ctx context.Context, t *testing.T, user, pod, how string) error {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(c.as(user))
	if err != nil {
		t.Fatal(err)
	}
	request := clientset.CoreV1().RESTClient().Post().Namespace(world).Resource("pods").Name(pod).SubResource(how)
	if how == "exec" || how == "attach" {
		request = request.Param("container", "harness").Param("command", "id")
	}
	return request.Do(ctx).Error()
}

// refusedBy says whether the policy, and not something else, refused.
func refusedBy(err error, policy string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusForbidden {
		return false
	}
	return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

func patch(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}

func patchStatus(ctx context.Context, c client.Client, object client.Object) error {
	return c.Status().Patch(ctx, object, patch(`{"status":{"observedGeneration":7}}`))
}

// object reads YAML into an object of any kind.
func object(format string, args ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object); err != nil {
		panic(err) // the tests' own text
	}
	return u
}

func grant(name, issuer string) *unstructured.Unstructured {
	return object(`
apiVersion: sharedos.dev/v1alpha1
kind: Grant
metadata: {name: %q, namespace: %q}
spec:
  issuer: %q
  subject: assistant
  capabilities:
  - {resource: {namespace: files, path: [Work]}, actions: [read], scope: descendants}
`, name, world, issuer)
}

func turn(name, principal, from string) *unstructured.Unstructured {
	t := object(`
apiVersion: sharedos.dev/v1alpha1
kind: Turn
metadata: {name: %q, namespace: %q}
spec:
  principal: %q
  message: {text: hello}
`, name, world, principal)
	if from != "" {
		_ = unstructured.SetNestedField(t.Object, from, "spec", "message", "from")
	}
	return t
}

// harnessPod is a pod as the injection leaves it.
func harnessPod(name string) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: world, Labels: map[string]string{"sharedos.dev/turn": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			// envtest leaves out the admission plugin that would fill this in.
			ServiceAccountName: "default",
			InitContainers: []corev1.Container{{
				Name: "sharedos-bridge", Image: "bridge:1", RestartPolicy: &always,
				VolumeMounts: []corev1.VolumeMount{{Name: "sharedos-kernel-token", MountPath: "/token"}},
			}},
			Containers: []corev1.Container{{Name: "harness", Image: "harness:1"}},
			Volumes: []corev1.Volume{{Name: "sharedos-kernel-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "sharedos-kernel", Path: "token"}}},
			}}}},
		},
	}
}
