package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func principal(name string, change ...func(p *v1alpha1.Principal)) v1alpha1.Principal {
	p := v1alpha1.Principal{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, name)},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func serviceAccount(name string) func(*v1alpha1.Principal) {
	return func(p *v1alpha1.Principal) {
		p.Spec.Identities = append(p.Spec.Identities, v1alpha1.Identity{
			ServiceAccount: &v1alpha1.ServiceAccountIdentity{Name: v1alpha1.ObjectName(name), Namespace: "ns"},
		})
	}
}

func TestJudgePrincipal(t *testing.T) {
	owned := func(p *v1alpha1.Principal) { p.Spec.Owner = "nobody" }
	exercising := func(p *v1alpha1.Principal) { p.Spec.Authority = "nobody" }
	sameAddress := func(p *v1alpha1.Principal) { p.Spec.Address = v1alpha1.NewAddress(v1alpha1.AddressAgent, "a") }
	for name, c := range map[string]struct {
		all     []v1alpha1.Principal
		harness bool
		want    v1alpha1.ConditionReason
	}{
		"resolved":           {[]v1alpha1.Principal{principal("a"), principal("b")}, true, v1alpha1.PrincipalReasonResolved},
		"duplicate address":  {[]v1alpha1.Principal{principal("a"), principal("b", sameAddress)}, true, v1alpha1.PrincipalReasonDuplicateAddress},
		"no owner":           {[]v1alpha1.Principal{principal("a", owned)}, true, v1alpha1.PrincipalReasonOwnerNotFound},
		"no authority":       {[]v1alpha1.Principal{principal("a", exercising)}, true, v1alpha1.PrincipalReasonAuthorityNotFound},
		"no harness":         {[]v1alpha1.Principal{principal("a")}, false, v1alpha1.PrincipalReasonHarnessNotFound},
		"duplicate identity": {[]v1alpha1.Principal{principal("a", serviceAccount("sa")), principal("b", serviceAccount("sa"))}, true, v1alpha1.PrincipalReasonDuplicateIdentity},
		"other identity":     {[]v1alpha1.Principal{principal("a", serviceAccount("sa")), principal("b", serviceAccount("sb"))}, true, v1alpha1.PrincipalReasonResolved},
	} {
		t.Run(name, func(t *testing.T) {
			got := controllers.JudgePrincipal(&c.all[0], c.all, c.harness)
			if got.Reason != string(c.want) || (got.Status == metav1.ConditionTrue) != (c.want == v1alpha1.PrincipalReasonResolved) {
				t.Errorf("%s %s: %s; want %s", got.Status, got.Reason, got.Message, c.want)
			}
		})
	}
}

func grant(name string, change ...func(g *v1alpha1.Grant)) v1alpha1.Grant {
	g := v1alpha1.Grant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: v1alpha1.GrantSpec{
			Issuer: "a", Subject: "b",
			Capabilities: []v1alpha1.Capability{{
				Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{"Work"}},
				Actions:  []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeDescendants,
			}},
			Constraints: &v1alpha1.GrantConstraints{},
		},
	}
	for _, c := range change {
		c(&g)
	}
	return g
}

func TestJudgeGrant(t *testing.T) {
	principals := []v1alpha1.Principal{principal("a"), principal("b"), principal("c")}
	at := func(d time.Duration) v1alpha1.Timestamp { return v1alpha1.NewTimestamp(noon.Add(d)) }
	child := func(change ...func(g *v1alpha1.Grant)) v1alpha1.Grant {
		return grant("child", append([]func(g *v1alpha1.Grant){func(g *v1alpha1.Grant) {
			g.Spec.ParentGrant, g.Spec.Issuer, g.Spec.Subject = "parent", "b", "c"
		}}, change...)...)
	}
	parent := func(depth int64, change ...func(g *v1alpha1.Grant)) v1alpha1.Grant {
		return grant("parent", append([]func(g *v1alpha1.Grant){func(g *v1alpha1.Grant) {
			g.Spec.Constraints.DelegationDepth = new(depth)
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		grant  v1alpha1.Grant
		others []v1alpha1.Grant
		want   v1alpha1.ConditionReason
		next   time.Duration
	}{
		"active":  {grant: grant("g"), want: v1alpha1.GrantReasonActive},
		"revoked": {grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Revoked = true }), want: v1alpha1.GrantReasonRevoked},
		"nobody's": {
			grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Subject = "nobody" }), want: v1alpha1.GrantReasonPrincipalNotFound,
		},
		"expires": {
			grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Constraints.ExpiresAt = at(time.Minute) }),
			want:  v1alpha1.GrantReasonActive, next: time.Minute,
		},
		"expired": {
			grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Constraints.ExpiresAt = at(0) }), want: v1alpha1.GrantReasonExpired,
		},
		"not yet": {
			grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Constraints.NotBefore = at(time.Hour) }),
			want:  v1alpha1.GrantReasonNotYetActive, next: time.Hour,
		},
		"exhausted": {
			grant: grant("g", func(g *v1alpha1.Grant) { g.Spec.Constraints.MaxUses, g.Status.Uses = ptr.To[int64](2), 2 }),
			want:  v1alpha1.GrantReasonExhausted,
		},
		"no parent":       {grant: child(), want: v1alpha1.GrantReasonParentNotFound},
		"derived":         {grant: child(), others: []v1alpha1.Grant{parent(1)}, want: v1alpha1.GrantReasonActive},
		"not delegable":   {grant: child(), others: []v1alpha1.Grant{parent(0)}, want: v1alpha1.GrantReasonDelegationInvalid},
		"inactive parent": {grant: child(), others: []v1alpha1.Grant{parent(1, func(g *v1alpha1.Grant) { g.Spec.Revoked = true })}, want: v1alpha1.GrantReasonDelegationInvalid},
		"widened": {
			grant:  child(func(g *v1alpha1.Grant) { g.Spec.Capabilities[0].Actions = []v1alpha1.Action{"delete"} }),
			others: []v1alpha1.Grant{parent(1)}, want: v1alpha1.GrantReasonDelegationInvalid,
		},
		"constraint left out": {
			grant:  child(),
			others: []v1alpha1.Grant{parent(1, func(g *v1alpha1.Grant) { g.Spec.Constraints.ExpiresAt = at(time.Hour) })},
			want:   v1alpha1.GrantReasonDelegationInvalid,
		},
		"a cycle": {
			grant:  child(),
			others: []v1alpha1.Grant{parent(1, func(g *v1alpha1.Grant) { g.Spec.ParentGrant = "child" })},
			want:   v1alpha1.GrantReasonDelegationInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := append([]v1alpha1.Grant{c.grant}, c.others...)
			got, next := controllers.JudgeGrant(&c.grant, principals, controllers.ChainOf(&c.grant, all), noon)
			if got.Reason != string(c.want) || (got.Status == metav1.ConditionTrue) != (c.want == v1alpha1.GrantReasonActive) {
				t.Errorf("%s %s: %s; want %s", got.Status, got.Reason, got.Message, c.want)
			}
			if want := noon.Add(c.next); c.next != 0 && !next.Equal(want) {
				t.Errorf("looked at again at %s, want %s", next, want)
			}
		})
	}
}
