package snapshot

import (
	"context"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// Reasons of a [GrantVerdict] that come before the kernel sees the Grant.
const (
	// ReasonOtherSubject: the Grant is somebody else's to use.
	ReasonOtherSubject = "subject"
	// ReasonOtherIssuer: the Grant was issued by another than the one whose authority
	// the Principal exercises.
	ReasonOtherIssuer = "issuer"
	// ReasonUnresolved: a Principal that the Grant names does not exist, or shares its
	// address with another.
	ReasonUnresolved = "principal"
)

// GrantVerdict is what one Grant does for a question by itself.
type GrantVerdict struct {
	Grant *v1alpha1.Grant
	// Allows is true when this Grant alone would allow.
	Allows bool
	// Reason is its first failing condition, as in an audit record; empty if it allows.
	Reason string
	// Detail explains the reason, when there is more to say.
	Detail string
}

// Explain judges every Grant of the world alone, in order of name.
func (i *Inspector) Explain(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) []GrantVerdict {
	return i.judge(ctx, ac, func(*v1alpha1.Grant) contract.CapabilityRequirement { return need })
}

// Standing says of every Grant of the world, in order of name, whether it is of use
// to the context at all: each is asked for the first thing that it is about.
func (i *Inspector) Standing(ctx context.Context, ac contract.AccessContext) []GrantVerdict {
	return i.judge(ctx, ac, func(g *v1alpha1.Grant) contract.CapabilityRequirement { return firstNeed(g, ac.Owner) })
}

// firstNeed is what a Grant's first capability is about.
func firstNeed(g *v1alpha1.Grant, owner contract.Address) contract.CapabilityRequirement {
	if len(g.Spec.Capabilities) == 0 {
		return contract.CapabilityRequirement{} // which is never allowed
	}
	c := &g.Spec.Capabilities[0]
	need := contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: string(c.Resource.Namespace), Path: contract.Path{}}}
	for _, segment := range c.Resource.Path {
		need.Resource.Path = append(need.Resource.Path, string(segment))
	}
	if c.Resource.Owner != "" {
		need.Resource.Owner = &owner
	}
	if len(c.Actions) > 0 {
		if need.Action = string(c.Actions[0]); need.Action == contract.ActionAny {
			need.Action = "any"
		}
	}
	return need
}

func (i *Inspector) judge(ctx context.Context, ac contract.AccessContext, needOf func(*v1alpha1.Grant) contract.CapabilityRequirement) []GrantVerdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	defer func() { i.alone = "" }()
	directory := translate.NewDirectory(i.snapshot.Principals(ac.NamespaceID))
	grants := i.snapshot.Grants(ac.NamespaceID)
	verdicts := make([]GrantVerdict, 0, len(grants))
	for n := range grants {
		v := GrantVerdict{Grant: &grants[n]}
		if v.Reason, v.Detail = before(&grants[n], directory, ac); v.Reason == "" {
			i.alone = grants[n].Name
			answer := i.authorize(ctx, ac, needOf(&grants[n]))
			v.Allows = answer.Allowed
			if !v.Allows {
				v.Reason, v.Detail = answer.ReasonCode, answer.Cause
				if len(answer.Rejected) > 0 {
					v.Reason = answer.Rejected[0].Reason
				}
			}
		}
		verdicts = append(verdicts, v)
	}
	slices.SortStableFunc(verdicts, func(a, b GrantVerdict) int { return strings.Compare(a.Grant.Name, b.Grant.Name) })
	return verdicts
}

// before is why a Grant is not loaded into the context at all.
func before(g *v1alpha1.Grant, d *translate.Directory, ac contract.AccessContext) (reason, detail string) {
	translated, err := translate.Grant(g, d)
	switch {
	case err != nil:
		return ReasonUnresolved, err.Error()
	case translated.Subject != ac.Actor:
		return ReasonOtherSubject, "it is for " + string(g.Spec.Subject)
	case translated.Issuer != ac.Authority:
		return ReasonOtherIssuer, "it was issued by " + string(g.Spec.Issuer) + ", whose authority is not exercised"
	default:
		return "", ""
	}
}
