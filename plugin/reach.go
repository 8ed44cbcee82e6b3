package plugin

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/snapshot"
)

func newReach(e *env) *cobra.Command {
	var a asking
	var o output
	cmd := &cobra.Command{
		Use:   "reach PRINCIPAL",
		Short: "List the places that a Principal may touch",
		Long: `Lists every place that some usable Grant covers, and what may be done there.
Which Grants those are is not part of the answer; see grants and can-i --explain.`,
		Example: examples(`
kubectl sharedos reach alice-assistant
kubectl sharedos reach alice-assistant --purpose atlas-planning -o json`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(e.completePrincipals),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.principal = args[0]
			return runReach(cmd, e, &a, &o)
		},
	}
	a.addFlags(cmd, e, false)
	o.addFlag(cmd)
	return cmd
}

func runReach(cmd *cobra.Command, e *env, a *asking, o *output) error {
	inspector, ac, err := a.resolve(cmd.Context(), e, o)
	if err != nil {
		return err
	}
	reach := inspector.Reach(cmd.Context(), ac)
	err = o.print(e.streams.Out, reach, func(w io.Writer) error {
		if reach.ReasonCode != "" {
			fmt.Fprintln(w, "unavailable:", reasonText(reach.ReasonCode, ""))
			return nil
		}
		if len(reach.Reach) == 0 {
			fmt.Fprintln(w, "nothing: no Grant is usable for this purpose now")
			return nil
		}
		t := newTable(w, o.wide(), 0, "PLACE", "ACTIONS")
		for i := range reach.Reach {
			p := &reach.Reach[i]
			t.row(snapshot.FormatPlace(p.Namespace, p.Path, p.Scope), strings.Join(p.Actions, ","))
		}
		return t.flush()
	})
	if err == nil && reach.ReasonCode != "" {
		err = no()
	}
	return err
}
