package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

type explainTurn struct {
	env    *env
	output output
	audit  []string
}

// turnStory is the answer in JSON and YAML.
type turnStory struct {
	Turn    string    `json:"turn"`
	State   string    `json:"state"`
	Outcome string    `json:"outcome,omitempty"`
	Entries []chapter `json:"entries"`
}

// chapter is one thing that happened.
type chapter struct {
	At     string `json:"at,omitempty"`
	What   string `json:"what"`
	Gate   string `json:"gate,omitempty"`
	Needed string `json:"needed,omitempty"`
	// RequiredAuthority is what was needed, for programs, where the Turn holds it.
	RequiredAuthority *contract.CapabilityRequest `json:"requiredAuthority,omitempty"`
	Notes             []string                    `json:"notes,omitempty"`
}

func newExplain(e *env) *cobra.Command {
	x := &explainTurn{env: e}
	cmd := &cobra.Command{
		Use:   "explain turn/NAME",
		Short: "Tell the whole story of a Turn",
		Long: `Tells in order how a Turn was admitted, with which Grants and tools, each call it
made, and for each refusal which gate was shut and the Grant that would have been
needed.

A Turn keeps what its first 32 refused calls needed: the action and the place, the
purpose, and from whom to whom. Nothing else of a call's arguments is in it. The audit
log has every refusal: with --audit, a folder that holds it (a copy of the manager's
volume), the others and what each Grant did are told too.`,
		Example: examples(`
kubectl sharedos explain turn/status-report
kubectl sharedos explain turn/status-report --audit ./audit/log -o yaml`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: e.completeTurns(nil),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd, args[0]) },
	}
	cmd.Flags().StringSliceVar(&x.audit, "audit", nil, "folders of audit logs, one per replica of the manager")
	x.output.addFlag(cmd)
	return cmd
}

// turnName takes a Turn as turn/NAME or NAME.
func turnName(arg string) (string, error) {
	kind, name, found := strings.Cut(arg, "/")
	switch {
	case !found:
		return arg, nil
	case kind == "turn" || kind == "turns" || kind == "trn" || kind == "turns.sharedos.dev" || kind == "turn.sharedos.dev":
		return name, nil
	default:
		return "", usage("%q is no Turn: give NAME or turn/NAME", arg)
	}
}

// turn gets the Turn that an argument names, and the client that it came with.
func (e *env) turn(ctx context.Context, arg string) (client.WithWatch, *v1alpha1.Turn, error) {
	name, err := turnName(arg)
	if err != nil {
		return nil, nil, err
	}
	c, namespace, err := e.world()
	if err != nil {
		return nil, nil, err
	}
	turn := &v1alpha1.Turn{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, turn); err != nil {
		return nil, nil, fmt.Errorf("get turn %q: %w", name, err)
	}
	return c, turn, nil
}

func (x *explainTurn) run(cmd *cobra.Command, arg string) error {
	if err := x.output.check(); err != nil {
		return err
	}
	c, turn, err := x.env.turn(cmd.Context(), arg)
	if err != nil {
		return err
	}
	n := &narrator{
		turn: turn, records: map[string][]audit.Event{}, tools: map[string]contract.ToolDefinition{}, principals: translate.NewDirectory(nil),
		told: map[string]bool{},
	}
	if err := n.gather(cmd.Context(), c, x.audit); err != nil {
		return err
	}
	story := turnStory{
		Turn: turn.Namespace + "/" + turn.Name, State: string(turn.State()), Outcome: string(turn.Status.Outcome), Entries: n.tell(),
	}
	return x.output.print(x.env.streams.Out, story, story.write)
}

// narrator knows everything about one Turn.
type narrator struct {
	turn    *v1alpha1.Turn
	events  []v1alpha1.TurnEvent
	records map[string][]audit.Event // of the audit log, by operation
	ended   *audit.Event
	denied  *audit.Event // why admission was refused
	tools   map[string]contract.ToolDefinition
	on      map[string]bool // tool namespaces as they are now
	// principals as they are now.
	principals *translate.Directory
	// told are the refused calls that were told of.
	told map[string]bool
}

func (n *narrator) gather(ctx context.Context, c client.Reader, logs []string) error {
	if err := n.readEvents(ctx, c); err != nil {
		return err
	}
	for _, dir := range logs {
		for entry, err := range durable.Events(dir) {
			if err != nil {
				return err
			}
			n.keep(&entry.Event)
		}
	}
	// What the tools need, as they are now. Without the right to list it is left out.
	taken, err := snapshot.Take(ctx, cluster.Reader(c), n.turn.Namespace)
	if err != nil {
		return nil // a courtesy
	}
	return n.readTools(ctx, taken)
}

// readEvents reads every event, from the ConfigMap when the status has an excerpt.
func (n *narrator) readEvents(ctx context.Context, c client.Reader) error {
	events := n.turn.Status.Events
	if events == nil {
		return nil
	}
	n.events = events.Items
	if events.Ref == nil {
		return nil
	}
	record := &corev1.ConfigMap{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: n.turn.Namespace, Name: string(events.Ref.Name)}, record); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, text := range record.Data {
		var all []contract.ExecutionEvent
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return fmt.Errorf("read the events of turn %q: %w", n.turn.Name, err)
		}
		n.events = nil
		for i := range all {
			n.events = append(n.events, v1alpha1.TurnEvent{
				Sequence: all[i].Sequence, Type: v1alpha1.EventType(all[i].Type),
				OccurredAt: microTime(all[i].OccurredAt.Time), Data: v1alpha1.JSONText(all[i].Data),
			})
		}
	}
	return nil
}

// keep takes a record that is about this Turn.
func (n *narrator) keep(e *audit.Event) {
	if e.NamespaceID != n.turn.Namespace || e.TraceID != string(n.turn.Status.TraceID) || e.TraceID == "" {
		return
	}
	switch {
	case e.Type == audit.TurnEnded:
		n.ended = e
	case e.Type == audit.AuthorizationChecked && e.OperationID == "" && e.Outcome == audit.Denied:
		n.denied = e
	case e.OperationID != "":
		n.records[e.OperationID] = append(n.records[e.OperationID], *e)
	}
}

func (n *narrator) readTools(ctx context.Context, taken *snapshot.Snapshot) error {
	inspector, err := snapshot.NewInspector(taken)
	if err != nil {
		return err
	}
	n.on, n.principals = map[string]bool{}, translate.NewDirectory(taken.Principals(n.turn.Namespace))
	ac := contract.AccessContext{NamespaceID: n.turn.Namespace}
	for _, namespace := range taken.ToolNamespaces(n.turn.Namespace) {
		n.on[namespace.Name] = namespace.Spec.Enabled
		ac.EnabledToolNamespaces = append(ac.EnabledToolNamespaces, namespace.Name)
	}
	definitions, err := inspector.Ceilings(ctx, ac)
	for i := range definitions {
		n.tools[definitions[i].Name] = definitions[i]
	}
	return err
}

func (s *turnStory) write(w io.Writer) error {
	lines := []string{"Turn " + s.Turn + ": " + s.State}
	for _, c := range s.Entries {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-12s  %s", c.At, c.What), " "))
		const indent = "                "
		if c.Gate != "" {
			lines = append(lines, indent+"gate: "+c.Gate)
		}
		if c.Needed != "" {
			lines = append(lines, indent+"needed: "+c.Needed)
		}
		for _, note := range c.Notes {
			lines = append(lines, indent+note)
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, plainIndented(line)); err != nil {
			return fmt.Errorf("write the story: %w", err)
		}
	}
	return nil
}
