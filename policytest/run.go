package policytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

// Reasons of a question that never comes to the kernel, because there is no context
// to ask it in.
const (
	ReasonPrincipalNotReady = "principal_not_ready"
	ReasonPurposeNotAllowed = "purpose_not_allowed"
)

// Options configure a run.
type Options struct {
	// Now is when cases without an instant of their own are asked.
	Now time.Time
	// Clock measures how long cases take; nil is [time.Now].
	Clock func() time.Time
	// Coverage also finds the Grants that no case exercises.
	Coverage bool
}

// Result is what became of one case.
type Result struct {
	Suite *Suite
	Case  *Case
	// Want and Got are the answers in one line.
	Want, Got string
	Passed    bool
	// Diff and Notes explain a case that failed: what differs, and what each Grant of
	// the Principal does.
	Diff  []string
	Notes []string
	Took  time.Duration
}

// Report is what became of all.
type Report struct {
	Results []Result
	Failed  int
	Took    time.Duration
	// Coverage is set when it was asked for.
	Coverage *Coverage
}

// Coverage says which Grants are exercised: some case asks what they alone would allow.
type Coverage struct {
	Grants    int
	Uncovered []Uncovered
}

// Uncovered is a Grant that no case exercises.
type Uncovered struct {
	manifest.Position
	Namespace string
	Name      string
}

// Run asks every case.
func (p *Plan) Run(ctx context.Context, opts Options) (*Report, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	inspector, err := snapshot.NewInspector(p.Snapshot)
	if err != nil {
		return nil, err
	}
	r := &runner{opts: opts, inspector: inspector, exercised: map[string]bool{}}
	begun := opts.Clock()
	report := &Report{}
	for _, s := range p.Suites {
		for i := range s.Cases {
			result := r.run(ctx, s, &s.Cases[i])
			if !result.Passed {
				report.Failed++
			}
			report.Results = append(report.Results, result)
		}
	}
	report.Took = opts.Clock().Sub(begun)
	if opts.Coverage {
		report.Coverage = p.coverage(r.exercised)
	}
	return report, ctx.Err()
}

type runner struct {
	opts      Options
	inspector *snapshot.Inspector
	exercised map[string]bool
}

func (r *runner) run(ctx context.Context, s *Suite, c *Case) Result {
	begun := r.opts.Clock()
	out := Result{Suite: s, Case: c}
	r.inspector.Uses().Reset()
	for grant, spent := range c.Uses {
		r.inspector.Uses().Set(s.Namespace, grant, spent)
	}
	at := c.At
	if at.IsZero() {
		at = r.opts.Now
	}
	ac, err := r.inspector.Context(s.Namespace, c.Principal, c.Purpose, at)
	switch {
	case c.Need != nil:
		r.authorize(ctx, &out, ac, err)
	case err != nil:
		out.Want, out.Got = "an answer", "error: "+err.Error()
		out.Diff = []string{"+ " + out.Got}
	case c.Tools != nil:
		r.tools(ctx, &out, ac)
	default:
		r.reach(ctx, &out, ac)
	}
	out.Took = r.opts.Clock().Sub(begun)
	return out
}

// authorize asks for a verdict.
func (r *runner) authorize(ctx context.Context, out *Result, ac contract.AccessContext, unready error) {
	c := out.Case
	var answer snapshot.Answer
	switch {
	case errors.Is(unready, translate.ErrPrincipalNotFound), errors.Is(unready, translate.ErrDuplicateAddress):
		answer.ReasonCode = ReasonPrincipalNotReady
	case unready != nil:
		answer.ReasonCode = ReasonPurposeNotAllowed
	default:
		answer = r.inspector.Authorize(ctx, ac, *c.Need)
	}
	out.Want = verdict(c.Allowed, c.Grant, c.Reason)
	grant, reason := "", ""
	if c.Grant != "" || answer.Allowed != c.Allowed {
		grant = answer.MatchedGrantID
	}
	if c.Reason != "" || answer.Allowed != c.Allowed {
		reason = answer.ReasonCode
	}
	out.Got = verdict(answer.Allowed, grant, reason)
	out.Passed = out.Want == out.Got
	if unready != nil && !c.Allowed && c.Reason == "" {
		// Nothing was asked of the kernel: mostly a misspelt name, which would pass for ever.
		out.Passed, out.Got = false, verdict(false, "", answer.ReasonCode)
		out.Notes = append(out.Notes, "the kernel was not asked; write reason: "+answer.ReasonCode+" if that is what the case is about")
	}
	if !out.Passed {
		out.Diff = []string{"- " + out.Want, "+ " + out.Got}
		if unready != nil {
			out.Notes = append(out.Notes, unready.Error())
		}
	}
	if unready == nil && (r.opts.Coverage || !out.Passed) {
		r.explain(ctx, out, ac)
	}
}

