// Package cli is the command line of the tool.
package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/test/localcluster/internal/cluster"
	"github.com/sharedos-dev/operator/test/localcluster/internal/layout"
)

// errNotUp makes `status` end with its own exit code; what is wrong was shown.
var errNotUp = errors.New("the cluster is not up")

const exitNotUp = 3

// ExitCode is the exit code for an error of a command.
func ExitCode(err error) int {
	if errors.Is(err, errNotUp) {
		return exitNotUp
	}
	return 1
}

type options struct {
	source, cache, state string
}

func (o *options) layout() (layout.Layout, error) {
	return layout.New(o.source, o.cache, o.state)
}

func (o *options) cluster(cmd *cobra.Command) (*cluster.Cluster, error) {
	l, err := o.layout()
	if err != nil {
		return nil, err
	}
	return cluster.New(l, cmd.ErrOrStderr()), nil
}

// NewCommand returns the root command.
func NewCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "localcluster",
		Short: "Run a real Kubernetes on this Linux machine, without a container engine",
		Long: `localcluster builds Kubernetes, etcd, containerd and CoreDNS from their Go
modules, keeps the programs in a cache, and runs one single-node cluster.

The first start builds for about 8 minutes on two cores; later ones take
seconds. Results go to standard output, progress goes to standard error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.cache, "cache-dir", "", "folder of built programs (default ${SHAREDOS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sharedos}/localcluster)")
	flags.StringVar(&o.state, "state-dir", "", "folder of the cluster's keys, data and logs; `down` removes it (default "+layout.DefaultState+")")
	flags.StringVar(&o.source, "source-dir", "", "folder of this tool's module (default: found from where it was compiled, or from the working folder)")
	root.AddCommand(newUp(&o), newDown(&o), newStatus(&o), newLoad(&o), newEnv(&o), newAssets(&o))
	return root
}
