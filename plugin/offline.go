package plugin

import (
	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/plugin/internal/command"
	"github.com/sharedos-dev/operator/plugin/offline"
)

// offline is what the commands that need no cluster are made with.
func (e *env) offline() *offline.Env {
	return &offline.Env{Streams: command.Streams(e.streams), Clock: e.clock, Namespace: e.offlineNamespace}
}

func newTest(e *env) *cobra.Command { return offline.NewTest(e.offline()) }

func newLocal(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "local", Short: "Run an agent on this machine, without a cluster",
		Long:    "Runs an agent on this machine, without a cluster.",
		Example: examples("kubectl sharedos local run policies/ --principal alice-assistant --files ./files -- claude -p 'When does Atlas ship?'"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(offline.NewRun(e.offline()))
	return cmd
}
