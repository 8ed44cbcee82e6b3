package kerneltest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// echo is a transport that takes every message.
type echo struct{}

// Send implements [kernel.MessageTransport].
func (echo) Send(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return contract.MessageDeliveryResult{MessageID: m.ID, Status: contract.DeliveryAccepted, Timestamp: m.CreatedAt}, nil
}

// message is a message of the world's actor.
func (w *World) message(to contract.Address, payload string) contract.MessageEnvelope {
	return contract.MessageEnvelope{
		Version: contract.Version, ID: "message-2", Sender: Actor(), Receiver: to, Purpose: Purpose,
		Payload: contract.Value(payload), TraceID: TraceID, CreatedAt: contract.At(Epoch),
	}
}

func authorityRows() []Row {
	return []Row{{
		ID: "host-ceiling", Violation: "use a grant the host ceiling overrides",
		Expected: "host_policy_denied, grant named in audit; frozen tools absent from the catalogue",
		Run:      runHostCeiling,
	}, {
		ID: "read-as-write", Violation: "read authority used for a mutation", Expected: "denied, audited",
		Run: runReadAsWrite,
	}, {
		ID: "dead-grants", Violation: "expired grant; grant revoked before the turn; revoked ancestor", Expected: "denied; descendants invalid",
		Run: runDeadGrants,
	}, {
		ID: "revoked-mid-turn", Violation: "grant revoked mid-turn", Expected: "this turn keeps it; denied on the next turn",
		NotApplicable: map[string]string{DoorHTTP: httpHasNoTurn},
		Run: func(t *Trial) {
			w, _ := stage(MakeGrant("going").Descendants("files", []string{"Going"}, "read").Obj())
			seat := t.Enter(w)
			t.Control("before", seat.Call("c1", "files.read", pathArgs("Going"), nil))
			list := w.Grants.List
			w.Grants.Set(append(append([]contract.Grant{}, list[:3]...), MakeGrant("going").Descendants("files", []string{"Going"}, "read").Revoked(0).Obj())...)
			t.Control("this turn keeps it", seat.Call("c2", "files.read", pathArgs("Going"), nil))
			t.Attempt("the next turn", t.Enter(w).Call("c3", "files.read", pathArgs("Going"), nil), denied, contract.CodeNoMatchingGrant)
		},
	}, {
		ID: "window-closes", Violation: "window closes mid-turn", Expected: "denied on the next call",
		NotApplicable: map[string]string{DoorHTTP: httpHasNoTurn},
		Run: func(t *Trial) {
			w, _ := stage(MakeGrant("closing").Descendants("files", []string{"Closing"}, "read").Expires(time.Minute).Obj())
			seat := t.Enter(w)
			t.Control("before", seat.Call("c1", "files.read", pathArgs("Closing"), nil))
			w.Clock.Advance(time.Minute)
			t.Attempt("after", seat.Call("c2", "files.read", pathArgs("Closing"), nil), denied, contract.CodeNoMatchingGrant)
			t.control(seat, "control")
		},
	}, {
		ID: "cross-the-world", Violation: "cross the world or the owner", Expected: "denied invalid_request, audited",
		Run: runCrossing,
	}, {
		ID: "bounded-use", Violation: "exhaust a bounded grant, concurrently from 64 callers", Expected: "exactly maxUses succeed",
		Run: runBoundedUse,
	}, {
		ID: "infrastructure", Violation: "usage store unavailable; grant source unavailable at the turn's start", Expected: "fail closed, distinguishable from policy",
		Run: runInfrastructure,
	}, {
		ID: "rollback-scope", Violation: "roll back outside the rollback grant's scope", Expected: "denied",
		Run: func(t *Trial) {
			w, plane := stage(MakeGrant("rollback").Descendants("files", []string{"Work", "drafts"}, "snapshot:restore").Obj())
			d := Definition("restore", contract.ClassWrite)
			d.Name, d.RequiredCapability.Action = "files.snapshot.restore", "snapshot:restore"
			w.Options.Tools = append(w.Options.Tools, kernel.NewResourceTool(d, plane))
			seat := t.Enter(w)
			for i, path := range [][]string{{"Work"}, {"Work", "final"}, {"Work", "drafts2"}, {}} {
				t.Attempt(fmt.Sprint(path), seat.Call("c"+strconv.Itoa(i), "files.snapshot.restore", pathArgs(path...), nil), denied, contract.CodeNoMatchingGrant)
			}
			t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
			t.Control("within it", seat.Call("control", "files.snapshot.restore", pathArgs("Work", "drafts", "a"), nil))
		},
	}, {
		ID: "cross-product", Violation: "permission cross-product (path from one grant, action from another)", Expected: "denied",
		Run: func(t *Trial) {
			w, plane := stage(MakeGrant("two").Exact("files", []string{"A"}, "read").Exact("files", []string{"B"}, "list").Obj())
			seat := t.Enter(w)
			for i, attempt := range []struct{ tool, path string }{{"files.list", "A"}, {"files.read", "B"}, {"files.read", "Trash"}, {"files.delete", "Work"}, {"files.delete", "A"}} {
				t.Attempt(attempt.tool+" "+attempt.path, seat.Call("c"+strconv.Itoa(i), attempt.tool, pathArgs(attempt.path), nil), denied, contract.CodeNoMatchingGrant)
			}
			t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
			t.Control("read A", seat.Call("d1", "files.read", pathArgs("A"), nil))
			t.Control("list B", seat.Call("d2", "files.list", pathArgs("B"), nil))
		},
	}, {
		ID: "complete-record", Violation: "allowed and denied turns", Expected: "complete record",
		Run: runCompleteRecord,
	}}
}

