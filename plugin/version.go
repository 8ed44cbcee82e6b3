package plugin

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// versionAnswer is the version in JSON and YAML.
type versionAnswer struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version() string { return command.Version() }

func newVersion(e *env) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of the plugin",
		Long:    "Prints the version of the plugin. doctor compares it with the cluster's.",
		Example: examples("kubectl sharedos version -o json"),
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := versionAnswer{Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					if setting.Key == "vcs.revision" {
						v.Commit = setting.Value
					}
				}
			}
			return o.print(e.streams.Out, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "kubectl-sharedos %s (%s, %s)\n", v.Version, v.Go, v.Platform)
				return err
			})
		},
	}
	o.addFlag(cmd)
	return cmd
}
