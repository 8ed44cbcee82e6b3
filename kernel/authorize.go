package kernel

import (
	"context"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Authorize answers whether the exact requirement would be allowed. It spends no
// bounded use and is audited.
func (t *Turn) Authorize(ctx context.Context, need contract.CapabilityRequirement) contract.AuthorizationDecision {
	return t.answer(ctx, need, modeCheck, "")
}

// Consume is Authorize for something about to happen: it spends a bounded use, and
// its record is kept before it returns.
func (t *Turn) Consume(ctx context.Context, need contract.CapabilityRequirement) contract.AuthorizationDecision {
	return t.answer(ctx, need, modeConsume, "")
}

// Discover answers whether some grant intersects the ceiling's subtree. It spends
// nothing and is audited.
func (t *Turn) Discover(ctx context.Context, ceiling contract.CapabilityRequirement) contract.AuthorizationDecision {
	return t.answer(ctx, ceiling, modeDiscover, "")
}

// answer decides, records the decision, and only then lets the caller have it.
func (t *Turn) answer(ctx context.Context, need contract.CapabilityRequirement, m mode, operationID string) contract.AuthorizationDecision {
	q := question{need: need, now: t.k.opts.Clock(), mode: m}
	v := t.decide(ctx, &q)
	decision := t.decisionOf(&q, &v)
	if err := t.recordDecision(ctx, &q, &v, decision.RequiredAuthority, operationID); err != nil {
		return contract.AuthorizationDecision{ReasonCode: contract.CodeAuditUnavailable}
	}
	return decision
}

func (t *Turn) decisionOf(q *question, v *verdict) contract.AuthorizationDecision {
	d := contract.AuthorizationDecision{Allowed: v.allowed(), ReasonCode: v.code}
	if v.grant >= 0 {
		d.MatchedGrantID = t.auth.grants[v.grant].ID
	}
	if v.code == contract.CodeNoMatchingGrant {
		d.RequiredAuthority = describe(&t.ac, q.need, contract.ScopeExact, q.now)
	}
	return d
}

// describe says what authority would have sufficed. It is a description only.
func describe(ac *contract.AccessContext, need contract.CapabilityRequirement, scope contract.Scope, now time.Time) *contract.CapabilityRequest {
	r, err := contract.DescribeAuthority(contract.CapabilityRequest{
		NamespaceID: ac.NamespaceID,
		Requester:   ac.Actor,
		Owner:       ac.Owner,
		Capabilities: []contract.Capability{{
			Resource: cloneResource(need.Resource),
			Actions:  []string{need.Action},
			Scope:    scope,
		}},
		Purpose:     ac.Purpose,
		RequestedAt: contract.At(now),
	})
	if err != nil {
		return nil
	}
	return &r
}

func cloneResource(r contract.ResourceRef) contract.ResourceRef {
	r.Path = slices.Clone(r.Path)
	if r.Path == nil {
		r.Path = contract.Path{}
	}
	r.Owner = clonePointer(r.Owner)
	return r
}

func (t *Turn) recordDecision(ctx context.Context, q *question, v *verdict, required *contract.CapabilityRequest, operationID string) error {
	resource := cloneResource(q.need.Resource)
	e := audit.Event{
		Type: audit.AuthorizationChecked, Outcome: audit.Allowed, At: contract.At(q.now),
		Resource: &resource, Action: q.need.Action, AuthorityHash: t.auth.hash,
		OperationID: operationID, Reason: v.code, Consumed: v.consumed,
	}
	if v.allowed() {
		e.GrantID = t.auth.grants[v.grant].ID
		return t.Record(context.WithoutCancel(ctx), e)
	}
	e.Outcome, e.Cause, e.FailClosed = audit.Denied, v.cause, failsClosed(v.code)
	e.MissingDependency, e.RequestedAuthority = v.missing, required
	e.GrantsResolved, e.RejectedGrants = t.heldCount(), t.rejected(q, v)
	if v.code == contract.CodeInvalidRequest {
		e.Resource = safeResource(resource)
	}
	return t.Record(context.WithoutCancel(ctx), e)
}

func (t *Turn) heldCount() *int {
	count := len(t.auth.grants)
	return &count
}

// safeResource keeps a malformed resource out of the record; what was asked for is
// then not a resource at all.
func safeResource(r contract.ResourceRef) *contract.ResourceRef {
	if r.Validate() != nil {
		return nil
	}
	return &r
}

// rejected lists every judged grant with its first failing condition. A decision
// that ended at once judged none after the grant it ended at.
func (t *Turn) rejected(q *question, v *verdict) []audit.RejectedGrant {
	if v.code == contract.CodeInvalidRequest {
		return nil
	}
	judged := len(t.auth.grants)
	if v.worst == reasonUsageUnavailable || v.worst == reasonCeilingUnavailable {
		judged = int(v.rejected.at(v.rejected.n-1).grant) + 1
	}
	instant := latest(t.ac.Now.Time, q.now)
	list := make([]audit.RejectedGrant, 0, judged)
	tried := 0
	for i := range t.auth.grants[:judged] {
		g := &t.auth.grants[i]
		why := reasonCapability
		if tried < v.rejected.n && int(v.rejected.at(tried).grant) == i {
			why = v.rejected.at(tried).why
			tried++
		} else if standing := g.standingAt(instant); standing != 0 {
			why = standing
		}
		list = append(list, audit.RejectedGrant{GrantID: g.ID, Reason: why.String()})
	}
	return list
}

// standingAt is why the grant cannot apply at all at the instant; zero if it can.
// The window is judged before the purpose.
func (g *grant) standingAt(instant time.Time) reason {
	if (g.standing == 0 || g.standing > reasonWindow) && expired(&g.Grant, instant) {
		return reasonWindow
	}
	return g.standing
}
