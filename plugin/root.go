package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// Program is the plugin as one call runs it.
type Program struct {
	Streams genericiooptions.IOStreams
	// Clock is what windows and ages are judged by; nil is [time.Now].
	Clock func() time.Time
}

// Main runs one call and returns its exit code. It prints everything itself.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	return Program{Streams: streams}.Run(ctx, args)
}

// Run runs one call and returns its exit code.
func (p Program) Run(ctx context.Context, args []string) int {
	e := newEnv(p.Streams)
	if p.Clock != nil {
		e.clock = p.Clock
	}
	root := newRoot(e)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	return e.report(err, called.CommandPath())
}

// newRoot returns the command with all of its own.
func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-sharedos",
		Short: "Ask what agents may do, run them, and see what they did",
		Long: `Works with SharedOS: what is granted, to whom, and what became of it.

Exit codes: 0 yes, done or allowed; 1 no: denied, failed or damaged; 2 no answer,
because of the call or because something could not be reached; 3 a Turn that asks for
a person's decision.`,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sharedos"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	e.addFlags(root)
	root.AddGroup(
		&cobra.Group{ID: groupAsk, Title: "What is allowed:"},
		&cobra.Group{ID: groupRun, Title: "Running agents:"},
		&cobra.Group{ID: groupGrant, Title: "Giving authority:"},
		&cobra.Group{ID: groupOffline, Title: "Without a cluster:"},
		&cobra.Group{ID: groupOperate, Title: "Operating it:"},
	)
	for _, add := range []struct {
		group string
		make  []func(*env) *cobra.Command
	}{
		{groupAsk, []func(*env) *cobra.Command{newCanI, newReach, newTools, newGrants}},
		{groupRun, []func(*env) *cobra.Command{newRun, newCancel, newLogs, newExplain}},
		{groupGrant, []func(*env) *cobra.Command{newEscalations, newApprove, newDerive}},
		{groupOffline, []func(*env) *cobra.Command{newTest, newLocal}},
		{groupOperate, []func(*env) *cobra.Command{newConsole, newAudit, newDoctor, newVersion}},
	} {
		for _, make := range add.make {
			cmd := make(e)
			cmd.GroupID = add.group
			root.AddCommand(cmd)
		}
	}
	command.Prepare(root, command.Streams(e.streams))
	return root
}

const (
	groupAsk     = "ask"
	groupRun     = "run"
	groupGrant   = "grant"
	groupOffline = "offline"
	groupOperate = "operate"
)

func examples(text string) string { return command.Examples(text) }
