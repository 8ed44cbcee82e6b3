package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/test/localcluster/internal/build"
	"github.com/sharedos-dev/operator/test/localcluster/internal/cluster"
	"github.com/sharedos-dev/operator/test/localcluster/internal/layout"
)

func newAssets(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Build etcd, kube-apiserver and kubectl, and print their folder",
		Long: `Build etcd, kube-apiserver and kubectl, and print their folder, which is what
envtest wants in KUBEBUILDER_ASSETS. Needs no root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, dir, err := ensureAssets(cmd, o)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), dir)
			}
			return err
		},
	}
}

func newEnv(o *options) *cobra.Command {
	var onlyAssets bool
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print shell lines that point programs to the cluster",
		Long: `Print lines for a shell: eval "$(localcluster env)".

They set KUBECONFIG, KUBEBUILDER_ASSETS, PATH (for kubectl and ctr) and, for
ctr, the address of containerd. Programs that are missing are built.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, assets, err := ensureAssets(cmd, o)
			if err != nil {
				return err
			}
			if onlyAssets {
				writeAssetsEnv(cmd.OutOrStdout(), assets)
				return nil
			}
			containerd, err := build.Builder{Cache: l.Cache, Progress: cmd.ErrOrStderr()}.Ensure(cmd.Context(), build.Containerd())
			if err != nil {
				return err
			}
			writeClusterEnv(cmd.OutOrStdout(), l, assets, containerd, os.Getenv)
			return nil
		},
	}
	cmd.Flags().BoolVar(&onlyAssets, "only-assets", false, "only what envtest needs; no root, and no container runtime is built")
	return cmd
}

func ensureAssets(cmd *cobra.Command, o *options) (layout.Layout, string, error) {
	l, err := o.layout()
	if err != nil {
		return layout.Layout{}, "", err
	}
	dir, err := build.Builder{Cache: l.Cache, Progress: cmd.ErrOrStderr()}.Assets(cmd.Context(), l.Source)
	return l, dir, err
}

func writeAssetsEnv(w io.Writer, assets string) {
	fmt.Fprintf(w, "export KUBEBUILDER_ASSETS=%s\n", quote(assets))
	fmt.Fprintf(w, "export PATH=%s:\"$PATH\"\n", quote(assets))
}

func writeClusterEnv(w io.Writer, l layout.Layout, assets, containerd string, getenv func(string) string) {
	fmt.Fprintf(w, "export KUBECONFIG=%s\n", quote(l.Kubeconfig()))
	fmt.Fprintf(w, "export KUBEBUILDER_ASSETS=%s\n", quote(assets))
	fmt.Fprintf(w, "export PATH=%s:%s:\"$PATH\"\n", quote(assets), quote(containerd))
	fmt.Fprintf(w, "export CONTAINERD_ADDRESS=%s\n", quote(l.ContainerdSocket()))
	fmt.Fprintf(w, "export CONTAINERD_NAMESPACE=%s\n", cluster.ContainerdNamespace)
	// A proxy cannot reach the addresses on this machine's bridge.
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		proxy := strings.ReplaceAll(name, "NO_", "HTTPS_")
		proxy = strings.ReplaceAll(proxy, "no_", "https_")
		if getenv(proxy) == "" || strings.Contains(getenv(name), cluster.PodAndServiceCIDRs) {
			continue
		}
		fmt.Fprintf(w, "export %s=\"${%s:+$%s,}\"%s\n", name, name, name, quote(cluster.PodAndServiceCIDRs))
	}
}

// quote makes one word of a shell out of any text.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