// runCrossing reaches for another owner's resources and another world's grants.
func runCrossing(t *Trial) {
	w, plane := stage()
	bob := contract.Human("bob")
	steal := Definition("steal", contract.ClassRead)
	steal.RequiredCapability = Need("files", "read")
	w.Options.Tools = append(w.Options.Tools, kernel.Tool{
		Definition: steal,
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path, Owner: &bob}, Action: "read"}, err
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`"stolen"`)}, nil
		},
	})
	seat := t.Enter(w)
	t.Attempt("another owner, by a tool", seat.Call("c1", "files.steal", pathArgs("Work"), nil), denied, contract.CodeInvalidRequest)
	need := Need("files", "read", "Work")
	need.Resource.Owner = &bob
	if seat.Authorize != nil {
		t.Attempt("another owner, asked", seat.Authorize(need), denied, contract.CodeInvalidRequest)
	}
	if seat.Operate != nil {
		t.Attempt("another owner, directly", seat.Operate(contract.ResourceOperation{OperationID: "o", Resource: need.Resource, Action: "read"}), denied, contract.CodeInvalidRequest)
	}
	t.Holds("it is on record", audited(w, func(e *audit.Event) bool {
		return e.Type == audit.AuthorizationChecked && e.Outcome == audit.Denied && e.Reason == contract.CodeInvalidRequest
	}), "the crossing is not recorded")
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
	t.control(seat, "control")

	other, _ := stage(MakeGrant("foreign").World("team-other").Descendants("files", nil, "*").Obj())
	t.Attempt("a grant of another world", entryOrCall(t.Enter(other)), denied, contract.CodeAuthorityUnavailable)
	t.Holds("the grant is named", audited(other, func(e *audit.Event) bool { return e.Cause == "grant_scope_mismatch" && e.GrantID == "foreign" }), "the foreign grant is not recorded")
}

// entryOrCall is how the door answers an adversary without authority: at the
// entrance, or at the first call.
func entryOrCall(seat Seat) Answer {
	if seat.Entry != (Answer{}) {
		return seat.Entry
	}
	return seat.Call("first", "files.read", pathArgs("Work"), nil)
}

