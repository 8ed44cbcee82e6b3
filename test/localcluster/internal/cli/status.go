package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/test/localcluster/internal/cluster"
)

func newStatus(o *options) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs; the exit code is 0 only if the cluster works",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("output %q is not known: choose table or json", output)
			}
			c, err := o.cluster(cmd)
			if err != nil {
				return err
			}
			s := c.Status(cmd.Context())
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), s)
			} else {
				err = writeTable(cmd.OutOrStdout(), s, time.Now())
			}
			if err == nil && !s.Up {
				err = errNotUp
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "format: table or json")
	return cmd
}

func writeJSON(w io.Writer, s cluster.Status) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

func writeTable(w io.Writer, s cluster.Status, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "COMPONENT\tSTATE\tPID\tMEMORY\tAGE")
	for _, c := range s.Components {
		if !c.Running {
			fmt.Fprintf(t, "%s\tstopped\t-\t-\t-\n", c.Name)
			continue
		}
		fmt.Fprintf(t, "%s\trunning\t%d\t%d MiB\t%s\n", c.Name, c.PID, c.MemoryMiB, now.Sub(*c.Started).Round(time.Second))
	}
	fmt.Fprintln(t, "\t\t\t\t")
	fmt.Fprintln(t, "CHECK\tRESULT\tDETAIL\t\t")
	for _, c := range s.Checks {
		result, detail := "ok", c.Detail
		if !c.OK {
			result = "failed"
		}
		if c.Name == "api" && c.OK {
			detail = s.Version
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\t\n", c.Name, result, detail)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
