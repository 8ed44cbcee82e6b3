package plugin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// objects names what is not Ready in the namespace, with what its condition says.
func (p *patient) objects(ctx context.Context) {
	var principals v1alpha1.PrincipalList
	var grants v1alpha1.GrantList
	var namespaces v1alpha1.ToolNamespaceList
	var harnesses v1alpha1.HarnessList
	for _, list := range []client.ObjectList{&principals, &grants, &namespaces, &harnesses} {
		err := p.client.List(ctx, list, client.InNamespace(p.namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return // a definition is missing, which has its own line
		}
		if err != nil {
			p.failed("objects of "+p.namespace, err, "")
			return
		}
	}
	healthy := 0
	judge := func(kind string, o client.Object, conditions []metav1.Condition, types []v1alpha1.ConditionType, mind func(string) bool) {
		for _, kindOf := range types {
			c := v1alpha1.FindCondition(conditions, kindOf)
			switch {
			case c == nil:
				p.say(kind+" "+o.GetName(), stateWarning, "the manager has not looked at it", "see the log of the manager")
				return
			case c.Status != metav1.ConditionTrue && mind(c.Reason):
				p.say(kind+" "+o.GetName(), stateFault, c.Reason+": "+c.Message, fixOf(c.Reason))
				return
			}
		}
		healthy++
	}
	every := func(string) bool { return true }
	ready := []v1alpha1.ConditionType{"Ready"}
	for i := range principals.Items {
		judge("Principal", &principals.Items[i], principals.Items[i].Status.Conditions, ready, every)
	}
	for i := range grants.Items {
		// A Grant that is over, or not begun, is in order.
		judge("Grant", &grants.Items[i], grants.Items[i].Status.Conditions, ready, func(reason string) bool {
			switch v1alpha1.ConditionReason(reason) {
			case v1alpha1.GrantReasonPrincipalNotFound, v1alpha1.GrantReasonParentNotFound, v1alpha1.GrantReasonDelegationInvalid:
				return true
			default:
				return false
			}
		})
	}
	for i := range namespaces.Items {
		if n := &namespaces.Items[i]; n.Spec.Enabled {
			judge("ToolNamespace", n, n.Status.Conditions, ready, every)
		}
	}
	for i := range harnesses.Items {
		judge("Harness", &harnesses.Items[i], harnesses.Items[i].Status.Conditions, ready, every)
	}
	p.ok("objects of "+p.namespace, "%s", fmt.Sprintf("%d are in order", healthy))
}

// fixOf says what to do about a reason.
func fixOf(reason string) string {
	switch v1alpha1.ConditionReason(reason) {
	case v1alpha1.PrincipalReasonDuplicateAddress:
		return "give each Principal an address of its own; an address cannot be changed, so delete one of them"
	case v1alpha1.PrincipalReasonDuplicateIdentity:
		return "list the identity with one Principal only"
	case v1alpha1.GrantReasonPrincipalNotFound, v1alpha1.PrincipalReasonAuthorityNotFound, v1alpha1.PrincipalReasonOwnerNotFound:
		return "create the Principal that it names, or correct the name"
	case v1alpha1.GrantReasonParentNotFound:
		return "create the parent Grant, or delete this one"
	case v1alpha1.GrantReasonDelegationInvalid:
		return "narrow it to what its parent gives: kubectl sharedos derive"
	case v1alpha1.PrincipalReasonHarnessNotFound:
		return "create the Harness that it names, or correct the name"
	default:
		return "do what the message says"
	}
}
