package chart

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// An editor or viewer decides neither who exists nor which tools are on.
func TestRoles(t *testing.T) {
	all := render(t, "")
	editorRole := find[*rbacv1.ClusterRole](t, all, "sharedos-editor")
	viewerRole := find[*rbacv1.ClusterRole](t, all, "sharedos-viewer")
	for _, resource := range []string{"principals", "toolnamespaces"} {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection", "issue", "use"} {
			if allows(editorRole, resource, verb) || allows(viewerRole, resource, verb) {
				t.Errorf("an aggregated role allows %s on %s", verb, resource)
			}
		}
		if !allows(viewerRole, resource, "get") {
			t.Errorf("a viewer cannot get %s", resource)
		}
	}
	for name, resources := range map[string]map[string]string{
		"sharedos-issuer": {"principals": "issue", "grants": "create"},
		"sharedos-agent":  {"principals": "use", "turns": "create"},
		"sharedos-admin":  {"principals": "create", "toolnamespaces": "patch", "turns": "debug"},
	} {
		role := find[*rbacv1.ClusterRole](t, all, name)
		for resource, verb := range resources {
			if !allows(role, resource, verb) {
				t.Errorf("%s does not allow %s on %s", name, verb, resource)
			}
		}
	}
	for _, role := range list[*rbacv1.ClusterRole](all) {
		for _, resource := range []string{"turns/status", "grants/status"} {
			if !strings.HasSuffix(role.Name, "-manager") && allows(role, resource, "patch") {
				t.Errorf("%s allows patching %s", role.Name, resource)
			}
		}
	}
}

func TestAggregation(t *testing.T) {
	want := map[string]string{
		"sharedos-viewer": "view", "sharedos-editor": "edit", "sharedos-issuer": "admin", "sharedos-agent": "admin", "sharedos-admin": "admin",
	}
	for _, values := range []string{"", "rbac: {aggregate: false}"} {
		for _, role := range list[*rbacv1.ClusterRole](render(t, values)) {
			got := map[string]bool{}
			for label, value := range role.Labels {
				if into, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok && value == "true" {
					got[into] = true
				}
			}
			expected := want[role.Name]
			if values != "" {
				expected = ""
			}
			if (expected == "") != (len(got) == 0) || expected != "" && !got[expected] {
				t.Errorf("%q: %s is aggregated to %v, want %q", values, role.Name, got, expected)
			}
		}
	}
}

func allows(role *rbacv1.ClusterRole, resource, verb string) bool {
	for _, rule := range role.Rules {
		for _, r := range rule.Resources {
			for _, v := range rule.Verbs {
				if (r == resource || r == "*") && (v == verb || v == "*") {
					return true
				}
			}
		}
	}
	return false
}
