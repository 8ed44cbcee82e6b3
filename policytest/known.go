package policytest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/toolsource"
)

// reasons are what a denied case may name.
var reasons = []string{
	contract.CodeNoMatchingGrant, contract.CodeGrantExhausted, contract.CodeDelegationChainInvalid, contract.CodeDelegationChainUnverified,
	contract.CodeInvalidContext, contract.CodeInvalidRequest, contract.CodeAuthorityUnavailable, contract.CodeUsageStoreUnavailable,
	contract.CodeHostPolicyDenied, contract.CodeHostPolicyUnavailable, ReasonPrincipalNotReady, ReasonPurposeNotAllowed,
}

// known is what the objects of one world speak of. A case that expects a refusal proves
// nothing if it asks about a word that is only misspelt.
type known struct {
	actions, namespaces map[string]bool
	grants              map[string]*v1alpha1.Grant
}

// knownIn collects the words of a world: those of its Grants, of its tools, and of what
// the kernel itself asks.
func (p *Plan) knownIn(namespace string) known {
	k := known{
		actions:    map[string]bool{contract.ActionAny: true, contract.ActionInvoke: true, contract.ActionSend: true, contract.ActionRequest: true},
		namespaces: map[string]bool{contract.NamespaceExecution: true, contract.NamespaceMessaging: true, contract.NamespaceSharedOS: true},
		grants:     map[string]*v1alpha1.Grant{},
	}
	grants := p.Snapshot.Grants(namespace)
	for i := range grants {
		g := &grants[i]
		k.grants[g.Name] = g
		for _, c := range g.Spec.Capabilities {
			k.namespaces[string(c.Resource.Namespace)] = true
			for _, action := range c.Actions {
				k.actions[string(action)] = true
			}
		}
	}
	tools := p.Snapshot.ToolNamespaces(namespace)
	for i := range tools {
		for _, tool := range toolsource.Plane(&tools[i], nil) {
			k.namespaces[tool.Definition.RequiredCapability.Resource.Namespace] = true
			k.actions[tool.Definition.RequiredCapability.Action] = true
		}
		for _, tool := range tools[i].Spec.Tools {
			k.namespaces[string(tool.Requirement.Resource.Namespace)] = true
			k.actions[string(tool.Requirement.Action)] = true
		}
	}
	return k
}

// misspelt says which words of the cases nothing here knows.
func (p *Plan) misspelt() manifest.Faults {
	var faults manifest.Faults
	worlds := map[string]known{}
	for _, s := range p.Suites {
		k, there := worlds[s.Namespace]
		if !there {
			k = p.knownIn(s.Namespace)
			worlds[s.Namespace] = k
		}
		for i := range s.Cases {
			for _, message := range k.unknown(&s.Cases[i]) {
				faults = append(faults, manifest.Fault{
					Position: s.Cases[i].Position, Message: fmt.Sprintf("case %q: %s", s.Cases[i].Name, message),
				})
			}
		}
	}
	return faults
}

// unknown lists what a case names and is not there.
func (k known) unknown(c *Case) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Uses)) {
		if message := k.uses(name, c.Uses[name]); message != "" {
			out = append(out, "uses: "+message)
		}
	}
	if c.Grant != "" && k.grants[c.Grant] == nil {
		out = append(out, fmt.Sprintf("grant: there is no Grant %q", c.Grant))
	}
	if c.Reason != "" && !slices.Contains(reasons, c.Reason) {
		out = append(out, fmt.Sprintf("reason: no refusal has the reason %q; the usual one is %s", c.Reason, contract.CodeNoMatchingGrant))
	}
	if c.Need == nil || c.Allowed {
		return out // what is expected to be allowed fails by itself
	}
	if !k.actions[c.Need.Action] {
		out = append(out, fmt.Sprintf("action: no Grant and no tool here knows %q, so that it is denied proves nothing", c.Need.Action))
	}
	if namespace := c.Need.Resource.Namespace; !k.namespaces[namespace] {
		out = append(out, fmt.Sprintf("resource: no Grant and no tool here knows the namespace %q, so that it is denied proves nothing", namespace))
	}
	return out
}

// uses says why so many uses of that Grant cannot be spent.
func (k known) uses(name string, spent int64) string {
	g := k.grants[name]
	switch {
	case g == nil:
		return fmt.Sprintf("there is no Grant %q", name)
	case g.Spec.Constraints == nil || g.Spec.Constraints.MaxUses == nil:
		return fmt.Sprintf("the Grant %q has no maxUses", name)
	case spent < 0 || spent > *g.Spec.Constraints.MaxUses:
		return fmt.Sprintf("of the Grant %q 0 to %d uses can be spent, not %d", name, *g.Spec.Constraints.MaxUses, spent)
	}
	return ""
}
