package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newUp(o *options) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or repair it; leave it alone if it runs",
		Long: `Start the cluster and wait until its node is ready and service names resolve.

What already runs is left alone, what died is started again. If that does not
help, the cluster is removed and started anew, empty. Missing Debian packages
are installed. Prints the path of the kubeconfig. Needs root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster(cmd)
			if err != nil {
				return err
			}
			if err := c.Up(cmd.Context()); err != nil {
				return err
			}
			path := c.Layout.Kubeconfig()
			if kubeconfig != "" {
				if err := c.WriteKubeconfig(kubeconfig); err != nil {
					return err
				}
				path = kubeconfig
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "also write the kubeconfig to this file")
	return cmd
}

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and remove all it left, except the cache",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster(cmd)
			if err != nil {
				return err
			}
			return c.Down(cmd.Context())
		},
	}
}

func newLoad(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Load image archives (docker or OCI) into the running cluster",
		Long: `Load image archives into the running cluster.

Pods find the images by the names in the archives if their imagePullPolicy is
IfNotPresent or Never. The images are gone after ` + "`down`.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster(cmd)
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), args)
		},
	}
}
