package offline

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/plugin/internal/command"
	"github.com/sharedos-dev/operator/policytest"
)

type tester struct {
	env      *Env
	junit    string
	coverage bool
	strict   bool
}

// NewTest makes the command that runs test files.
func NewTest(e *Env) *cobra.Command {
	t := &tester{env: e}
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Prove what a folder of manifests allows, without a cluster",
		Long: `Reads Principals, Grants, ToolNamespaces and files of cases (kind
AuthorizationTest) from folders, asks the kernel each case's question, and compares.
Files are checked as the API server would: a fault names file and line. Objects and
cases that name no namespace are of the one that -n names, or "default".

Exit code 0 means that every case passed, 1 that one failed or a file is at fault.`,
		Example: command.Examples(`
kubectl sharedos test policies/
kubectl sharedos test policies/ --coverage
kubectl sharedos test policies/ --junit report.xml     # for a pull request`),
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args) },
	}
	cmd.Flags().StringVar(&t.junit, "junit", "", "also write JUnit XML to this file")
	cmd.Flags().BoolVar(&t.coverage, "coverage", false, "name the Grants that no case exercises")
	cmd.Flags().BoolVar(&t.strict, "strict", false, "with --coverage: fail when a Grant is not exercised")
	return cmd
}

func (t *tester) run(cmd *cobra.Command, paths []string) error {
	now := t.env.Clock()
	world, err := t.env.world()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("junit") && t.junit == "" {
		return command.Usage("--junit: name a file")
	}
	plan, err := policytest.Load(paths, world, now)
	if faults, ok := errors.AsType[manifest.Faults](err); ok {
		fmt.Fprintln(t.env.Streams.Out, plain.Lines(faults.Error()))
		fmt.Fprintf(t.env.Streams.Out, "\nfaults: %d; no case was run\n", len(faults))
		if err := t.writeJUnit(func(w io.Writer) error { return policytest.WriteFaults(w, faults) }); err != nil {
			return err
		}
		return command.No()
	}
	if err != nil {
		return err
	}
	report, err := plan.Run(cmd.Context(), policytest.Options{Now: now, Clock: t.env.Clock, Coverage: t.coverage || t.strict})
	if err != nil {
		return err
	}
	if err := report.WriteTable(plain.Writer{Out: t.env.Streams.Out}); err != nil {
		return err
	}
	if err := t.writeJUnit(report.WriteJUnit); err != nil {
		return err
	}
	switch {
	case len(report.Results) == 0:
		fmt.Fprintln(t.env.Streams.ErrOut, "there is no case: add a file of kind AuthorizationTest")
		return command.No()
	case report.Failed > 0, t.strict && len(report.Coverage.Uncovered) > 0:
		return command.No()
	}
	return nil
}

func (t *tester) writeJUnit(write func(io.Writer) error) (err error) {
	if t.junit == "" {
		return nil
	}
	f, err := os.Create(t.junit)
	if err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return errors.Join(write(f), f.Close())
}
