package console

import (
	"context"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// recentTurns is how many Turns the start page lists.
const recentTurns = 10

// worldRow counts what is in one world.
type worldRow struct {
	Name                               string
	Principals, Grants, Active, Turns  int
	Waiting, Refusals                  int
	TurnsLink, ReachLink, RefusalsLink string
	EscalationsLink                    string
}

// startBody is the overview.
type startBody struct {
	Worlds []worldRow
	Total  worldRow
	Recent []turnRow
}

// AllTurns and AllGrants are totals, as a template counts them in words.
func (b startBody) AllTurns() int64 { return int64(b.Total.Turns) }

// AllGrants is how many Grants there are in the worlds.
func (b startBody) AllGrants() int64 { return int64(b.Total.Grants) }

// start is the overview of all worlds.
func (c *console) start(ctx context.Context, _ request) (view, error) {
	turns, err := c.reads.turns(ctx)
	if err != nil {
		return view{}, err
	}
	principals, err := c.reads.principals(ctx, "")
	if err != nil {
		return view{}, err
	}
	grants, err := c.reads.grants(ctx, "")
	if err != nil {
		return view{}, err
	}
	body, err := c.count(ctx, turns, principals, grants)
	if err != nil {
		return view{}, err
	}
	for _, t := range turns[:min(recentTurns, len(turns))] {
		body.Recent = append(body.Recent, c.row(t))
	}
	return view{template: "start", Title: "Overview", Nav: "/", Body: body}, nil
}

// count counts what is in each world.
func (c *console) count(
	ctx context.Context, turns []*v1alpha1.Turn, principals []v1alpha1.Principal, grants []v1alpha1.Grant,
) (startBody, error) {
	var body startBody
	at := map[string]int{}
	for i, name := range worlds(principals, turns) {
		at[name] = i
		q := query{World: name}
		body.Worlds = append(body.Worlds, worldRow{
			Name: name, TurnsLink: q.link("/turns"), ReachLink: q.link("/reach"),
			RefusalsLink: q.link("/refusals"), EscalationsLink: q.link("/escalations"),
		})
	}
	for i := range principals {
		body.Worlds[at[principals[i].Namespace]].Principals++
	}
	for i := range grants {
		if w, ok := at[grants[i].Namespace]; ok {
			body.Worlds[w].Grants++
		}
	}
	var asked []*v1alpha1.Turn
	count := newCounter(c.opts.Clock(), defaultHours)
	for _, t := range turns {
		row := &body.Worlds[at[t.Namespace]]
		row.Turns++
		if !t.IsFinished() {
			row.Active++
		}
		if t.Status.Escalation != nil {
			asked = append(asked, t)
		}
		row.Refusals += count.add(t)
	}
	judge := c.newJudge()
	for _, t := range asked {
		if waits, err := judge.waits(ctx, t); err != nil {
			return startBody{}, err
		} else if waits {
			body.Worlds[at[t.Namespace]].Waiting++
		}
	}
	for i := range body.Worlds {
		body.Total.add(&body.Worlds[i])
	}
	return body, nil
}

func (w *worldRow) add(o *worldRow) {
	w.Principals += o.Principals
	w.Grants += o.Grants
	w.Active += o.Active
	w.Turns += o.Turns
	w.Waiting += o.Waiting
	w.Refusals += o.Refusals
}
