package console

import (
	"context"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// How much of a text a page shows, characters.
const (
	maxMessage = 4000
	maxOutput  = 8000
)

// fact is one line of what is known about a Turn.
type fact struct {
	Name, Value, Link string
	Code              bool
}

// heldGrant is one Grant that the Turn was admitted with, and what became of it.
type heldGrant struct {
	Name       string
	Generation int64
	Now, Tone  string
}

// excerpt is a text that may be cut.
type excerpt struct {
	Text string
	// More says what is not shown.
	More string
}

// turnBody is the page of one Turn.
type turnBody struct {
	turnRow
	Facts           []fact
	Admission       []fact
	AdmissionReason string
	Grants          []heldGrant
	GrantsMore      string
	Steps           []step
	Error           *v1alpha1.TurnError
	Ask             *ask
	Message, Output excerpt
	HasOutput       bool
	Metadata        string
	Active          bool
}

// turn is the page of one Turn: what it was admitted with and all that happened.
func (c *console) turn(ctx context.Context, r request) (view, error) {
	t, err := c.reads.turn(ctx, r.world, r.name)
	if err != nil {
		return view{}, err
	}
	body := turnBody{
		turnRow: c.row(t), Steps: timeline(t, c.opts.Clock()), Error: t.Status.Error, Ask: c.ask(t),
		Message: message(t), Active: !t.IsFinished(),
	}
	body.Output, body.HasOutput = output(t)
	if body.Facts, err = c.facts(ctx, t); err != nil {
		return view{}, err
	}
	if body.Ask != nil {
		if body.Ask.Waits, err = c.newJudge().waits(ctx, t); err != nil {
			return view{}, err
		}
	}
	if err := c.admission(ctx, t, &body); err != nil {
		return view{}, err
	}
	return view{template: "turn", Title: "Turn " + t.Name, Nav: "/turns", World: t.Namespace, Body: body}, nil
}

// facts are who ran what, where.
func (c *console) facts(ctx context.Context, t *v1alpha1.Turn) ([]fact, error) {
	purpose := string(t.Spec.Purpose)
	if a := t.Status.Admission; a != nil && a.Context != nil {
		purpose = string(a.Context.Purpose)
	}
	reach := query{World: t.Namespace, Principal: string(t.Spec.Principal), Purpose: purpose}
	out := []fact{
		{Name: "World", Value: t.Namespace, Link: query{World: t.Namespace}.link("/turns")},
		{Name: "Principal", Value: string(t.Spec.Principal), Link: reach.link("/reach")},
		{Name: "Purpose", Value: purpose},
	}
	add := func(name, value string, code bool) {
		if value != "" {
			out = append(out, fact{Name: name, Value: value, Code: code})
		}
	}
	if t.Spec.Harness != "" {
		harness, err := c.reads.harness(ctx, t.Namespace, string(t.Spec.Harness))
		if err != nil {
			return nil, err
		}
		name := string(t.Spec.Harness)
		if harness == nil {
			name += " (deleted)"
		} else {
			name += " (" + string(harness.Spec.Type) + ")"
		}
		add("Harness", name, false)
	} else {
		add("Harness", "none: the pod is brought by somebody else", false)
	}
	if t.Status.Pod != nil {
		add("Pod", string(t.Status.Pod.Name), true)
	}
	if u := t.Status.Usage; u != nil {
		calls := plural(u.ToolCalls, "call", "calls") + ", " + plural(u.Denied, "denied", "denied")
		if u.CallsAfterEscalation > 0 {
			calls += ", " + plural(u.CallsAfterEscalation, "after it had asked for a decision", "after it had asked for a decision")
		}
		add("Tool calls", calls, false)
	}
	add("Took", c.row(t).Took, false)
	add("Execution id", t.EffectiveExecutionID(), true)
	add("Trace id", string(t.Status.TraceID), true)
	return out, nil
}

// admission is what the Turn was admitted with, or why it was not.
func (c *console) admission(ctx context.Context, t *v1alpha1.Turn, body *turnBody) error {
	a := t.Status.Admission
	if a == nil {
		body.AdmissionReason = "The Turn has not been admitted yet."
		if admitted := v1alpha1.FindCondition(t.Status.Conditions, v1alpha1.TurnConditionAdmitted); admitted != nil && admitted.Message != "" {
			body.AdmissionReason = admitted.Reason + ": " + admitted.Message
		}
		return nil
	}
	add := func(name, value string, code bool) {
		if value != "" {
			body.Admission = append(body.Admission, fact{Name: name, Value: value, Code: code})
		}
	}
	now := c.opts.Clock()
	add("At", moment{at: a.At.Time, now: now}.Text(), false)
	if a.Context != nil {
		add("Actor", addressOf(a.Context.Actor), false)
		add("Authority", addressOf(a.Context.Authority), false)
		add("Owner", addressOf(a.Context.Owner), false)
	}
	add("Tools", plural(int64(a.ToolCount), "tool", "tools"), false)
	add("Catalogue hash", string(a.CatalogHash), true)
	add("Authority hash", string(a.AuthorityHash), true)
	add("Policy hash", string(a.PolicyHash), true)
	if a.Deadline != nil {
		add("Deadline", moment{at: a.Deadline.Time, now: now}.Text(), false)
	}
	grants, err := c.reads.grants(ctx, t.Namespace)
	if err != nil {
		return err
	}
	present := make(map[string]*v1alpha1.Grant, len(grants))
	for i := range grants {
		present[grants[i].Name] = &grants[i]
	}
	for _, g := range a.Grants {
		held := heldGrant{Name: string(g.Name), Generation: g.Generation}
		held.Now, held.Tone = becameOf(g, present[string(g.Name)])
		body.Grants = append(body.Grants, held)
	}
	if a.GrantsRef != nil {
		body.GrantsMore = plural(int64(a.GrantCount), "grant is", "grants are") + " in ConfigMap " + string(a.GrantsRef.Name) + "."
	}
	return nil
}

// becameOf says what became of a Grant since the Turn was admitted with it.
func becameOf(held v1alpha1.GrantReference, g *v1alpha1.Grant) (text, tone string) {
	switch {
	case g == nil:
		return "deleted since", "bad"
	case string(g.UID) != string(held.UID):
		return "deleted, and another one made of the same name", "bad"
	case g.Spec.Revoked:
		return "revoked", "bad"
	case g.Generation != held.Generation:
		return "edited since", "asks"
	default:
		return "unchanged", "good"
	}
}

func addressOf(a v1alpha1.Address) string { return string(a.Kind) + " " + a.ID() }

// message is what the agent was given.
func message(t *v1alpha1.Turn) excerpt {
	text := t.Spec.Message.Text
	if text == "" {
		text = string(t.Spec.Message.Payload)
	}
	return cutExcerpt(text, maxMessage)
}

// output is what the agent left.
func output(t *v1alpha1.Turn) (excerpt, bool) {
	s := &t.Status
	if s.Output != nil {
		return cutExcerpt(*s.Output, maxOutput), true
	}
	if s.OutputRef == nil {
		return excerpt{}, false
	}
	more := "It is kept in ConfigMap " + string(s.OutputRef.Name) + ", key " + s.OutputRef.Key
	if s.OutputSize != nil {
		more += ", " + plural(*s.OutputSize, "byte", "bytes")
	}
	if s.OutputTruncated {
		more += ", cut"
	}
	return excerpt{More: more + "."}, true
}

func cutExcerpt(text string, n int) excerpt {
	shown, shortened := cut(text, n)
	out := excerpt{Text: shown}
	if shortened {
		out.More = "Only the beginning is shown; the Turn has all of it."
	}
	return out
}
