package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/config/rbac"
)

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

// managerRights asks the API server whether the manager may do all that the shipped
// roles give it. Which objects give it the rights is not asked.
func (p *patient) managerRights(ctx context.Context) {
	const check = "manager's rights"
	if p.installed == nil {
		return
	}
	account := p.installed.Spec.Template.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	wanted, err := p.shippedRights()
	if err != nil {
		p.failed(check, err, "")
		return
	}
	lacking, err := p.refused(ctx, account, wanted)
	switch {
	case err != nil:
		p.failed(check, err, "")
	case len(lacking) > 0:
		p.say(check, stateFault, "ServiceAccount "+account+" may not "+some(lacking),
			"install the chart again: it makes the roles and bindings "+p.base+"-*; kubectl get clusterroles,clusterrolebindings "+p.base+"-manager shows what is there")
	default:
		p.ok(check, "ServiceAccount %s may do all of the %d things it needs", account, len(wanted))
	}
}

// shippedRights are the rights in the roles of the manager, each once.
func (p *patient) shippedRights() ([]authorizationv1.ResourceAttributes, error) {
	seen := map[authorizationv1.ResourceAttributes]bool{}
	var out []authorizationv1.ResourceAttributes
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(rbac.ManagerRoles()), len(rbac.ManagerRoles()))
	for {
		var role struct {
			metav1.TypeMeta `json:",inline"`
			Rules           []rbacv1.PolicyRule `json:"rules"`
		}
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the shipped roles: %w", err)
		}
		namespace := ""
		if role.Kind == "Role" {
			namespace = p.system
		}
		for i := range role.Rules {
			for _, right := range rightsOf(&role.Rules[i], namespace, p.base) {
				anywhere := right
				anywhere.Namespace = ""
				if !seen[right] && !seen[anywhere] {
					seen[right] = true
					out = append(out, right)
				}
			}
		}
	}
}

// rightsOf takes a rule apart. Names of the release's objects begin with base.
func rightsOf(rule *rbacv1.PolicyRule, namespace, base string) []authorizationv1.ResourceAttributes {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	out := make([]authorizationv1.ResourceAttributes, 0, len(rule.APIGroups)*len(rule.Resources)*len(names)*len(rule.Verbs))
	for _, group := range rule.APIGroups {
		for _, whole := range rule.Resources {
			resource, sub, _ := strings.Cut(whole, "/")
			for _, name := range names {
				if rest, ours := strings.CutPrefix(name, release+"-"); ours {
					name = base + "-" + rest
				}
				for _, verb := range rule.Verbs {
					out = append(out, authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: group, Resource: resource, Subresource: sub, Name: name, Verb: verb,
					})
				}
			}
		}
	}
	return out
}

// askers is how many questions are asked at once.
const askers = 8

// refused names what the ServiceAccount may not do, by resource.
func (p *patient) refused(ctx context.Context, account string, wanted []authorizationv1.ResourceAttributes) ([]string, error) {
	allowed, failures := make([]bool, len(wanted)), make([]error, len(wanted))
	next := make(chan int)
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for i := range next {
				allowed[i], failures[i] = p.may(ctx, account, &wanted[i])
			}
		})
	}
	for i := range wanted {
		next <- i
	}
	close(next)
	asking.Wait()
	verbs := map[string][]string{}
	for i := range wanted {
		if failures[i] != nil {
			return nil, failures[i]
		}
		if !allowed[i] {
			what := nameOfRight(&wanted[i])
			verbs[what] = append(verbs[what], wanted[i].Verb)
		}
	}
	out := make([]string, 0, len(verbs))
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		out = append(out, strings.Join(verbs[what], "/")+" "+what)
	}
	return out, nil
}

func (p *patient) may(ctx context.Context, account string, right *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + p.system + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + p.system, "system:authenticated"},
		ResourceAttributes: right,
	}}
	answer, err := p.set.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// nameOfRight says what a right is about: pods, turns.sharedos.dev/status, leases in a
// namespace.
func nameOfRight(right *authorizationv1.ResourceAttributes) string {
	name := right.Resource
	if right.Group != "" {
		name += "." + right.Group
	}
	if right.Subresource != "" {
		name += "/" + right.Subresource
	}
	if right.Name != "" {
		name += " " + right.Name
	}
	if right.Namespace != "" {
		name += " in " + right.Namespace
	}
	return name
}
