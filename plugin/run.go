package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

type runTurn struct {
	env       *env
	output    output
	principal string
	purpose   string
	harness   string
	message   string
	payload   string
	from      string
	name      string
	tools     []string
	timeout   time.Duration
	calls     int64
	ttl       time.Duration
	wait      bool
	follow    bool
	dryRun    bool
}

func newRun(e *env) *cobra.Command {
	r := &runTurn{env: e}
	cmd := &cobra.Command{
		Use:   "run --principal NAME --harness NAME -m TEXT",
		Short: "Create a Turn, and follow it",
		Long: `Creates a Turn. With --wait it is waited for and its output is printed; with
--follow what happens is told on standard error meanwhile. Interrupting the command
does not end the Turn; cancel does.

Exit codes with --wait or --follow: 0 succeeded, 1 denied, failed or cancelled, 2
error, 3 escalated.`,
		Example: examples(`
kubectl sharedos run --principal alice-assistant --harness claude -m 'When does Atlas ship?' --follow
kubectl sharedos run --principal alice-assistant --harness claude -m 'When does Atlas ship?' --wait > answer.txt
kubectl sharedos run --principal alice-assistant --harness claude -m 'Hello' --dry-run -o yaml`),
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&r.principal, "principal", "", "Principal that acts (required)")
	f.StringVar(&r.harness, "harness", "", "Harness that runs the agent (required)")
	f.StringVarP(&r.message, "message", "m", "", "text that the agent is given")
	f.StringVar(&r.payload, "payload", "", "JSON that the agent is given instead of a text")
	f.StringVar(&r.purpose, "purpose", "", "purpose that it declares; its first one if none is given")
	f.StringVar(&r.from, "from", "", "Principal that sends the message; the acting one if none is given")
	f.StringVar(&r.name, "name", "", "name of the Turn; made from the Principal's if none is given")
	f.StringSliceVar(&r.tools, "tools", nil, "offer these tools only, as far as they are allowed")
	f.DurationVar(&r.timeout, "timeout", 0, "time that the turn may take, up to 10m")
	f.Int64Var(&r.calls, "max-tool-calls", 0, "calls that the turn may make")
	f.DurationVar(&r.ttl, "ttl", 0, "time that the finished Turn is kept")
	f.BoolVar(&r.wait, "wait", false, "wait for the end and print the output")
	f.BoolVar(&r.follow, "follow", false, "wait, and tell what happens meanwhile")
	f.BoolVar(&r.dryRun, "dry-run", false, "print the Turn and create nothing")
	r.output.addFlag(cmd)
	complete(cmd, "principal", e.completePrincipals)
	complete(cmd, "from", e.completePrincipals)
	complete(cmd, "harness", e.completeHarnesses)
	complete(cmd, "purpose", e.completePurposes(func() string { return r.principal }))
	return cmd
}

func (r *runTurn) run(cmd *cobra.Command) error {
	if err := r.check(); err != nil {
		return err
	}
	namespace, err := r.env.namespace()
	if err != nil {
		return err
	}
	turn := r.turn(namespace)
	if r.dryRun {
		return r.env.printObject(turn, &r.output)
	}
	c, err := r.env.client()
	if err != nil {
		return err
	}
	if err := c.Create(cmd.Context(), turn, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("create the Turn: %w", err)
	}
	if !r.wait && !r.follow {
		turn.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Turn"))
		return r.output.print(r.env.streams.Out, turn, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "turn/%s created\n", turn.Name)
			return err
		})
	}
	fmt.Fprintf(r.env.streams.ErrOut, "turn/%s created\n", turn.Name)
	return r.env.follow(cmd.Context(), c, turn, r.follow, &r.output)
}

func (r *runTurn) check() error {
	switch {
	case r.principal == "":
		return usage("--principal: name the Principal that acts")
	case r.harness == "":
		return usage("--harness: name the Harness that runs the agent")
	case (r.message == "") == (r.payload == ""):
		return usage("say what the agent is given: --message or --payload, and not both")
	case r.payload != "" && !json.Valid([]byte(r.payload)):
		return usage("--payload: this is no JSON")
	case r.timeout < 0 || r.calls < 0 || r.ttl < 0:
		return usage("limits must be positive")
	}
	return r.output.check()
}

// fieldOwner owns the fields that this plugin writes.
const fieldOwner = "kubectl-sharedos"

func (r *runTurn) turn(namespace string) *v1alpha1.Turn {
	t := &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.name},
		Spec: v1alpha1.TurnSpec{
			Principal: v1alpha1.ObjectName(r.principal), Purpose: v1alpha1.Purpose(r.purpose), Harness: v1alpha1.ObjectName(r.harness),
			Message: v1alpha1.TurnMessage{
				From: v1alpha1.ObjectName(r.from), Text: r.message, Payload: v1alpha1.JSONText(r.payload),
			},
		},
	}
	if r.name == "" {
		t.GenerateName = generateName(r.principal)
	}
	for _, tool := range r.tools {
		t.Spec.Tools = append(t.Spec.Tools, v1alpha1.ToolName(tool))
	}
	if r.timeout > 0 || r.calls > 0 {
		t.Spec.Options = &v1alpha1.ExecutionOptions{}
		if r.timeout > 0 {
			t.Spec.Options.TimeoutMs = new(r.timeout.Milliseconds())
		}
		if r.calls > 0 {
			t.Spec.Options.MaxToolCalls = new(r.calls)
		}
	}
	if r.ttl > 0 {
		t.Spec.TTLSecondsAfterFinished = new(int32(r.ttl / time.Second)) //nolint:gosec // the API bounds it
	}
	return t
}

// generateName leaves room for the five characters that are added to it.
func generateName(base string) string {
	const most = 63 - 6
	return base[:min(len(base), most)] + "-"
}
