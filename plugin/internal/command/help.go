package command

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Streams are what a program reads and writes.
type Streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Completer proposes the values of an argument or a flag.
type Completer = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// Complete sets the completion of a flag that exists.
func Complete(cmd *cobra.Command, flag string, f Completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a fault of this program
	}
}

// Fixed proposes always the same.
func Fixed(values ...string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// Prepare gives a root command, whose commands are all there, its streams, and makes
// wrong flags and arguments errors of usage.
func Prepare(root *cobra.Command, streams Streams) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError{err} })
	usageArgs(root)
}

func usageArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return UsageError{err}
			}
			return nil
		}
	}
	for _, inner := range cmd.Commands() {
		usageArgs(inner)
	}
}

// Examples indents what --help shows.
func Examples(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("  "+line, " ")
	}
	return strings.Join(lines, "\n")
}
