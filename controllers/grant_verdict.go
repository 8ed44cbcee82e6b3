package controllers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/translate"
)

// JudgeGrant is the Ready condition of a Grant, and when time alone will change it;
// zero means never. It is pure.
func JudgeGrant(g *v1alpha1.Grant, principals []v1alpha1.Principal, chain Chain, now time.Time) (metav1.Condition, time.Time) {
	no := func(reason v1alpha1.ConditionReason, format string, args ...any) metav1.Condition {
		return v1alpha1.Condition(v1alpha1.GrantReady, metav1.ConditionFalse, reason,
			translate.Text(fmt.Sprintf(format, args...), translate.MaxMessage), g.Generation)
	}
	directory := translate.NewDirectory(principals)
	if g.Spec.Revoked {
		return no(v1alpha1.GrantReasonRevoked, "revoked"), time.Time{}
	}
	translated, err := translate.Grant(g, directory)
	if err != nil {
		return no(v1alpha1.GrantReasonPrincipalNotFound, "%s", err.Error()), time.Time{}
	}
	switch {
	case chain.Missing != "":
		return no(v1alpha1.GrantReasonParentNotFound, "spec.parentGrant: there is no Grant %q", chain.Missing), time.Time{}
	case chain.Fault != "":
		return no(v1alpha1.GrantReasonDelegationInvalid, "spec.parentGrant: %s", chain.Fault), time.Time{}
	}
	if fault := authority.CheckChain(translated, chain.Grants, directory, now); fault != nil {
		return no(v1alpha1.GrantReasonDelegationInvalid, "spec.parentGrant: %s", fault.Error()), nextInstant(g, now)
	}
	return judgeWindow(g, no, now)
}

func judgeWindow(
	g *v1alpha1.Grant, no func(v1alpha1.ConditionReason, string, ...any) metav1.Condition, now time.Time,
) (metav1.Condition, time.Time) {
	c := g.Spec.Constraints
	if c == nil {
		c = &v1alpha1.GrantConstraints{}
	}
	if expires, err := c.ExpiresAt.Time(); c.ExpiresAt != "" && (err != nil || !now.Before(expires)) {
		return no(v1alpha1.GrantReasonExpired, "expired at %s", c.ExpiresAt), time.Time{}
	}
	if from, err := c.NotBefore.Time(); c.NotBefore != "" && (err != nil || now.Before(from)) {
		return no(v1alpha1.GrantReasonNotYetActive, "active from %s", c.NotBefore), nextInstant(g, now)
	}
	if c.MaxUses != nil && g.Status.Uses >= *c.MaxUses {
		return no(v1alpha1.GrantReasonExhausted, "all %d uses are spent", *c.MaxUses), time.Time{}
	}
	return v1alpha1.Condition(v1alpha1.GrantReady, metav1.ConditionTrue, v1alpha1.GrantReasonActive, "active", g.Generation), nextInstant(g, now)
}

// nextInstant is the next bound of the Grant's window after now.
func nextInstant(g *v1alpha1.Grant, now time.Time) time.Time {
	var next time.Time
	if g.Spec.Constraints == nil {
		return next
	}
	for _, bound := range []v1alpha1.Timestamp{g.Spec.Constraints.NotBefore, g.Spec.Constraints.ExpiresAt} {
		if bound == "" {
			continue
		}
		at, err := bound.Time()
		if err == nil && at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
