package kerneltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// The doors of the adversary matrix, which are the columns of its document.
const (
	DoorKernel   = "kernel"
	DoorEnvelope = "envelope"
	DoorMCP      = "mcp"
	DoorHTTP     = "http"
)

// Doors lists every door in the document's order.
func Doors() []string { return []string{DoorKernel, DoorEnvelope, DoorMCP, DoorHTTP} }

// Door is one way by which an adversary reaches the kernel.
type Door interface {
	// Name is one of [Doors].
	Name() string
	// Enter opens one turn, or what the door has instead, over the world. The door
	// cleans up with tb. It uses w.Kernel, w.Request and w.Clock.
	Enter(tb testing.TB, w *World) Seat
}

// Prober is a [Door] with violations of its own to try, beside those of the table:
// forged tokens, say. It tries those that belong to the row.
type Prober interface {
	Probe(row string, t *Trial)
}

// Answer is what an adversary learns: a status and, unless that is a success, a code.
type Answer struct{ Status, Code string }

// AnswerOf makes an answer of a status and the error beside it.
func AnswerOf(status string, e *contract.ProtocolError) Answer {
	if e == nil {
		return Answer{Status: status}
	}
	return Answer{status, e.Code}
}

// Seat is the adversary's place behind a door. A nil function is something that
// cannot be done there; rows leave it out, or do not apply.
type Seat struct {
	// Entry is how entering was answered; its zero value means the adversary is in.
	Entry Answer
	// Tools lists the names of the tools it is shown.
	Tools func() []string
	// Call calls a tool. A nil step declares none.
	Call func(id, tool, arguments string, step *int64) Answer
	// NoSteps says that a call cannot declare its step there.
	NoSteps bool
	// Authorize asks whether something would be allowed.
	Authorize func(need contract.CapabilityRequirement) Answer
	// Operate runs an operation on a resource plane.
	Operate func(op contract.ResourceOperation) Answer
	// Send sends a message.
	Send func(m contract.MessageEnvelope) Answer
	// End ends the turn with the adversary's outcome.
	End func(o envelope.Outcome) Answer
	// Crash runs one more turn whose runtime panics.
	Crash func() Answer
	// Events is the turn's record so far.
	Events func() []contract.ExecutionEvent
	// Handed are values of every type that the adversary's code is given.
	Handed []any
}

// Row is one attempted violation.
type Row struct {
	// ID names the row in tests and to a [Prober].
	ID string
	// Violation and Expected are the document's text.
	Violation, Expected string
	// NotApplicable says why a door structurally cannot be tried, by its name.
	NotApplicable map[string]string
	// Run tries it. Nil leaves the row to each door's [Prober].
	Run func(t *Trial)
}

// Secret is in what adversaries send; it must never be in the record.
const Secret = "matrix-secret-7f3a"

// Trial is one row tried through one door.
type Trial struct {
	TB   testing.TB
	Door Door

	mu       sync.Mutex
	attempts int
	controls int
	failures []string
	visits   []*visit
}

// visit is one turn that the trial entered.
type visit struct {
	world *World
	seat  Seat
	calls int
	ended bool
}

// Enter opens a turn over the world and keeps an eye on its record.
func (t *Trial) Enter(w *World) Seat {
	t.TB.Helper()
	seat := t.Door.Enter(t.TB, w)
	v := &visit{world: w, seat: seat}
	t.visits = append(t.visits, v)
	if call := seat.Call; call != nil {
		seat.Call = func(id, tool, arguments string, step *int64) Answer {
			t.mu.Lock()
			v.calls++
			t.mu.Unlock()
			return call(id, tool, arguments, step)
		}
	}
	if end := seat.End; end != nil {
		seat.End = func(o envelope.Outcome) Answer {
			v.ended = true
			return end(o)
		}
	}
	return seat
}

// Attempt counts a violation that was tried: it must have been answered with the
// status and one of the codes.
func (t *Trial) Attempt(name string, got Answer, status string, codes ...string) {
	t.TB.Helper()
	t.count(&t.attempts, name, got.Status == status && slices.Contains(codes, got.Code),
		fmt.Sprintf("answered %s %q, want %s %q", got.Status, got.Code, status, codes))
}

// Control counts something legitimate that must have worked, so that a door that
// refuses everything does not pass.
func (t *Trial) Control(name string, got Answer) {
	t.TB.Helper()
	fine := []string{"succeeded", "allowed", "accepted", "delivered", "escalated"}
	t.count(&t.controls, name, got.Code == "" && slices.Contains(fine, got.Status), fmt.Sprintf("answered %s %q", got.Status, got.Code))
}

