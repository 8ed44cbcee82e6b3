package kerneltest

import (
	"context"
	"maps"
	"strconv"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

func turnRows() []Row {
	done := envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`"done"`)}
	envelopeOnly := map[string]string{DoorKernel: kernelHasNoTurn, DoorHTTP: httpHasNoSeat}
	return []Row{{
		ID: "budgets", Violation: "exceed the tool-call budget; exceed the step budget; renumber steps", Expected: "denied",
		NotApplicable: envelopeOnly,
		Run: func(t *Trial) {
			w, plane := stage()
			w.Prepare = budgets(2, 3)
			seat := t.Enter(w)
			step := func(n int64) *int64 { return &n }
			t.Control("step 1", seat.Call("c1", "files.read", pathArgs("Work"), step(1)))
			t.Control("step 0", seat.Call("c2", "files.read", pathArgs("Work"), step(0)))
			for i, n := range []int64{2, 3, 1 << 40, -1} {
				if seat.NoSteps {
					break
				}
				t.Attempt("step "+strconv.FormatInt(n, 10), seat.Call("d"+strconv.Itoa(i), "files.read", pathArgs("Work"), step(n)), denied, contract.CodeStepLimitExceeded)
			}
			t.Control("step 1 again", seat.Call("c3", "files.read", pathArgs("Work"), step(1)))
			t.Attempt("one call too many", seat.Call("c4", "files.read", pathArgs("Work"), step(1)), denied, contract.CodeToolCallLimitExceeded)
			t.Attempt("without a step", seat.Call("c5", "files.read", pathArgs("Work"), nil), denied, contract.CodeToolCallLimitExceeded)
			t.Holds("no more ran", len(plane.Operations()) == 3, "%d operations ran", len(plane.Operations()))
			t.Control("the turn goes on", seat.End(done))
		},
	}, {
		ID: "read-the-grants", Violation: "a runtime reads grants", Expected: "impossible by construction (type-checked)",
		NotApplicable: map[string]string{DoorMCP: "the harness is another process; what crosses is JSON of the types that the envelope door checks", DoorHTTP: "the caller is another process; what crosses is JSON of the types that the kernel door checks"},
		Run: func(t *Trial) {
			w, _ := stage()
			seat := t.Enter(w)
			for _, v := range seat.Handed {
				path := wayTo(v, contract.Grant{}, kernel.Turn{}, kernel.Kernel{}, kernel.GrantRef{}, kernel.Options{})
				t.Holds(typeName(v), path == "", "authority is within reach: %s", path)
			}
			t.control(seat, "control")
		},
	}, {
		ID: "escalation", Violation: "escalation granted; escalation not granted", Expected: "escalated and audited; failed tool_unavailable",
		NotApplicable: envelopeOnly,
		Run: func(t *Trial) {
			w, _ := stage(Escalation())
			seat := t.Enter(w)
			t.Control("asking", seat.Call("c1", contract.EscalateTool, `{"reason":"may I?"}`, nil))
			t.Control("the turn", seat.End(done))
			t.Holds("it is on record", audited(w, func(e *audit.Event) bool { return e.Type == audit.EscalationRequested && e.Outcome == audit.Escalated }) &&
				audited(w, func(e *audit.Event) bool { return e.Type == audit.TurnEnded && e.Outcome == audit.Escalated }), "the escalation is not recorded")
			without, _ := stage()
			seat = t.Enter(without)
			t.Attempt("asking without a grant", seat.Call("c2", contract.EscalateTool, `{"reason":"may I?"}`, nil), denied, contract.CodeToolUnavailable)
			t.Holds("it is not listed", !listed(seat, contract.EscalateTool), "listed: %v", seat.Tools())
			t.Attempt("ending by it", seat.End(envelope.Outcome{Kind: envelope.OutcomeEscalate, Escalation: &envelope.Ask{Reason: "may I?"}}), failed, contract.CodeToolUnavailable)
		},
	}, {
		ID: "runtime-panics", Violation: "runtime panics", Expected: "failed runtime_failed, record survives",
		NotApplicable: map[string]string{
			DoorKernel: kernelHasNoTurn, DoorHTTP: httpHasNoSeat, DoorMCP: "the harness is another process; how it exits is an outcome that its host reports",
		},
		Run: func(t *Trial) {
			w, _ := stage()
			seat := t.Enter(w)
			t.Attempt("it panics", seat.Crash(), failed, contract.CodeRuntimeFailed)
			t.Holds("it is on record", audited(w, func(e *audit.Event) bool {
				return e.Type == audit.TurnEnded && e.Outcome == audit.Failed && e.Reason == contract.CodeRuntimeFailed
			}), "the ending is not recorded")
			t.control(seat, "control") // another turn is not touched
			t.Control("another turn", seat.End(done))
		},
	}, {
		ID: "too-late", Violation: "call after the ask; call after the turn ended; late result", Expected: "escalation_pending; shut door; discarded",
		NotApplicable: envelopeOnly,
		Run:           runTooLate,
	}}
}

func runTooLate(t *Trial) {
	done := envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`"done"`)}
	w, plane := stage(Escalation())
	seat := t.Enter(w)
	t.control(seat, "control")
	t.Control("asking", seat.Call("c1", contract.EscalateTool, `{"reason":"may I?"}`, nil))
	t.Attempt("after the ask", seat.Call("c2", "files.read", pathArgs("Work"), nil), denied, contract.CodeEscalationPending)
	t.Attempt("asking again", seat.Call("c3", contract.EscalateTool, `{"reason":"may I?"}`, nil), denied, contract.CodeEscalationPending)
	t.Control("the turn", seat.End(done))
	t.Holds("nothing more ran", len(plane.Operations()) == 1, "%d operations ran", len(plane.Operations()))

	slow, _ := stage()
	entered, release := make(chan struct{}), make(chan struct{})
	tool := scripted("files.slow", fixed(Need("files", "read", "Work")), kernel.Output{})
	tool.Handle = func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
		close(entered)
		<-release
		return kernel.Output{Value: contract.Value(`"` + Secret + `"`)}, nil
	}
	slow.Options.Tools = append(slow.Options.Tools, tool)
	seat = t.Enter(slow)
	late := make(chan Answer)
	go func() { late <- seat.Call("c4", "files.slow", pathArgs("Work"), nil) }()
	<-entered
	t.Control("the turn ends meanwhile", seat.End(done))
	close(release)
	got := <-late
	t.Attempt("a late result", got, failed, contract.CodeTurnEnded)
	t.Attempt("after the turn", seat.Call("c5", "files.read", pathArgs("Work"), nil), denied, contract.CodeTurnEnded)
}

// wireRows are tried by each door's own probes.
func wireRows() []Row {
	local := map[string]string{DoorKernel: noWire, DoorEnvelope: noWire}
	return []Row{{
		ID: "tokens", Violation: "token: wrong signature, other turn's, other catalogue's, expired, truncated, extra claim, `alg`-style confusion",
		Expected: "refused", NotApplicable: merge(local, map[string]string{DoorHTTP: "the HTTP API defines no token; the host authenticates"}),
	}, {
		ID: "wire-tricks", Violation: "session id of another bridge; Origin or Host of another site; duplicate JSON keys; batch smuggling",
		Expected: "refused as specified", NotApplicable: local,
	}}
}

func merge(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