// explain notes what each Grant of the Principal does, and which are exercised.
func (r *runner) explain(ctx context.Context, out *Result, ac contract.AccessContext) {
	for _, v := range r.inspector.Explain(ctx, ac, *out.Case.Need) {
		if v.Allows {
			r.exercised[out.Suite.Namespace+"/"+v.Grant.Name] = true
		}
		if out.Passed || v.Reason == snapshot.ReasonOtherSubject {
			continue
		}
		note := "grant " + v.Grant.Name + " allows it"
		if !v.Allows {
			note = "grant " + v.Grant.Name + " does not: " + v.Reason
		}
		if v.Detail != "" {
			note += " (" + v.Detail + ")"
		}
		out.Notes = append(out.Notes, note)
	}
}

func verdict(allowed bool, grant, reason string) string {
	switch {
	case allowed && grant != "":
		return verdictAllowed + " by " + grant
	case allowed:
		return verdictAllowed
	case reason != "":
		return verdictDenied + ": " + reason
	default:
		return verdictDenied
	}
}

// tools asks for the catalogue.
func (r *runner) tools(ctx context.Context, out *Result, ac contract.AccessContext) {
	definitions, err := r.inspector.Tools(ctx, ac)
	if err != nil {
		out.Want, out.Got = count(out.Case.Tools, "tools"), "error: "+err.Error()
		out.Diff = []string{"+ " + out.Got}
		return
	}
	names := make([]string, 0, len(definitions))
	for i := range definitions {
		names = append(names, definitions[i].Name)
	}
	out.compare(out.Case.Tools, names, "tools")
}

// reach asks what is within reach.
func (r *runner) reach(ctx context.Context, out *Result, ac contract.AccessContext) {
	reach := r.inspector.Reach(ctx, ac)
	if reach.ReasonCode != "" {
		out.Want, out.Got = count(out.Case.Reach, "places"), "error: "+reach.ReasonCode
		out.Diff = []string{"+ " + out.Got}
		return
	}
	got := make([]string, 0, len(reach.Reach))
	for i := range reach.Reach {
		e := &reach.Reach[i]
		got = append(got, formatPlace(e.Namespace, e.Path, e.Scope, e.Actions))
	}
	slices.Sort(got)
	out.compare(out.Case.Reach, got, "places")
}

// compare fills in the result for two sorted lists.
func (r *Result) compare(want, got []string, what string) {
	r.Want, r.Got = count(want, what), count(got, what)
	r.Diff, r.Passed = difference(want, got)
	if !r.Passed && r.Want == r.Got {
		r.Got = "others"
	}
}

// difference merges two sorted lists, marking what only one of them has.
func difference(want, got []string) (lines []string, same bool) {
	same = true
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || (len(want) > 0 && want[0] < got[0]):
			lines, want, same = append(lines, "- "+want[0]), want[1:], false
		case len(want) == 0 || got[0] < want[0]:
			lines, got, same = append(lines, "+ "+got[0]), got[1:], false
		default:
			lines, want, got = append(lines, "  "+want[0]), want[1:], got[1:]
		}
	}
	if same {
		return nil, true
	}
	return lines, false
}

func count(list []string, what string) string { return fmt.Sprintf("%d %s", len(list), what) }

func sorted(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// coverage lists the Grants that are in force and that no case exercises.
func (p *Plan) coverage(exercised map[string]bool) *Coverage {
	out := &Coverage{}
	for _, namespace := range p.Snapshot.Namespaces() {
		grants := p.Snapshot.Grants(namespace)
		for i := range grants {
			if grants[i].Spec.Revoked {
				continue
			}
			out.Grants++
			if !exercised[namespace+"/"+grants[i].Name] {
				out.Uncovered = append(out.Uncovered, Uncovered{
					Position: p.Set.Position(&grants[i], "metadata.name"), Namespace: namespace, Name: grants[i].Name,
				})
			}
		}
	}
	return out
}
