package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// unlisted stands for the code of calls that are only in a Turn's counters, because
// its status lists the first and the last events.
const unlisted = "not listed"

// hourCount is what was refused in one hour.
type hourCount struct {
	Start        time.Time
	Turns, Calls int
}

// Total of both.
func (h hourCount) Total() int { return h.Turns + h.Calls }

// codeCount is how often one code was the answer.
type codeCount struct {
	Code, Meaning string
	Turns, Calls  int
	Latest        moment
	LatestTurn    string
	Link          string
}

// Total of both.
func (c codeCount) Total() int { return c.Turns + c.Calls }

// counter counts refusals by hour and by code from what Turns' statuses say.
type counter struct {
	now   time.Time
	from  time.Time
	hours []hourCount
	codes map[string]*codeCount
}

// newCounter counts the last so many hours, the present one included.
func newCounter(now time.Time, hours int) *counter {
	from := now.UTC().Truncate(time.Hour).Add(time.Duration(1-hours) * time.Hour)
	c := &counter{now: now, from: from, hours: make([]hourCount, hours), codes: map[string]*codeCount{}}
	for i := range c.hours {
		c.hours[i].Start = from.Add(time.Duration(i) * time.Hour)
	}
	return c
}

// add counts one Turn, and returns how many of its refusals are in the time.
func (c *counter) add(t *v1alpha1.Turn) int {
	end := ended(t, c.now)
	if end.Before(c.from) {
		return 0
	}
	counted := 0
	if t.Status.Outcome == v1alpha1.TurnDenied && t.Status.Error != nil {
		counted += c.count(t, end, t.Status.Error.Code, 1, 0)
	}
	if t.Status.Usage == nil || t.Status.Usage.Denied == 0 {
		return counted
	}
	listed := 0
	if t.Status.Events != nil {
		// Once all that the counter tells of are found, no event is another.
		for i := 0; i < len(t.Status.Events.Items) && listed < int(t.Status.Usage.Denied); i++ {
			e := &t.Status.Events.Items[i]
			if code, ok := deniedCode(e); ok {
				listed++
				counted += c.count(t, e.OccurredAt.Time, code, 0, 1)
			}
		}
	}
	if rest := int(t.Status.Usage.Denied) - listed; rest > 0 {
		counted += c.count(t, end, unlisted, 0, rest)
	}
	return counted
}

// count adds refusals at an instant, if it is in the time.
func (c *counter) count(t *v1alpha1.Turn, at time.Time, code string, turns, calls int) int {
	if at.Before(c.from) {
		return 0
	}
	hour := min(int(at.Sub(c.from)/time.Hour), len(c.hours)-1)
	c.hours[hour].Turns += turns
	c.hours[hour].Calls += calls
	entry := c.codes[code]
	if entry == nil {
		entry = &codeCount{Code: code}
		c.codes[code] = entry
	}
	entry.Turns += turns
	entry.Calls += calls
	if at.After(entry.Latest.at) {
		entry.Latest, entry.LatestTurn, entry.Link = moment{at: at, now: c.now}, t.Name, turnLink(t)
	}
	return turns + calls
}

// What the envelope writes into the event of a denied call. Inside a JSON string every
// quote is escaped, so these can only be members.
const (
	deniedMember = `"status":"denied"`
	codeMember   = `"code":"`
)

// deniedCode is the code of a call that was denied. There may be a hundred thousand
// events, so the text is looked at, not parsed.
func deniedCode(e *v1alpha1.TurnEvent) (string, bool) {
	if e.Type != v1alpha1.EventType(contract.EventToolCompleted) || !strings.Contains(string(e.Data), deniedMember) {
		return "", false
	}
	_, rest, found := strings.Cut(string(e.Data), codeMember)
	code, _, closed := strings.Cut(rest, `"`)
	if !found || !closed || code == "" {
		return unlisted, true
	}
	return code, true
}

// byCode is the codes, the most frequent first.
func (c *counter) byCode() []codeCount {
	out := make([]codeCount, 0, len(c.codes))
	for _, entry := range c.codes {
		done := *entry
		if done.Code == unlisted {
			done.Meaning = "The Turn's status counts these calls without listing them."
		} else {
			done.Meaning = kernel.MessageFor(done.Code)
		}
		out = append(out, done)
	}
	slices.SortFunc(out, func(a, b codeCount) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Code, b.Code))
	})
	return out
}

// hourRow is one hour of the table.
type hourRow struct {
	From         moment
	Name         string
	Turns, Calls int
	Total        int
}

// span is one length of time to choose.
type span struct {
	Hours   int
	Name    string
	Current bool
}

// refusalsBody is the page of refusals.
type refusalsBody struct {
	Query        query
	Worlds       []string
	Spans        []span
	Span         string
	Chart        chart
	Codes        []codeCount
	Hours        []hourRow
	Turns, Calls int
}

// CallsCount is how many calls were denied.
func (b refusalsBody) CallsCount() int64 { return int64(b.Calls) }

// TurnsCount is how many Turns were refused.
func (b refusalsBody) TurnsCount() int64 { return int64(b.Turns) }

// refusals is the page of what was refused when, and why.
func (c *console) refusals(ctx context.Context, r request) (view, error) {
	all, names, err := c.selection(ctx, r)
	if err != nil {
		return view{}, err
	}
	body := refusalsBody{Query: r.query, Worlds: names}
	now := c.opts.Clock()
	count := newCounter(now, r.Hours)
	for _, t := range all {
		if r.World == "" || t.Namespace == r.World {
			count.add(t)
		}
	}
	for _, hours := range spans {
		name := map[int]string{24: "24 hours", 72: "3 days", 168: "7 days"}[hours]
		body.Spans = append(body.Spans, span{Hours: hours, Name: name, Current: hours == r.Hours})
		if hours == r.Hours {
			body.Span = name
		}
	}
	for _, h := range slices.Backward(count.hours) {
		body.Turns += h.Turns
		body.Calls += h.Calls
		if h.Total() > 0 {
			body.Hours = append(body.Hours, hourRow{
				From: moment{at: h.Start, now: now}, Name: h.Start.Format("2006-01-02 15:04 to ") + h.Start.Add(time.Hour).Format("15:04"),
				Turns: h.Turns, Calls: h.Calls, Total: h.Total(),
			})
		}
	}
	body.Chart, body.Codes = draw(count.hours), count.byCode()
	return view{template: "refusals", Title: "Refusals", Nav: "/refusals", World: r.World, Body: body}, nil
}
