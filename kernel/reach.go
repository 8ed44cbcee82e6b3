package kernel

import (
	"context"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Statuses of a [contract.ReachResult].
const (
	reachComputed    = "computed"
	reachUnavailable = "unavailable"
)

// Reach lists what the context may touch now, with the authority stripped: no
// grant, issuer, expiry or remaining uses. It describes and never permits, spends
// nothing and does not consult the host ceiling. What cannot be read withholds the
// whole answer, because a reach that misses a live grant looks like a true one.
func (t *Turn) Reach(ctx context.Context) contract.ReachResult {
	now := t.k.opts.Clock()
	var places []contract.ReachEntry
	for i := range t.auth.grants {
		g := &t.auth.grants[i]
		usable, code := t.usable(ctx, g, now)
		if code != "" {
			return contract.ReachResult{Status: reachUnavailable, ReasonCode: code}
		}
		if usable {
			places = t.appendPlaces(places, g)
		}
	}
	places = mergePlaces(places)
	if len(places) > contract.MaxReach {
		return contract.ReachResult{Status: reachUnavailable, ReasonCode: contract.CodeAuthorityUnavailable}
	}
	return contract.ReachResult{Status: reachComputed, Reach: places}
}

// Places is a reach that was computed. It never changes, and turns whose reach is the
// same share it.
type Places struct{ result contract.ReachResult }

// Result returns the reach. Each call returns a fresh copy.
func (p *Places) Result() contract.ReachResult {
	if p == nil {
		return contract.ReachResult{}
	}
	r := p.result
	r.Reach = slices.Clone(r.Reach)
	for i := range r.Reach {
		r.Reach[i].Path = slices.Clone(r.Reach[i].Path)
		r.Reach[i].Actions = slices.Clone(r.Reach[i].Actions)
	}
	return r
}

// PlacesOf is [Turn.Reach] without the places that no tool of the catalogue operates in.
func (t *Turn) PlacesOf(ctx context.Context, c *Catalogue) *Places {
	r := t.Reach(ctx)
	if r.Reach != nil {
		kept := make([]contract.ReachEntry, 0, len(r.Reach))
		for _, place := range r.Reach {
			if c.Operates(place.Namespace) {
				kept = append(kept, place)
			}
		}
		r.Reach = kept
	}
	return t.k.places.one(reachKey(&r), func() *Places { return &Places{r} })
}

// usable reports whether the grant would authorize something now, or why that
// cannot be established.
func (t *Turn) usable(ctx context.Context, g *grant, now time.Time) (bool, string) {
	if g.standingAt(latest(t.ac.Now.Time, now)) != 0 {
		return false, ""
	}
	if g.ParentGrantID != "" {
		fault := t.walkChain(ctx, &g.Grant, now)
		if fault.name == faultResolverFailed {
			return false, contract.CodeAuthorityUnavailable
		}
		if fault.why != 0 {
			return false, ""
		}
	}
	if g.maxUses == 0 {
		return true, ""
	}
	q := question{now: now, mode: modeCheck}
	var v verdict
	switch t.spend(ctx, &q, g, &v) {
	case reasonUsageUnavailable:
		return false, contract.CodeUsageStoreUnavailable
	case reasonExhausted:
		return false, ""
	default:
		return true, ""
	}
}

func (t *Turn) appendPlaces(places []contract.ReachEntry, g *grant) []contract.ReachEntry {
	for i := range g.Capabilities {
		c := &g.Capabilities[i]
		if c.Resource.Owner != nil && *c.Resource.Owner != t.ac.Owner {
			continue
		}
		path := slices.Clone(c.Resource.Path)
		if path == nil {
			path = contract.Path{}
		}
		places = append(places, contract.ReachEntry{
			Namespace: c.Resource.Namespace, Path: path, Scope: c.Scope, Actions: slices.Clone(c.Actions),
		})
	}
	return places
}

// mergePlaces sorts the entries and joins those of one place.
func mergePlaces(places []contract.ReachEntry) []contract.ReachEntry {
	slices.SortStableFunc(places, comparePlaces)
	merged := make([]contract.ReachEntry, 0, len(places))
	for _, p := range places {
		slices.SortFunc(p.Actions, contract.CompareCodeUnits)
		p.Actions = slices.Compact(p.Actions)
		last := len(merged) - 1
		if last >= 0 && comparePlaces(merged[last], p) == 0 {
			joined := append(slices.Clone(merged[last].Actions), p.Actions...)
			slices.SortFunc(joined, contract.CompareCodeUnits)
			if joined = slices.Compact(joined); len(joined) <= contract.MaxListEntries {
				merged[last].Actions = joined
				continue
			}
		}
		merged = append(merged, p)
	}
	return merged
}

func comparePlaces(a, b contract.ReachEntry) int {
	if c := contract.CompareCodeUnits(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	if c := slices.CompareFunc(a.Path, b.Path, contract.CompareCodeUnits); c != 0 {
		return c
	}
	return contract.CompareCodeUnits(string(a.Scope), string(b.Scope))
}