func runInfrastructure(t *Trial) {
	w, plane := stage(MakeGrant("bounded").Descendants("files", []string{"Bounded"}, "read").MaxUses(3).Obj())
	seat := t.Enter(w)
	t.Control("while the store works", seat.Call("c0", "files.read", pathArgs("Bounded"), nil))
	w.Uses.Fail(ErrPort)
	t.Attempt("the usage store fails", seat.Call("c1", "files.read", pathArgs("Bounded"), nil), denied, contract.CodeUsageStoreUnavailable)
	t.Holds("it is marked", audited(w, func(e *audit.Event) bool { return e.Reason == contract.CodeUsageStoreUnavailable && e.FailClosed }), "the denial is not marked as fail closed")
	t.Attempt("policy refuses", seat.Call("c2", "files.read", pathArgs("Other"), nil), denied, contract.CodeNoMatchingGrant)
	t.Holds("policy is not marked", !audited(w, func(e *audit.Event) bool { return e.Reason == contract.CodeNoMatchingGrant && e.FailClosed }), "a denial by policy is marked as fail closed")
	t.Holds("nothing more ran", len(plane.Operations()) == 1, "%d operations ran", len(plane.Operations()))
	t.control(seat, "control")

	missing, _ := stage(MakeGrant("bounded").Descendants("files", []string{"Bounded"}, "read").MaxUses(3).Obj())
	missing.Options.Usage = nil
	t.Attempt("no usage store", t.Enter(missing).Call("c3", "files.read", pathArgs("Bounded"), nil), denied, contract.CodeUsageStoreUnavailable)
	t.Holds("it is named", audited(missing, func(e *audit.Event) bool { return e.MissingDependency == "usageStore" }), "the missing store is not named")

	dark, _ := stage()
	dark.Grants.Fail(ErrPort)
	t.Attempt("the grant source fails", entryOrCall(t.Enter(dark)), denied, contract.CodeAuthorityUnavailable)
	t.Holds("it is marked and named", audited(dark, func(e *audit.Event) bool {
		return e.Type == audit.AuthorityResolved && e.FailClosed && e.Cause == "grant_source_failed"
	}), "the failure is not recorded")
}

func runHostCeiling(t *Trial) {
	w, _ := stage(MakeGrant("frozen").Descendants("files", nil, "archive").Obj(), MakeGrant("overridden").Descendants("files", []string{"Secret"}, "read").Obj())
	archive := Definition("archive", contract.ClassWrite)
	w.Options.Tools = append(w.Options.Tools, kernel.NewResourceTool(archive, &Plane{}))
	w.Options.Ceiling = kernel.HostCeilingFunc(func(q kernel.CeilingQuery) (bool, error) {
		return q.GrantID != "frozen" && q.GrantID != "overridden", nil
	})
	seat := t.Enter(w)
	t.Attempt("an overridden grant", seat.Call("c1", "files.read", pathArgs("Secret"), nil), denied, contract.CodeHostPolicyDenied)
	t.Holds("it is named", rejectedAs(w, "overridden", contract.CodeHostPolicyDenied), "the overridden grant is not named in audit")
	t.Holds("a frozen tool is not listed", !listed(seat, "files.archive"), "files.archive is listed")
	t.Attempt("a frozen tool", seat.Call("c2", "files.archive", pathArgs("Work"), nil), denied, contract.CodeToolUnavailable)
	t.Holds("its grant is named", rejectedAs(w, "frozen", contract.CodeHostPolicyDenied), "the frozen grant is not named in audit")
	t.control(seat, "control")
}