// Holds counts a violation whose outcome is not an answer but a fact.
func (t *Trial) Holds(name string, fact bool, format string, args ...any) {
	t.TB.Helper()
	t.count(&t.attempts, name, fact, fmt.Sprintf(format, args...))
}

func (t *Trial) count(counter *int, name string, passed bool, why string) {
	t.TB.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	*counter++
	if !passed {
		t.failures = append(t.failures, name+": "+why)
	}
}

// Cell is the outcome of one row through one door.
type Cell struct {
	NotApplicable string
	Attempts      int
	Controls      int
	Failures      []string
}

// Passed reports whether every attempt failed as it must, every control worked and
// the record is complete.
func (c Cell) Passed() bool { return c.NotApplicable == "" && c.Attempts > 0 && len(c.Failures) == 0 }

// Try tries one row through one door.
func Try(tb testing.TB, row Row, door Door) Cell {
	tb.Helper()
	if why := row.NotApplicable[door.Name()]; why != "" {
		return Cell{NotApplicable: why}
	}
	t := &Trial{TB: tb, Door: door}
	if row.Run != nil {
		row.Run(t)
	}
	if prober, ok := door.(Prober); ok {
		prober.Probe(row.ID, t)
	}
	for _, v := range t.visits {
		t.failures = append(t.failures, v.incomplete()...)
	}
	return Cell{Attempts: t.attempts, Controls: t.controls, Failures: t.failures}
}

// incomplete lists what is wrong with the record of a turn.
func (v *visit) incomplete() []string {
	var wrong []string
	events := v.world.Audit.Events()
	ids := make(map[string]bool, len(events))
	allowed := make(map[string]bool)
	seen := make(map[audit.Type]int)
	for i := range events {
		e := &events[i]
		if flaw := flawOf(e); flaw != "" {
			wrong = append(wrong, fmt.Sprintf("record: %s %s", e.Type, flaw))
		}
		if ids[e.ID] {
			wrong = append(wrong, fmt.Sprintf("record: %s has another's id", e.Type))
		}
		ids[e.ID] = true
		seen[e.Type]++
		if e.Type == audit.AuthorizationChecked && e.Outcome == audit.Allowed {
			allowed[e.OperationID] = true
		}
		if e.Type == audit.ToolInvoked && e.Outcome == audit.Succeeded && !allowed[e.OperationID] {
			wrong = append(wrong, "record: a call succeeded before its decision was recorded")
		}
	}
	if calls := seen[audit.ToolInvoked] + seen[audit.EscalationRequested]; v.seat.Entry == (Answer{}) && calls < v.calls {
		wrong = append(wrong, fmt.Sprintf("record: %d of %d calls are on record", calls, v.calls))
	}
	if !v.ended {
		return wrong
	}
	if seen[audit.TurnEnded] == 0 {
		wrong = append(wrong, "record: the ending is missing")
	}
	return append(wrong, v.gaps()...)
}

// flawOf is what is wrong with one event, or nothing.
func flawOf(e *audit.Event) string {
	line, err := e.AppendJSON(nil)
	switch {
	case err != nil:
		return "cannot be written: " + err.Error()
	case containsSecret(line):
		return "holds what was sent"
	case e.ID == "" || e.TraceID == "" || e.NamespaceID == "" || e.Actor.ID == "" || e.Purpose == "":
		return "does not say who"
	default:
		return ""
	}
}

// gaps checks the events of an ended turn.
func (v *visit) gaps() []string {
	if v.seat.Events == nil {
		return nil
	}
	var wrong []string
	events := v.seat.Events()
	if len(events) < 2 || events[0].Type != contract.EventTurnStarted {
		return []string{"events: the turn does not begin"}
	}
	for i := range events {
		if events[i].Sequence != int64(i) {
			wrong = append(wrong, fmt.Sprintf("events: entry %d has sequence %d", i, events[i].Sequence))
		}
		if raw, err := json.Marshal(events[i]); err != nil || containsSecret(raw) {
			wrong = append(wrong, "events: an entry holds what was sent")
		}
	}
	switch last := events[len(events)-1].Type; last {
	case contract.EventTurnCompleted, contract.EventTurnEscalated, contract.EventTurnFailed, contract.EventTurnDenied, contract.EventTurnCancelled:
	default:
		wrong = append(wrong, fmt.Sprintf("events: the last one is %s", last))
	}
	return wrong
}
