package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
)

func newLogs(e *env) *cobra.Command {
	var follow, raw, bridge bool
	var tail int64
	cmd := &cobra.Command{
		Use:   "logs TURN",
		Short: "Print what the agent of a Turn writes",
		Long: `Prints the log of the harness container of the pod that the Turn is bound to.
Control characters are shown as escapes, because an agent wrote them; --raw prints
them as they are.`,
		Example: examples(`
kubectl sharedos logs status-report --follow
kubectl sharedos logs status-report --bridge   # the injected sidecar`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: e.completeTurns(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, turn, err := e.turn(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if turn.Status.Pod == nil {
				return fmt.Errorf("turn %q has no pod: it is %s", turn.Name, turn.State())
			}
			set, err := e.clientset()
			if err != nil {
				return err
			}
			options := &corev1.PodLogOptions{Container: v1alpha1.ContainerHarness, Follow: follow}
			if bridge {
				options.Container = v1alpha1.ContainerBridge
			}
			if tail >= 0 {
				options.TailLines = &tail
			}
			stream, err := openLog(cmd.Context(), follow, set.CoreV1().Pods(turn.Namespace).GetLogs(string(turn.Status.Pod.Name), options).Stream)
			if err != nil {
				return fmt.Errorf("read the log of pod %q: %w", turn.Status.Pod.Name, err)
			}
			out := e.streams.Out
			if !raw {
				out = plain.Writer{Out: out}
			}
			_, err = io.Copy(out, stream)
			return errors.Join(err, stream.Close())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the container ends")
	cmd.Flags().BoolVar(&raw, "raw", false, "print control characters as they are")
	cmd.Flags().BoolVar(&bridge, "bridge", false, "the log of the injected sidecar instead")
	cmd.Flags().Int64Var(&tail, "tail", -1, "only so many of the last lines")
	return cmd
}

// logPause is how long --follow waits for a container before it asks again.
const logPause = 500 * time.Millisecond

// openLog opens a log. A Turn runs once its bridge is ready, a moment before its harness
// starts: who follows waits for that.
func openLog(ctx context.Context, follow bool, open func(context.Context) (io.ReadCloser, error)) (stream io.ReadCloser, err error) {
	ended := wait.PollUntilContextCancel(ctx, logPause, true, func(ctx context.Context) (bool, error) {
		stream, err = open(ctx)
		return !follow || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "is waiting to start"), nil
	})
	return stream, errors.Join(err, ended)
}
