package offline

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// Streams are what a program reads and writes.
type Streams = command.Streams

// Env is what the commands are made with.
type Env struct {
	Streams Streams
	// Clock is what windows are judged by.
	Clock func() time.Time
	// Namespace is the world of what names none. It is asked when a command runs.
	Namespace func() string
}

// world is the namespace, if it can be one.
func (e *Env) world() (string, error) {
	name := e.Namespace()
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return "", command.Usage("--namespace: %q is no name of a namespace: %s", name, strings.Join(faults, "; "))
	}
	return name, nil
}

// Main runs one call of sharedos-local and returns its exit code. It prints everything
// itself.
func Main(ctx context.Context, args []string, streams Streams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	return command.Report(streams.ErrOut, err, called.CommandPath())
}

func newRoot(streams Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "sharedos-local",
		Short: "Run agents and test manifests on this machine, without a cluster",
		Long: `Runs agents and tests manifests on this machine, without a cluster: the commands
"local run" and "test" of kubectl sharedos, as a small program of their own.

Exit codes: 0 yes, done or allowed; 1 no: denied or failed; 2 no answer, because of the
call or because something could not be reached; 3 a turn that asks for a person's
decision.`,
		Version: command.Version(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	namespace := root.PersistentFlags().StringP("namespace", "n", "default", "namespace of the objects and cases that name none")
	e := &Env{Streams: streams, Clock: time.Now, Namespace: func() string { return *namespace }}
	for _, add := range []func(*Env) *cobra.Command{NewRun, NewTest} {
		cmd := add(e)
		root.AddCommand(cmd)
		cmd.Example = strings.NewReplacer("kubectl sharedos local", root.Name(), "kubectl sharedos", root.Name()).Replace(cmd.Example)
	}
	command.Prepare(root, streams)
	return root
}
