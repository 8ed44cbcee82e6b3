package console

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// turnRow is one Turn in a list.
type turnRow struct {
	World, Name, Link, Principal, Harness string
	State                                 badge
	Code                                  string
	Calls, Denied                         int64
	Created                               moment
	Took                                  string
}

func (c *console) row(t *v1alpha1.Turn) turnRow {
	now := c.opts.Clock()
	out := turnRow{
		World: t.Namespace, Name: t.Name, Link: turnLink(t), Principal: string(t.Spec.Principal), Harness: string(t.Spec.Harness),
		State: badgeOf(t.State()), Created: moment{at: t.CreationTimestamp.Time, now: now},
	}
	if t.Status.Error != nil {
		out.Code = t.Status.Error.Code
	}
	if u := t.Status.Usage; u != nil {
		out.Calls, out.Denied = u.ToolCalls, u.Denied
	}
	if t.Status.StartedAt != nil {
		end := now
		if t.Status.CompletedAt != nil {
			end = t.Status.CompletedAt.Time
		}
		out.Took = lasting(end.Sub(t.Status.StartedAt.Time))
	}
	return out
}

// turnsBody is the list of Turns.
type turnsBody struct {
	Query      query
	Worlds     []string
	Principals []string
	States     []v1alpha1.ConditionReason
	Rows       []turnRow
	Pager      pager
}

// turns is the page of all Turns, newest first, filtered and cut into pages.
func (c *console) turns(ctx context.Context, r request) (view, error) {
	all, names, err := c.selection(ctx, r)
	if err != nil {
		return view{}, err
	}
	body := turnsBody{Query: r.query, Worlds: names, States: states}
	matching, principals := match(all, r.query)
	body.Principals = principals
	shown, pager, err := paged(matching, r.query, "/turns")
	if err != nil {
		return view{}, err
	}
	body.Pager = pager
	for _, t := range shown {
		body.Rows = append(body.Rows, c.row(t))
	}
	return view{template: "turns", Title: "Turns", Nav: "/turns", World: r.World, Body: body}, nil
}

// match returns the Turns that a query asks for, and the names of the Principals of
// all Turns in its world.
func match(all []*v1alpha1.Turn, q query) (matching []*v1alpha1.Turn, principals []string) {
	names := map[string]bool{}
	if q.Principal != "" {
		names[q.Principal] = true
	}
	for _, t := range all {
		if q.World != "" && t.Namespace != q.World {
			continue
		}
		names[string(t.Spec.Principal)] = true
		if (q.State == "" || t.State() == q.State) && (q.Principal == "" || string(t.Spec.Principal) == q.Principal) {
			matching = append(matching, t)
		}
	}
	return matching, slices.Sorted(maps.Keys(names))
}

func noWorld() error {
	return notFound("There is no Principal and no Turn in a namespace of that name.")
}

// ended is when the Turn ended, or now.
func ended(t *v1alpha1.Turn, now time.Time) time.Time {
	if t.Status.CompletedAt != nil {
		return t.Status.CompletedAt.Time
	}
	return now
}
