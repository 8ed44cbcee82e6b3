package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// maxSkew is how far the clocks may be apart. Grants and tokens are judged by time.
const maxSkew = 30 * time.Second

// reachable asks the API server for its version, and compares the clocks.
func (p *patient) reachable(ctx context.Context) bool {
	const check = "API server"
	info, err := p.set.Discovery().ServerVersion()
	if err != nil {
		p.say(check, stateFault, err.Error(), "check the kubeconfig, its context and the network: kubectl version")
		return false
	}
	p.ok(check, "Kubernetes %s", info.GitVersion)
	skew, err := p.skew(ctx)
	switch {
	case err != nil:
		p.say("clock", stateUnknown, err.Error(), "")
	case skew > maxSkew || skew < -maxSkew:
		p.say("clock", stateFault, fmt.Sprintf("this machine and the API server are %s apart", skew.Round(time.Second)),
			"synchronise both with a time server; windows of Grants depend on it")
	default:
		p.ok("clock", "within %s of this machine's", maxSkew)
	}
	return true
}

// skew reads the instant that the API server writes on an answer.
func (p *patient) skew(ctx context.Context) (time.Duration, error) {
	config, err := p.env.config()
	if err != nil {
		return 0, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return 0, fmt.Errorf("find the API server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("ask the API server: %w", err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask the API server: %w", err)
	}
	defer resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, errors.New("the API server does not say what time it is")
	}
	return p.env.clock().Sub(at), nil
}

// definitions looks at the five resource definitions.
func (p *patient) definitions(ctx context.Context) {
	const check, fix = "resource definitions", "install the chart with crds.install=true"
	missing := []string{}
	for _, plural := range []string{"principals", "grants", "toolnamespaces", "harnesses", "turns"} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		err := p.client.Get(ctx, client.ObjectKey{Name: plural + "." + v1alpha1.GroupName}, object)
		switch {
		case apierrors.IsForbidden(err):
			p.served(check, fix)
			return
		case apierrors.IsNotFound(err), err == nil && !established(object):
			missing = append(missing, plural)
		case err != nil:
			p.failed(check, err, fix)
			return
		}
	}
	if len(missing) > 0 {
		p.say(check, stateFault, "missing or not established: "+strings.Join(missing, ", "), fix)
		return
	}
	p.ok(check, "all five are established")
}

// served asks what is served, for those who may not read definitions.
func (p *patient) served(check, fix string) {
	list, err := p.set.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		p.failed(check, err, fix)
		return
	}
	p.ok(check, "%s is served with %d resources", v1alpha1.GroupVersion, len(list.APIResources))
}

func established(object *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// The labels of the installation's objects.
const (
	labelComponent = "app.kubernetes.io/component"
	labelVersion   = "app.kubernetes.io/version"
)

// manager looks at the manager's replicas and its version.
func (p *patient) manager(ctx context.Context) {
	const check = "manager"
	var list appsv1.StatefulSetList
	err := p.client.List(ctx, &list, client.InNamespace(p.system), client.MatchingLabels{labelComponent: "manager"})
	if err != nil {
		p.failed(check, err, "kubectl -n "+p.system+" get statefulsets")
		return
	}
	if len(list.Items) == 0 {
		p.say(check, stateFault, "there is none in namespace "+p.system, "install the chart, or say where it is with --system-namespace")
		return
	}
	for i := range list.Items {
		set := &list.Items[i]
		want := int32(1)
		if set.Spec.Replicas != nil {
			want = *set.Spec.Replicas
		}
		if set.Status.ReadyReplicas < want || want == 0 {
			p.say(check, stateFault, fmt.Sprintf("%d of %d replicas of %s are ready", set.Status.ReadyReplicas, want, set.Name),
				"kubectl -n "+p.system+" describe pods -l "+labelComponent+"=manager")
		} else {
			p.ok(check, "%d of %d replicas of %s are ready", set.Status.ReadyReplicas, want, set.Name)
		}
		p.versions(set.Labels[labelVersion])
	}
}

func (p *patient) versions(installed string) {
	mine := version()
	switch {
	case installed == "" || mine == "dev":
		p.say("version", stateUnknown, fmt.Sprintf("installed %q, plugin %q", installed, mine), "")
	case strings.TrimPrefix(installed, "v") != strings.TrimPrefix(mine, "v"):
		p.say("version", stateWarning, fmt.Sprintf("installed %s, plugin %s", installed, mine), "use the plugin of the installed version")
	default:
		p.ok("version", "%s", installed)
	}
}

// rights asks what the caller may do in the namespace.
func (p *patient) rights(ctx context.Context) {
	for _, need := range []struct{ verb, resource, what, role string }{
		{"list", "principals", "ask what is allowed", "sharedos-viewer"},
		{"list", "grants", "ask what is allowed", "sharedos-viewer"},
		{"list", "toolnamespaces", "ask which tools there are", "sharedos-viewer"},
		{"create", "turns", "run agents", "sharedos-editor"},
		{"create", "grants", "approve and derive", "sharedos-editor and sharedos-issuer"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.namespace, Verb: need.verb, Group: v1alpha1.GroupName, Resource: need.resource,
			},
		}}
		answer, err := p.set.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		check := "your rights: " + need.verb + " " + need.resource
		switch {
		case err != nil:
			p.failed(check, err, "")
		case !answer.Status.Allowed:
			p.say(check, stateWarning, "you may not, so you cannot "+need.what+" in "+p.namespace, "bind a ClusterRole such as "+need.role)
		default:
			p.ok(check, "yes, in %s", p.namespace)
		}
	}
}
