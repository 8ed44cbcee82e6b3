package kernel

import (
	"context"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// mode is what a decision is for.
type mode uint8

const (
	// modeConsume precedes an effect and spends a bounded use.
	modeConsume mode = iota
	// modeCheck asks about one exact resource and spends nothing.
	modeCheck
	// modeDiscover asks whether a subtree is touched at all and spends nothing.
	modeDiscover
)

// question is one decision's input beside the authority.
type question struct {
	need contract.CapabilityRequirement
	now  time.Time
	mode mode
	// remaining, when set, remembers what the usage store said, for a listing that
	// asks about the same grants again and again. It is never used to execute.
	remaining map[string]int64
}

// verdict is a decision with everything the host may learn.
type verdict struct {
	code     string
	grant    int32 // position of the grant that allowed, else -1
	consumed bool
	missing  string // port that a needed check lacked
	cause    string // the chain's fault that was reported, of the first grant with it
	worst    reason
	rejected rejections
}

func (v *verdict) allowed() bool { return v.code == contract.CodeAllowed }

// rejections remembers grants that covered the resource and failed later. A few
// fit without allocating, so that an allow after them costs nothing.
type rejections struct {
	first [4]rejection
	n     int
	rest  []rejection
}

type rejection struct {
	grant int32
	why   reason
}

func (r *rejections) add(position int32, why reason) {
	if r.n < len(r.first) {
		r.first[r.n] = rejection{position, why}
	} else {
		r.rest = append(r.rest, rejection{position, why})
	}
	r.n++
}

// at returns the i-th rejection; they are in order of position.
func (r *rejections) at(i int) rejection {
	if i < len(r.first) {
		return r.first[i]
	}
	return r.rest[i-len(r.first)]
}

// decide answers the question from the held authority. Apart from the ports it
// asks, it is a pure function of values.
func (t *Turn) decide(ctx context.Context, q *question) verdict {
	v := verdict{grant: -1}
	if !t.belongs(&q.need) {
		v.code = contract.CodeInvalidRequest
		return v
	}
	if q.mode == modeDiscover {
		t.searchOverlap(ctx, q, &v)
	} else {
		t.searchExact(ctx, q, &v)
	}
	if v.code == "" {
		v.code = v.worst.code()
	}
	if v.code != contract.CodeDelegationChainUnverified && v.code != contract.CodeDelegationChainInvalid {
		v.cause = "" // another grant's, which did not decide
	}
	return v
}

// belongs checks that the requirement is well formed and of this world.
func (t *Turn) belongs(need *contract.CapabilityRequirement) bool {
	if need.Resource.Owner != nil && *need.Resource.Owner != t.ac.Owner {
		return false
	}
	return need.Validate() == nil
}

// searchExact tries, in order of id, every grant whose capability covers the path.
func (t *Turn) searchExact(ctx context.Context, q *question, v *verdict) {
	var few [16][]int32
	lists := few[:0]
	named, every := t.auth.index.buckets(q.need.Resource.Namespace, q.need.Action)
	lists = named.covering(lists, q.need.Resource.Path)
	lists = every.covering(lists, q.need.Resource.Path)
	for position := next(lists); position >= 0; position = next(lists) {
		if t.try(ctx, q, position, v) {
			return
		}
	}
}

// searchOverlap tries, in order of id, every grant whose subtree meets the ceiling's.
func (t *Turn) searchOverlap(ctx context.Context, q *question, v *verdict) {
	path := q.need.Resource.Path
	named, every := t.auth.index.buckets(q.need.Resource.Namespace, q.need.Action)
	literal, wild := named.places(), every.places()
	last := int32(-1)
	for len(literal) > 0 || len(wild) > 0 {
		list := &literal
		if len(literal) == 0 || (len(wild) > 0 && wild[0].grant < literal[0].grant) {
			list = &wild
		}
		p := &(*list)[0]
		*list = (*list)[1:]
		if p.grant == last || !p.overlaps(path) {
			continue
		}
		last = p.grant
		if t.try(ctx, q, p.grant, v) {
			return
		}
	}
}

// try judges what is left once a grant's capability matched. It reports true when
// the search is over: allowed, or refused at once.
func (t *Turn) try(ctx context.Context, q *question, position int32, v *verdict) bool {
	g := &t.auth.grants[position]
	if !g.expires.IsZero() && !g.expires.After(latest(t.ac.Now.Time, q.now)) {
		return false // its reason is the window, which rejectedGrants works out anew
	}
	why := t.standsUp(ctx, q, g, v)
	if why == 0 {
		v.code, v.grant = contract.CodeAllowed, position
		return true
	}
	v.rejected.add(position, why)
	if why == reasonUsageUnavailable || why == reasonCeilingUnavailable {
		v.worst = why
		v.code = why.code()
		return true
	}
	if why.severity() > v.worst.severity() {
		v.worst = why
	}
	return false
}

// standsUp asks the ports in their order: ancestors, ceiling, uses.
func (t *Turn) standsUp(ctx context.Context, q *question, g *grant, v *verdict) reason {
	if g.ParentGrantID != "" {
		if fault := t.walkChain(ctx, &g.Grant, q.now); fault.why != 0 {
			if fault.why.severity() > v.worst.severity() {
				v.cause = fault.name
			}
			if fault.name == faultResolverUnavailable {
				v.missing = "delegationResolver"
			}
			return fault.why
		}
	}
	if why := t.underCeiling(q, g); why != 0 {
		return why
	}
	if g.maxUses == 0 {
		return 0
	}
	return t.spend(ctx, q, g, v)
}

func (t *Turn) underCeiling(q *question, g *grant) reason {
	ceiling := t.k.opts.Ceiling
	if ceiling == nil {
		return 0
	}
	permitted, err := guarded(func() (bool, error) {
		return ceiling.Permits(CeilingQuery{
			Context: t.ac, Requirement: q.need, GrantID: g.ID, Discovery: q.mode != modeConsume,
		})
	})
	switch {
	case err != nil:
		return reasonCeilingUnavailable
	case !permitted:
		return reasonCeiling
	default:
		return 0
	}
}

// spend consumes a use, or reads whether one is left.
func (t *Turn) spend(ctx context.Context, q *question, g *grant, v *verdict) reason {
	store := t.k.opts.Usage
	if store == nil {
		v.missing = "usageStore"
		return reasonUsageUnavailable
	}
	use := Use{NamespaceID: g.NamespaceID, GrantID: g.ID, MaxUses: g.maxUses}
	left, err := guarded(func() (bool, error) {
		if q.mode == modeConsume {
			return store.Consume(ctx, use)
		}
		n, err := q.budget(ctx, store, use)
		return n > 0, err
	})
	switch {
	case err != nil:
		return reasonUsageUnavailable
	case !left:
		return reasonExhausted
	default:
		v.consumed = q.mode == modeConsume
		return 0
	}
}

// budget reads how many uses are left.
func (q *question) budget(ctx context.Context, store UsageStore, use Use) (int64, error) {
	if n, known := q.remaining[use.GrantID]; known {
		return n, nil
	}
	n, err := store.Remaining(ctx, use)
	if err == nil && q.remaining != nil {
		q.remaining[use.GrantID] = n
	}
	return n, err
}