func runDeadGrants(t *Trial) {
	w, _ := stage(
		MakeGrant("expired").Descendants("files", []string{"Expired"}, "read").Expires(0).Obj(),
		MakeGrant("revoked").Descendants("files", []string{"Revoked"}, "read").Revoked(-time.Minute).Obj(),
		MakeGrant("future").Descendants("files", []string{"Future"}, "read").NotBefore(time.Hour).Obj(),
		MakeGrant("orphan").Descendants("files", []string{"Orphan"}, "read").Parent("parent").Obj(),
	)
	w.Ancestors.Add(
		MakeGrant("parent").To(Alice()).From(contract.Human("carol")).Issued(-2*time.Hour).Descendants("files", nil, "read").Depth(1).Parent("grandparent").Obj(),
		MakeGrant("grandparent").To(contract.Human("carol")).From(contract.Human("root")).Issued(-3*time.Hour).Descendants("files", nil, "read").Depth(2).Revoked(-time.Minute).Obj(),
	)
	seat := t.Enter(w)
	for i, path := range []string{"Expired", "Revoked", "Future"} {
		t.Attempt(path, seat.Call("c"+strconv.Itoa(i), "files.read", pathArgs(path), nil), denied, contract.CodeNoMatchingGrant)
		t.Holds(path+" on record", rejectedAs(w, []string{"expired", "revoked", "future"}[i], "window"), "the window is not recorded")
	}
	t.Attempt("a revoked ancestor", seat.Call("c9", "files.read", pathArgs("Orphan"), nil), denied, contract.CodeDelegationChainInvalid)
	t.control(seat, "control")
}

func runBoundedUse(t *Trial) {
	const callers, uses = 64, 7
	w, plane := stage(MakeGrant("bounded").Descendants("files", []string{"Bounded"}, "read").MaxUses(uses).Obj())
	seat := t.Enter(w)
	var ran, spent atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			switch got := seat.Call("c"+strconv.Itoa(i), "files.read", pathArgs("Bounded"), nil); {
			case got.Status == "succeeded":
				ran.Add(1)
			case got == Answer{denied, contract.CodeGrantExhausted}:
				spent.Add(1)
			}
		})
	}
	all.Wait()
	t.Holds("exactly its uses", ran.Load() == uses && spent.Load() == callers-uses && w.Uses.Spent("bounded") == uses && len(plane.Operations()) == uses,
		"%d ran, %d were refused, %d are spent, %d operations", ran.Load(), spent.Load(), w.Uses.Spent("bounded"), len(plane.Operations()))
	t.control(seat, "control")
}

func runCompleteRecord(t *Trial) {
	w, _ := stage()
	seat := t.Enter(w)
	t.control(seat, "c1")
	t.Attempt("a refused call", seat.Call("c2", "files.read", pathArgs("Other"), nil), denied, contract.CodeNoMatchingGrant)
	if seat.End != nil {
		t.Control("an allowed turn", seat.End(envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`{"text":"` + Secret + `"}`)}))
	}
	shut, _ := stage()
	shut.Grants.Set()
	if refused := t.Enter(shut); refused.Entry != (Answer{}) {
		t.Attempt("a refused turn", refused.Entry, denied, contract.CodeNoMatchingGrant)
		t.Holds("its record", audited(shut, func(e *audit.Event) bool {
			return e.Type == audit.TurnEnded && e.Outcome == audit.Denied && e.RequestedAuthority != nil
		}), "the refused turn is not recorded")
	}
}

func runReadAsWrite(t *Trial) {
	w, plane := stage()
	seat := t.Enter(w)
	t.Attempt("delete what may only be read", seat.Call("c1", "files.delete", pathArgs("Work", "a"), nil), denied, contract.CodeNoMatchingGrant)
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
	t.Holds("it is on record", audited(w, func(e *audit.Event) bool {
		return e.Type == audit.AuthorizationChecked && e.Outcome == audit.Denied && e.Action == "delete" && len(e.RejectedGrants) == 3
	}), "the denial is not recorded with its rejected grants")
	t.Control("delete in the trash", seat.Call("c2", "files.delete", pathArgs("Trash", "a"), nil))
}
