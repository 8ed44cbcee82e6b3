package plugin

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

type canI struct {
	env     *env
	asking  asking
	output  output
	explain bool
	quiet   bool
}

// canIAnswer is the answer in JSON and YAML.
type canIAnswer struct {
	Allowed           bool                        `json:"allowed"`
	ReasonCode        string                      `json:"reasonCode"`
	Grant             string                      `json:"grant,omitempty"`
	Cause             string                      `json:"cause,omitempty"`
	Action            string                      `json:"action"`
	Resource          contract.ResourceRef        `json:"resource"`
	Context           contract.AccessContext      `json:"context"`
	RequiredAuthority *contract.CapabilityRequest `json:"requiredAuthority,omitempty"`
	Grants            []grantAnswer               `json:"grants,omitempty"`
}

type grantAnswer struct {
	Name   string `json:"name"`
	Allows bool   `json:"allows"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

func newCanI(e *env) *cobra.Command {
	c := &canI{env: e}
	cmd := &cobra.Command{
		Use:   "can-i ACTION NAMESPACE:PATH --as PRINCIPAL",
		Short: "Ask whether a Principal may do something, and why",
		Long: `Asks the kernel, run here over the Principals and Grants that you may list.
Nothing is spent or changed. Exit code 0 is yes, 1 is no.`,
		Example: examples(`
# may the assistant read this file?
kubectl sharedos can-i read files:Work/atlas/status.md --as alice-assistant

# for another purpose, with every Grant and why it does or does not allow it
kubectl sharedos can-i read files:Work/atlas/status.md --as alice-assistant --purpose atlas-planning --explain

# may it run at all?
kubectl sharedos can-i invoke sharedos.execution:agent/alice-assistant --as alice-assistant`),
		Args: cobra.ExactArgs(2), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
	}
	c.asking.addFlags(cmd, e, true)
	c.output.addFlag(cmd)
	cmd.Flags().BoolVar(&c.explain, "explain", false, "show every Grant and why it does or does not allow it")
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "print nothing; the exit code is the answer")
	return cmd
}

func (c *canI) run(cmd *cobra.Command, action, place string) error {
	resource, err := snapshot.ParseResource(place)
	if err != nil {
		return usageError{Err: err}
	}
	need := contract.CapabilityRequirement{Resource: resource, Action: action}
	if err := need.Validate(); err != nil {
		return usageError{Err: err}
	}
	inspector, ac, err := c.asking.resolve(cmd.Context(), c.env, &c.output)
	if err != nil {
		return err
	}
	answer := inspector.Authorize(cmd.Context(), ac, need)
	out := canIAnswer{
		Allowed: answer.Allowed, ReasonCode: answer.ReasonCode, Grant: answer.MatchedGrantID, Cause: answer.Cause,
		Action: action, Resource: resource, Context: ac, RequiredAuthority: answer.RequiredAuthority,
	}
	var verdicts []snapshot.GrantVerdict
	if c.explain {
		verdicts = inspector.Explain(cmd.Context(), ac, need)
		for _, v := range verdicts {
			out.Grants = append(out.Grants, grantAnswer{Name: v.Grant.Name, Allows: v.Allows, Reason: v.Reason, Detail: v.Detail})
		}
	}
	if !c.quiet {
		err = c.output.print(c.env.streams.Out, out, func(w io.Writer) error { return c.table(w, &out, verdicts) })
	}
	if err == nil && !answer.Allowed {
		err = no()
	}
	return err
}

func (c *canI) table(w io.Writer, a *canIAnswer, verdicts []snapshot.GrantVerdict) error {
	if a.Allowed {
		fmt.Fprintf(w, "yes: allowed by the Grant %s\n", plain.Text(a.Grant))
	} else {
		fmt.Fprintf(w, "no: %s\n", plain.Text(reasonText(a.ReasonCode, a.Cause)))
		if a.RequiredAuthority != nil {
			fmt.Fprintf(w, "needed: %s\n", plain.Text(neededText(&a.Context, a.Action, &a.Resource)))
		}
	}
	if c.explain {
		fmt.Fprintln(w)
		return explainTable(w, verdicts, c.output.wide())
	}
	return nil
}

// reasonText is a code with its sentence.
func reasonText(code, cause string) string {
	text := code
	if cause != "" {
		text += " (" + cause + ")"
	}
	if sentence := kernel.MessageFor(code); sentence != "" {
		text += ": " + sentence
	}
	return text
}

// explainTable lists what each Grant does. Grants of others are only counted unless
// the table is wide.
func explainTable(w io.Writer, verdicts []snapshot.GrantVerdict, wide bool) error {
	t := newTable(w, wide, 1, "GRANT", "ALLOWS", "REASON", "ABOUT", "DETAIL")
	others := 0
	for _, v := range verdicts {
		if v.Reason == snapshot.ReasonOtherSubject && !wide {
			others++
			continue
		}
		t.row(v.Grant.Name, yesNo(v.Allows), v.Reason, about(v.Grant), v.Detail)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if others > 0 {
		fmt.Fprintf(w, "\n%d more are for other Principals; -o wide shows them.\n", others)
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// about is what a Grant's capabilities are about, in one line.
func about(g *v1alpha1.Grant) string {
	parts := make([]string, 0, len(g.Spec.Capabilities))
	for i := range g.Spec.Capabilities {
		c := &g.Spec.Capabilities[i]
		path := make(contract.Path, len(c.Resource.Path))
		for n, segment := range c.Resource.Path {
			path[n] = string(segment)
		}
		actions := make([]string, len(c.Actions))
		for n, action := range c.Actions {
			actions[n] = string(action)
		}
		text := strings.Join(actions, ",") + " " + snapshot.FormatPlace(string(c.Resource.Namespace), path, contract.Scope(c.Scope))
		if c.Resource.Owner != "" {
			text += " of " + string(c.Resource.Owner)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
