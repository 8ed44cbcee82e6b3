package policytest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sharedos-dev/operator/snapshot"
)

// Question is what a case asks, in a few words.
func (c *Case) Question() string {
	switch {
	case c.Need != nil:
		return c.Need.Action + " " + snapshot.FormatResource(c.Need.Resource.Namespace, c.Need.Resource.Path)
	case c.Tools != nil:
		return "tools"
	default:
		return "reach"
	}
}

// WriteTable writes one line per case, then the failures one by one, the coverage if
// it was asked for, and a summary.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "RESULT\tCASE\tPRINCIPAL\tQUESTION\tEXPECTED\tGOT")
	for i := range r.Results {
		result := &r.Results[i]
		c := result.Case
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", mark(result.Passed), c.Name, c.Principal, c.Question(), result.Want, result.Got)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for i := range r.Results {
		if !r.Results[i].Passed {
			fmt.Fprintf(w, "\n%s", r.Results[i].explanation())
		}
	}
	r.Coverage.write(w)
	_, err := fmt.Fprintf(w, "\n%d cases, %d failed, in %s\n", len(r.Results), r.Failed, r.Took.Round(time.Millisecond))
	return err
}

func mark(passed bool) string {
	if passed {
		return "ok"
	}
	return "FAIL"
}

// explanation is everything about a failed case.
func (r *Result) explanation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "FAIL %s: %s\n  %s asks: %s\n  (-expected +got)\n", r.Case.Position, r.Case.Name, r.Case.Principal, r.Case.Question())
	for _, line := range r.Diff {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "  %s\n", note)
	}
	return b.String()
}

func (c *Coverage) write(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "\n%d of %d grants are exercised by a case\n", c.Grants-len(c.Uncovered), c.Grants)
	for i := range c.Uncovered {
		u := &c.Uncovered[i]
		fmt.Fprintf(w, "  not exercised: %s/%s (%s)\n", u.Namespace, u.Name, u.Position)
	}
}
