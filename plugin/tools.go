package plugin

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

// toolAnswer is one tool in JSON and YAML.
type toolAnswer struct {
	Name        string             `json:"name"`
	Namespace   string             `json:"namespace"`
	ReadWrite   contract.ReadWrite `json:"readWrite"`
	Destructive bool               `json:"destructive"`
	Action      string             `json:"action"`
	Place       string             `json:"place"`
	Description string             `json:"description"`
}

func newTools(e *env) *cobra.Command {
	var a asking
	var o output
	cmd := &cobra.Command{
		Use:   "tools PRINCIPAL",
		Short: "List the tools that a turn of a Principal would be offered",
		Long: `Lists the tools that are registered, on, and reached by some Grant. Every call is
authorized again from its arguments, so a tool in the list may still be refused.

The sources of the tools are not asked: a tool of an MCP server is listed as it is
declared, when its schema is pinned.`,
		Example: examples(`
kubectl sharedos tools alice-assistant
kubectl sharedos tools alice-assistant --purpose atlas-status -o wide`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(e.completePrincipals),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.principal = args[0]
			return runTools(cmd, e, &a, &o)
		},
	}
	a.addFlags(cmd, e, false)
	o.addFlag(cmd)
	return cmd
}

func runTools(cmd *cobra.Command, e *env, a *asking, o *output) error {
	inspector, ac, err := a.resolve(cmd.Context(), e, o)
	if err != nil {
		return err
	}
	definitions, err := inspector.Tools(cmd.Context(), ac)
	if err != nil {
		return err
	}
	answer := make([]toolAnswer, 0, len(definitions))
	for i := range definitions {
		answer = append(answer, toolOf(&definitions[i]))
	}
	return o.print(e.streams.Out, answer, func(w io.Writer) error {
		if len(answer) == 0 {
			fmt.Fprintln(w, "no tools: none is on that some Grant reaches for this purpose")
			return nil
		}
		t := newTable(w, o.wide(), 1, "TOOL", "CLASS", "NEEDS", "BELOW", "DESCRIPTION")
		for i := range answer {
			t.row(answer[i].Name, classOf(&answer[i]), answer[i].Action, answer[i].Place, answer[i].Description)
		}
		return t.flush()
	})
}

func toolOf(d *contract.ToolDefinition) toolAnswer {
	need := &d.RequiredCapability
	return toolAnswer{
		Name: d.Name, Namespace: d.Namespace, ReadWrite: d.ReadWrite, Action: need.Action, Description: d.Description,
		Place:       snapshot.FormatResource(need.Resource.Namespace, need.Resource.Path),
		Destructive: d.Annotations != nil && d.Annotations.Destructive != nil && *d.Annotations.Destructive,
	}
}

func classOf(t *toolAnswer) string {
	if t.Destructive {
		return "destructive"
	}
	return string(t.ReadWrite)
}
