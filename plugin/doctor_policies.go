package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/config/webhook"
)

// policies looks for the admission policies without which RBAC alone decides.
func (p *patient) policies(ctx context.Context) {
	const check, fix = "admission policies", "install the chart with admissionPolicies.enabled=true"
	shipped, err := shippedPolicies()
	if err != nil {
		p.failed(check, err, fix)
		return
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	for _, list := range []client.ObjectList{&policies, &bindings} {
		if err := p.client.List(ctx, list); err != nil {
			p.failed(check, err, fix)
			return
		}
	}
	denying := map[string]bool{}
	for i := range bindings.Items {
		if slices.Contains(bindings.Items[i].Spec.ValidationActions, admissionv1.Deny) {
			denying[bindings.Items[i].Spec.PolicyName] = true
		}
	}
	closed := map[string]bool{} // by name: whether a fault of the policy denies
	for i := range policies.Items {
		policy := policies.Items[i].Spec.FailurePolicy
		closed[policies.Items[i].Name] = policy == nil || *policy == admissionv1.Fail
	}
	wrong := []string{}
	for _, suffix := range shipped {
		name := p.base + "-" + suffix
		failsClosed, there := closed[name]
		switch {
		case !there:
			wrong = append(wrong, suffix+" is missing")
		case !denying[name]:
			wrong = append(wrong, suffix+" has no binding that denies")
		case !failsClosed:
			wrong = append(wrong, "the failurePolicy of "+suffix+" is not Fail")
		}
	}
	if len(wrong) > 0 {
		p.say(check, stateFault, some(wrong)+": RBAC alone decides what they are to refuse", fix)
		return
	}
	p.ok(check, "all %d are enforced", len(shipped))
}

// shippedPolicies are the names of the policies without the release's prefix.
func shippedPolicies() ([]string, error) {
	var out []string
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(webhook.Policies()), len(webhook.Policies()))
	for {
		var object metav1.PartialObjectMetadata
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the shipped policies: %w", err)
		}
		if object.Kind == "ValidatingAdmissionPolicy" {
			out = append(out, strings.TrimPrefix(object.Name, release+"-"))
		}
	}
}
