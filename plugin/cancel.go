package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

func newCancel(e *env) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "cancel TURN",
		Short: "End a running Turn",
		Long:  "Ends a running Turn: its bridge closes, its pod is stopped, and the ending is recorded. The Turn itself stays.",
		Example: examples(`
kubectl sharedos cancel status-report
kubectl sharedos cancel status-report --wait`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: e.completeTurns(func(t *v1alpha1.Turn) bool { return !t.IsFinished() }),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, turn, err := e.turn(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if turn.IsFinished() {
				fmt.Fprintf(e.streams.ErrOut, "turn/%s has ended already: %s\n", turn.Name, turn.State())
				return no()
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))
			if err := c.Patch(cmd.Context(), turn, patch, client.FieldOwner(fieldOwner)); err != nil {
				return fmt.Errorf("cancel turn %q: %w", turn.Name, err)
			}
			if wait {
				if turn, err = await(cmd.Context(), c, turn, func(*v1alpha1.Turn) {}); err != nil {
					return err
				}
				fmt.Fprintf(e.streams.Out, "turn/%s ended: %s\n", turn.Name, turn.State())
				return nil
			}
			fmt.Fprintf(e.streams.Out, "turn/%s is being cancelled\n", turn.Name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	return cmd
}
