package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

const maxObservation = 400

// step is one entry of a timeline.
type step struct {
	At moment
	// Since is the time since the Turn was created.
	Since string
	// Tone is how it is shown: quiet, good, bad, asks or busy.
	Tone  string
	Title string
	// Tool that was called, if it was a call.
	Tool string
	// Status in a word, and the code of a refusal with what it means.
	Status, Code, Meaning string
	Detail                string
	Took                  string
	// List is names that may be many.
	List []string
}

// callData is what an event of a call says.
type callData struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Code   string `json:"code"`
	Step   *int64 `json:"step"`
}

// turnData is what an event of a turn says.
type turnData struct {
	Tools       []string        `json:"tools"`
	Code        string          `json:"code"`
	Source      string          `json:"source"`
	Reason      string          `json:"reason"`
	Observation json.RawMessage `json:"observation"`
}

// timeline is everything that happened, in order: what the status says, and the
// events it lists. A call is one entry, at the instant it was made.
func timeline(t *v1alpha1.Turn, now time.Time) []step {
	b := &timelineBuilder{turn: t, now: now, open: map[string]int{}}
	b.add(t.CreationTimestamp.Time, step{Tone: "quiet", Title: "Created"})
	if a := t.Status.Admission; a != nil {
		b.add(a.At.Time, step{
			Tone: "good", Title: "Admitted",
			Detail: plural(int64(a.GrantCount), "grant", "grants") + " held, " + plural(int64(a.ToolCount), "tool", "tools") + " in the catalogue",
		})
	}
	if ready := v1alpha1.FindCondition(t.Status.Conditions, v1alpha1.TurnConditionBridgeReady); ready != nil && ready.Status == "True" {
		b.add(ready.LastTransitionTime.Time, step{Tone: "good", Title: "Bridge ready", Detail: ready.Message})
	}
	if t.Status.Events != nil {
		b.events(t.Status.Events)
	}
	if e := t.Status.Escalation; e != nil {
		b.add(e.RequestedAt.Time, step{Tone: "asks", Title: "Asked for a decision", Detail: e.Reason})
	}
	if t.Status.CompletedAt != nil {
		b.ending()
	}
	slices.SortStableFunc(b.steps, func(x, y step) int { return x.At.at.Truncate(time.Second).Compare(y.At.at.Truncate(time.Second)) })
	return b.steps
}

type timelineBuilder struct {
	turn  *v1alpha1.Turn
	now   time.Time
	steps []step
	// open is where a call is that has no answer yet, by its id.
	open map[string]int
	last int64
}

func (b *timelineBuilder) add(at time.Time, s step) {
	s.At = moment{at: at, now: b.now}
	if since := at.Sub(b.turn.CreationTimestamp.Time); since > 0 {
		s.Since = "+" + lasting(since)
	}
	b.steps = append(b.steps, s)
}

func (b *timelineBuilder) events(events *v1alpha1.TurnEvents) {
	b.last = -1
	for i := range events.Items {
		e := &events.Items[i]
		if left := e.Sequence - b.last - 1; left > 0 {
			where := ""
			if events.Ref != nil {
				where = "ConfigMap " + string(events.Ref.Name) + " has all of them."
			}
			b.add(e.OccurredAt.Time, step{Tone: "quiet", Title: plural(left, "event", "events") + " not listed in the status", Detail: where})
		}
		b.last = e.Sequence
		switch contract.EventType(e.Type) {
		case contract.EventToolRequested, contract.EventToolCompleted:
			b.call(e)
		case contract.EventTurnStarted, contract.EventRuntime:
			b.other(e)
		default:
			// The ending is told from the status, which says more.
		}
	}
}

// call adds a call, or its answer to the call.
func (b *timelineBuilder) call(e *v1alpha1.TurnEvent) {
	var data callData
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		b.add(e.OccurredAt.Time, step{Tone: "quiet", Title: string(e.Type), Detail: "The event's data cannot be read."})
		return
	}
	if contract.EventType(e.Type) == contract.EventToolRequested {
		b.add(e.OccurredAt.Time, step{Tone: "busy", Title: "Call", Tool: data.Tool, Status: "no answer listed"})
		b.open[data.CallID] = len(b.steps) - 1
		return
	}
	at, asked := b.open[data.CallID]
	if !asked {
		b.add(e.OccurredAt.Time, step{Title: "Call", Tool: data.Tool})
		at = len(b.steps) - 1
	}
	delete(b.open, data.CallID)
	s := &b.steps[at]
	s.Status, s.Code = data.Status, data.Code
	if s.Code != "" {
		s.Meaning = kernel.MessageFor(s.Code)
	}
	if asked {
		s.Took = lasting(e.OccurredAt.Sub(s.At.at))
	}
	switch contract.Status(data.Status) {
	case contract.StatusSucceeded:
		s.Tone = "good"
	case contract.StatusEscalated:
		s.Tone = "asks"
	default:
		s.Tone = "bad"
	}
}

func (b *timelineBuilder) other(e *v1alpha1.TurnEvent) {
	var data turnData
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		data = turnData{}
	}
	if contract.EventType(e.Type) == contract.EventTurnStarted {
		b.add(e.OccurredAt.Time, step{Tone: "busy", Title: "Agent started", List: data.Tools})
		return
	}
	detail, shortened := cut(string(data.Observation), maxObservation)
	if shortened {
		detail += " …"
	}
	b.add(e.OccurredAt.Time, step{Tone: "quiet", Title: "Said by the agent's runtime", Detail: detail})
}

// ending adds how the Turn ended.
func (b *timelineBuilder) ending() {
	s := &b.turn.Status
	badge := badgeOf(b.turn.State())
	out := step{Tone: badge.Tone, Title: "Ended", Status: strings.ToLower(badge.Text)}
	if s.Error != nil {
		out.Code, out.Meaning = s.Error.Code, s.Error.Message
	}
	if s.ExitCode != nil {
		out.Detail = fmt.Sprintf("The harness exited with %d.", *s.ExitCode)
	}
	b.add(s.CompletedAt.Time, out)
}
