package plugin

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/snapshot"
)

// standing is one Grant in JSON and YAML.
type standing struct {
	Name    string `json:"name"`
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Usable  bool   `json:"usable"`
	Reason  string `json:"reason,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Uses    string `json:"uses,omitempty"`
	Expires string `json:"expires,omitempty"`
	Parent  string `json:"parent,omitempty"`
	About   string `json:"about"`
}

func newGrants(e *env) *cobra.Command {
	var a asking
	var o output
	cmd := &cobra.Command{
		Use:   "grants PRINCIPAL",
		Short: "List the Grants of a Principal, and which are usable now",
		Long: `Lists the Grants for a Principal with what each is about, and whether it is usable
for the purpose now: within its window, not spent, held by its parents. -o wide also
shows the Grants of others in the namespace.`,
		Example: examples(`
kubectl sharedos grants alice-assistant
kubectl sharedos grants alice-assistant --purpose atlas-planning
kubectl sharedos grants alice-assistant --at 2030-01-01T00:00:00Z`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(e.completePrincipals),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.principal = args[0]
			return runGrants(cmd, e, &a, &o)
		},
	}
	a.addFlags(cmd, e, false)
	o.addFlag(cmd)
	return cmd
}

func runGrants(cmd *cobra.Command, e *env, a *asking, o *output) error {
	inspector, ac, err := a.resolve(cmd.Context(), e, o)
	if err != nil {
		return err
	}
	answer := []standing{}
	for _, v := range inspector.Standing(cmd.Context(), ac) {
		if v.Reason != snapshot.ReasonOtherSubject || o.wide() {
			answer = append(answer, standingOf(&v))
		}
	}
	return o.print(e.streams.Out, answer, func(w io.Writer) error {
		if len(answer) == 0 {
			fmt.Fprintln(w, "no Grant is for this Principal")
			return nil
		}
		t := newTable(w, o.wide(), 3, "NAME", "ISSUER", "USABLE", "REASON", "USES", "EXPIRES", "ABOUT", "SUBJECT", "PARENT", "DETAIL")
		for i := range answer {
			s := &answer[i]
			t.row(s.Name, s.Issuer, yesNo(s.Usable), s.Reason, s.Uses, s.Expires, s.About, s.Subject, s.Parent, s.Detail)
		}
		return t.flush()
	})
}

func standingOf(v *snapshot.GrantVerdict) standing {
	g := v.Grant
	out := standing{
		Name: g.Name, Issuer: string(g.Spec.Issuer), Subject: string(g.Spec.Subject), Usable: v.Allows,
		Reason: v.Reason, Detail: v.Detail, Parent: string(g.Spec.ParentGrant), About: about(g),
	}
	if c := g.Spec.Constraints; c != nil {
		out.Expires = string(c.ExpiresAt)
		out.Uses = uses(g, c)
	}
	return out
}

func uses(g *v1alpha1.Grant, c *v1alpha1.GrantConstraints) string {
	if c.MaxUses == nil {
		return ""
	}
	return strconv.FormatInt(g.Status.Uses, 10) + "/" + strconv.FormatInt(*c.MaxUses, 10)
}
