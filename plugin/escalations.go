package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

// escalationAnswer is one escalation in JSON and YAML.
type escalationAnswer struct {
	Turn        string                      `json:"turn"`
	Principal   string                      `json:"principal"`
	Reviewer    string                      `json:"reviewer"`
	RequestedAt time.Time                   `json:"requestedAt"`
	Reason      string                      `json:"reason"`
	Asks        string                      `json:"asks,omitempty"`
	Requested   *contract.CapabilityRequest `json:"requestedAuthority,omitempty"`
}

func newEscalations(e *env) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use: "escalations", Aliases: []string{"escalation"},
		Short: "List the Turns that ask for a person's decision",
		Long: `Lists the Turns that ended by asking, the latest first. What an agent asks for is a
description and no authority: approve writes a Grant for it.`,
		Example: examples("kubectl sharedos escalations\nkubectl sharedos escalations -o json"),
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, namespace, err := e.world()
			if err != nil {
				return err
			}
			var list v1alpha1.TurnList
			if err := c.List(cmd.Context(), &list, client.InNamespace(namespace)); err != nil {
				return fmt.Errorf("list turns: %w", err)
			}
			answer := escalationsOf(list.Items)
			return o.print(e.streams.Out, answer, func(w io.Writer) error { return writeEscalations(w, answer, o.wide(), e.clock()) })
		},
	}
	o.addFlag(cmd)
	return cmd
}

func escalationsOf(turns []v1alpha1.Turn) []escalationAnswer {
	out := []escalationAnswer{}
	for i := range turns {
		t := &turns[i]
		asked := translate.ContractEscalation(t.Status.Escalation)
		if asked == nil {
			continue
		}
		out = append(out, escalationAnswer{
			Turn: t.Name, Principal: string(t.Spec.Principal), Reviewer: contract.CanonicalActor(asked.Reviewer),
			RequestedAt: asked.RequestedAt.Time, Reason: asked.Reason, Asks: asksFor(asked.RequestedAuthority), Requested: asked.RequestedAuthority,
		})
	}
	slices.SortStableFunc(out, func(a, b escalationAnswer) int { return b.RequestedAt.Compare(a.RequestedAt) })
	return out
}

// asksFor is what was asked for, in one line.
func asksFor(r *contract.CapabilityRequest) string {
	if r == nil {
		return ""
	}
	parts := make([]string, 0, len(r.Capabilities))
	for i := range r.Capabilities {
		c := &r.Capabilities[i]
		parts = append(parts, strings.Join(c.Actions, ",")+" "+snapshot.FormatPlace(c.Resource.Namespace, c.Resource.Path, c.Scope))
	}
	return strings.Join(parts, "; ")
}

func writeEscalations(w io.Writer, list []escalationAnswer, wide bool, now time.Time) error {
	if len(list) == 0 {
		fmt.Fprintln(w, "nobody asks for a decision")
		return nil
	}
	t := newTable(w, wide, 1, "TURN", "PRINCIPAL", "AGE", "ASKS", "REASON", "REVIEWER")
	for i := range list {
		a := &list[i]
		t.row(a.Turn, a.Principal, age(now.Sub(a.RequestedAt)), a.Asks, a.Reason, a.Reviewer)
	}
	return t.flush()
}

// age is a duration as kubectl shows it.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
