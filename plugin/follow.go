package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// errTurnGone means that a Turn was deleted while it was followed.
var errTurnGone = errors.New("the Turn was deleted")

// follow waits for the end of a Turn, prints what it left, and ends with the exit code
// of its outcome.
func (e *env) follow(ctx context.Context, c client.WithWatch, turn *v1alpha1.Turn, tell bool, o *output) error {
	story := &story{w: io.Discard}
	if tell {
		story.w = e.streams.ErrOut
	}
	turn, err := await(ctx, c, turn, story.tell)
	if err != nil {
		return err
	}
	text, err := turnOutput(ctx, c, turn)
	if err != nil {
		return err
	}
	turn.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Turn"))
	err = o.print(e.streams.Out, turn, func(w io.Writer) error { return command.PrintOutput(w, text) })
	if err != nil {
		return err
	}
	e.tellEnding(turn)
	return command.TurnExit(turn.Status.Outcome)
}

func (e *env) tellEnding(turn *v1alpha1.Turn) {
	w := e.streams.ErrOut
	if failure := turn.Status.Error; failure != nil {
		fmt.Fprintf(w, "%s: %s: %s\n", turn.Status.Outcome, plain.Text(failure.Code), plain.Text(failure.Message))
		fmt.Fprintf(w, "See 'kubectl sharedos explain turn/%s -n %s'.\n", turn.Name, turn.Namespace)
	}
	if turn.Status.Escalation != nil {
		fmt.Fprintf(w, "escalated: %s\nSee 'kubectl sharedos approve %s -n %s'.\n", plain.Text(turn.Status.Escalation.Reason), turn.Name, turn.Namespace)
	}
	if turn.Status.OutputTruncated {
		fmt.Fprintf(w, "The output was longer and was cut: it had %d bytes.\n", deref(turn.Status.OutputSize))
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// await returns the Turn once it has ended. A watch that breaks is begun again.
func await(ctx context.Context, c client.WithWatch, turn *v1alpha1.Turn, seen func(*v1alpha1.Turn)) (*v1alpha1.Turn, error) {
	key := client.ObjectKeyFromObject(turn)
	for {
		if err := c.Get(ctx, key, turn); err != nil {
			return nil, fmt.Errorf("get turn %q: %w", key.Name, err)
		}
		ended, err := awaitOnce(ctx, c, turn, seen)
		if err != nil || ended != nil {
			return ended, err
		}
	}
}

func awaitOnce(ctx context.Context, c client.WithWatch, turn *v1alpha1.Turn, seen func(*v1alpha1.Turn)) (*v1alpha1.Turn, error) {
	seen(turn)
	if turn.IsFinished() {
		return turn, nil
	}
	changes, err := c.Watch(ctx, &v1alpha1.TurnList{}, &client.ListOptions{
		Namespace: turn.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", turn.Name),
	})
	if err != nil {
		return nil, fmt.Errorf("watch turn %q: %w", turn.Name, err)
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the Turn %s goes on: %w", turn.Name, context.Cause(ctx))
		case change, open := <-changes.ResultChan():
			current, ok := change.Object.(*v1alpha1.Turn)
			switch {
			case !open || change.Type == watch.Error:
				return nil, nil //nolint:nilnil // begin again
			case change.Type == watch.Deleted:
				return nil, errTurnGone
			case !ok:
				continue
			}
			seen(current)
			if current.IsFinished() {
				return current, nil
			}
		}
	}
}

// story tells what is new about a Turn.
type story struct {
	w     io.Writer
	state v1alpha1.ConditionReason
	note  string
	next  int64
}

func (s *story) tell(t *v1alpha1.Turn) {
	if state := t.State(); state != s.state {
		s.state = state
		fmt.Fprintf(s.w, "%s\n", strings.TrimSpace(string(state)+" "+admitted(t, state)))
	}
	if note := waitingFor(t); note != s.note {
		s.note = note
		if note != "" {
			fmt.Fprintf(s.w, "  %s\n", plain.Text(note))
		}
	}
	if t.Status.Events == nil {
		return
	}
	for i := range t.Status.Events.Items {
		event := &t.Status.Events.Items[i]
		if event.Sequence < s.next {
			continue
		}
		s.next = event.Sequence + 1
		if line := eventLine(event); line != "" {
			fmt.Fprintf(s.w, "  %s\n", plain.Text(line))
		}
	}
}

func admitted(t *v1alpha1.Turn, state v1alpha1.ConditionReason) string {
	if state != v1alpha1.TurnStateAdmitted || t.Status.Admission == nil {
		return ""
	}
	return fmt.Sprintf("with %d grants and %d tools", t.Status.Admission.GrantCount, t.Status.Admission.ToolCount)
}

// waitingFor is why a Turn that has not begun waits.
func waitingFor(t *v1alpha1.Turn) string {
	for _, kind := range []v1alpha1.ConditionType{v1alpha1.TurnConditionAdmitted, v1alpha1.TurnConditionBridgeReady} {
		if c := v1alpha1.FindCondition(t.Status.Conditions, kind); c != nil && c.Status == "False" && !t.IsFinished() {
			return c.Message
		}
	}
	return ""
}

// eventData is what an event of a turn may hold.
type eventData struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Code   string `json:"code"`
}

func eventLine(e *v1alpha1.TurnEvent) string {
	data := dataOf(e)
	if e.Type == v1alpha1.EventType(contract.EventToolCompleted) {
		return strings.TrimSpace(data.Tool + ": " + data.Status + " " + data.Code)
	}
	return ""
}

func dataOf(e *v1alpha1.TurnEvent) eventData {
	var data eventData
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		return eventData{}
	}
	return data
}

// turnOutput is a finished Turn's output, wherever it is kept.
func turnOutput(ctx context.Context, c client.Reader, t *v1alpha1.Turn) (string, error) {
	if t.Status.Output != nil {
		return *t.Status.Output, nil
	}
	ref := t.Status.OutputRef
	if ref == nil {
		return "", nil
	}
	record := &corev1.ConfigMap{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(ref.Name)}, record); err != nil {
		return "", fmt.Errorf("read the output: %w", err)
	}
	if text, ok := record.Data[ref.Key]; ok {
		return text, nil
	}
	return string(record.BinaryData[ref.Key]), nil
}

// printObject prints an object without what only the server fills in.
func (e *env) printObject(object client.Object, o *output) error {
	data, err := objectJSON(object)
	if err != nil {
		return err
	}
	if o.format == formatJSON {
		_, err = e.streams.Out.Write(append(data, '\n'))
		return err
	}
	text, err := yaml.JSONToYAML(data)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	_, err = e.streams.Out.Write(text)
	return err
}

func objectJSON(object client.Object) ([]byte, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	delete(members, "status")
	if metadata, ok := members["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	members["apiVersion"] = v1alpha1.GroupVersion.String()
	switch object.(type) {
	case *v1alpha1.Grant:
		members["kind"] = "Grant"
	case *v1alpha1.Turn:
		members["kind"] = "Turn"
	}
	return json.MarshalIndent(members, "", "  ")
}
