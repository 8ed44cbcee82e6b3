package translate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// ToolNamespaceID is the kernel's name of a ToolNamespace: a built-in family has
// the kernel's own, every other one its object's.
func ToolNamespaceID(n *v1alpha1.ToolNamespace) string {
	if n.Spec.Source.Builtin != "" {
		return string(n.Spec.Source.Builtin)
	}
	return n.Name
}

// EnabledToolNamespaces is the effective set for a Principal: enabled, selected,
// and not disabled by the Principal itself. It is product control, never authority.
func EnabledToolNamespaces(namespaces []v1alpha1.ToolNamespace, p *v1alpha1.Principal) ([]string, error) {
	enabled := []string{}
	for i := range namespaces {
		n := &namespaces[i]
		id := ToolNamespaceID(n)
		if !n.Spec.Enabled || Reserved(n) || slices.Contains(p.Spec.DisabledToolNamespaces, v1alpha1.LabelName(n.Name)) {
			continue
		}
		selected, err := Selects(n.Spec.PrincipalSelector, p)
		if err != nil {
			return nil, fmt.Errorf("spec.principalSelector of tool namespace %q: %w", n.Name, err)
		}
		if selected && !slices.Contains(enabled, id) {
			enabled = append(enabled, id)
		}
	}
	slices.Sort(enabled)
	return enabled, nil
}

// Reserved reports whether a ToolNamespace takes a built-in family's name without
// being it. Such a one is never enabled: it would switch the family on.
func Reserved(n *v1alpha1.ToolNamespace) bool {
	if n.Spec.Source.Builtin != "" {
		return false
	}
	return n.Name == string(v1alpha1.BuiltinSharedOS) || n.Name == string(v1alpha1.BuiltinMessages)
}

// Selects reports whether the selector selects the Principal. An empty one selects
// all; names and labels are alternatives.
func Selects(s *v1alpha1.PrincipalSelector, p *v1alpha1.Principal) (bool, error) {
	if s == nil {
		return true, nil
	}
	if slices.Contains(s.Names, v1alpha1.ObjectName(p.Name)) {
		return true, nil
	}
	if len(s.Names) > 0 && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector())
	if err != nil {
		return false, fmt.Errorf("parse labels: %w", err)
	}
	return selector.Matches(labels.Set(p.Labels)), nil
}
