package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// lastEvent is the newest audit event of a type.
func lastEvent(t *testing.T, w *kerneltest.World, kind audit.Type) audit.Event {
	t.Helper()
	events := w.Audit.Events()
	for _, event := range slices.Backward(events) {
		if event.Type == kind {
			return event
		}
	}
	t.Fatalf("no %s was recorded", kind)
	return audit.Event{}
}

func TestPathCoverageVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/path-coverage.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Scope          contract.Scope
		Grant, Request contract.Path
		Covered        bool
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 8 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		grant := kerneltest.MakeGrant("g").Descendants("files", c.Grant, "read")
		if c.Scope == contract.ScopeExact {
			grant = kerneltest.MakeGrant("g").Exact("files", c.Grant, "read")
		}
		d := kerneltest.New(grant.Obj()).Turn(t).Authorize(t.Context(), kerneltest.Need("files", "read", c.Request...))
		if d.Allowed != c.Covered {
			t.Errorf("%s %v covers %v: %t, want %t", c.Scope, c.Grant, c.Request, d.Allowed, c.Covered)
		}
	}
}

// readGrant covers reading below Work.
func readGrant(id string) *kerneltest.GrantBuilder {
	return kerneltest.MakeGrant(id).Descendants("files", []string{"Work"}, "read")
}

// ceilingOf is a ceiling that refuses or fails for some grants.
func ceilingOf(denied, failing string) kernel.HostCeiling {
	return kernel.HostCeilingFunc(func(q kernel.CeilingQuery) (bool, error) {
		if q.GrantID == failing {
			return true, errors.New("policy engine is down")
		}
		return q.GrantID != denied, nil
	})
}

func TestDecisionReasonsAndTheirPrecedence(t *testing.T) {
	t.Parallel()
	alien := contract.Human("bob")
	needOf := kerneltest.Need("files", "read", "Work", "a")
	tests := map[string]struct {
		grants   []contract.Grant
		world    func(w *kerneltest.World)
		need     *contract.CapabilityRequirement
		code     string
		grant    string
		rejected []audit.RejectedGrant
		missing  string
		closed   bool
	}{
		"allowed":                 {grants: []contract.Grant{readGrant("a").Obj()}, code: "allowed", grant: "a"},
		"no grant at all":         {code: "no_matching_grant", rejected: []audit.RejectedGrant{}},
		"the first by id":         {grants: []contract.Grant{readGrant("b").Obj(), readGrant("a").Obj()}, code: "allowed", grant: "a"},
		"own resource, named":     {grants: []contract.Grant{readGrant("a").Owned(kerneltest.Alice()).Obj()}, code: "allowed", grant: "a"},
		"another owner's grant":   {grants: []contract.Grant{readGrant("a").Owned(alien).Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}}},
		"another owner's need":    {grants: []contract.Grant{readGrant("a").Owned(alien).Obj()}, need: &contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work"}, Owner: &alien}, Action: "read"}, code: "invalid_request"},
		"malformed need":          {grants: []contract.Grant{readGrant("a").Obj()}, need: new(kerneltest.Need("files", "read", "Work", "..")), code: "invalid_request"},
		"any action":              {grants: []contract.Grant{kerneltest.MakeGrant("a").Descendants("files", nil, "*").Obj()}, code: "allowed", grant: "a"},
		"any is no pattern":       {grants: []contract.Grant{kerneltest.MakeGrant("a").Descendants("files", nil, "re*").Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}}},
		"asking for any":          {grants: []contract.Grant{readGrant("a").Obj()}, need: new(kerneltest.Need("files", "*", "Work")), code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}}},
		"prefix of a segment":     {grants: []contract.Grant{kerneltest.MakeGrant("a").Descendants("files", []string{"Wor"}, "read").Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}}},
		"issued later":            {grants: []contract.Grant{readGrant("a").Issued(time.Second).Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "window"}}},
		"issued at the instant":   {grants: []contract.Grant{readGrant("a").Issued(0).Obj()}, code: "allowed", grant: "a"},
		"not yet":                 {grants: []contract.Grant{readGrant("a").NotBefore(time.Second).Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "window"}}},
		"from this instant":       {grants: []contract.Grant{readGrant("a").NotBefore(0).Obj()}, code: "allowed", grant: "a"},
		"expires at the instant":  {grants: []contract.Grant{readGrant("a").Expires(0).Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "window"}}},
		"revoked at the instant":  {grants: []contract.Grant{readGrant("a").Revoked(0).Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "window"}}},
		"to be revoked":           {grants: []contract.Grant{readGrant("a").Revoked(time.Second).Obj()}, code: "allowed", grant: "a"},
		"other purpose":           {grants: []contract.Grant{readGrant("a").Purposes("Atlas-Status").Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "purpose"}}},
		"this purpose among many": {grants: []contract.Grant{readGrant("a").Purposes("x", kerneltest.Purpose).Obj()}, code: "allowed", grant: "a"},
		"window before purpose":   {grants: []contract.Grant{readGrant("a").Expires(0).Purposes("x").Obj()}, code: "no_matching_grant", rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "window"}}},
		"purpose before verifier": {grants: []contract.Grant{readGrant("a").Purposes("x").Obj(), readGrant("b").Obj()}, code: "no_matching_grant",
			world:    func(w *kerneltest.World) { w.Options.Verifier = verifyFunc(func(contract.Grant) bool { return false }) },
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "purpose"}, {GrantID: "b", Reason: "verifier"}}},
		"verifier panics": {grants: []contract.Grant{readGrant("a").Obj()}, code: "no_matching_grant",
			world:    func(w *kerneltest.World) { w.Options.Verifier = verifyFunc(func(contract.Grant) bool { panic("x") }) },
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "verifier"}}},
		"two grants are not combined": {grants: []contract.Grant{kerneltest.MakeGrant("a").Descendants("files", []string{"Work"}, "list").Obj(), kerneltest.MakeGrant("b").Descendants("files", []string{"Other"}, "read").Obj()}, code: "no_matching_grant",
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}, {GrantID: "b", Reason: "capability"}}},
		"two capabilities are not combined": {grants: []contract.Grant{kerneltest.MakeGrant("a").Descendants("files", []string{"Work"}, "list").Descendants("files", []string{"Other"}, "read").Obj()}, code: "no_matching_grant",
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "capability"}}},
		"spent": {grants: []contract.Grant{readGrant("a").MaxUses(1).Obj()}, code: "grant_exhausted",
			world: func(w *kerneltest.World) {
				_, _ = w.Uses.Consume(context.Background(), kernel.Use{GrantID: "a", MaxUses: 1})
			},
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "exhausted"}}},
		"spent, then another": {grants: []contract.Grant{readGrant("a").MaxUses(1).Obj(), readGrant("b").Obj()}, code: "allowed", grant: "b",
			world: func(w *kerneltest.World) {
				_, _ = w.Uses.Consume(context.Background(), kernel.Use{GrantID: "a", MaxUses: 1})
			}},
		"no usage store": {grants: []contract.Grant{readGrant("a").MaxUses(1).Obj(), readGrant("b").Obj()}, code: "usage_store_unavailable", closed: true, missing: "usageStore",
			world: func(w *kerneltest.World) { w.Options.Usage = nil }, rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "usage_store_unavailable"}}},
		"usage store fails": {grants: []contract.Grant{readGrant("a").MaxUses(1).Obj(), readGrant("b").Obj()}, code: "usage_store_unavailable", closed: true,
			world: func(w *kerneltest.World) { w.Uses.Err = kerneltest.ErrPort }, rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "usage_store_unavailable"}}},
		"host refuses":        {grants: []contract.Grant{readGrant("a").Obj()}, code: "host_policy_denied", world: func(w *kerneltest.World) { w.Options.Ceiling = ceilingOf("a", "") }, rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "host_policy_denied"}}},
		"host refuses one":    {grants: []contract.Grant{readGrant("a").Obj(), readGrant("b").Obj()}, code: "allowed", grant: "b", world: func(w *kerneltest.World) { w.Options.Ceiling = ceilingOf("a", "") }},
		"host policy is down": {grants: []contract.Grant{readGrant("a").Obj(), readGrant("b").Obj()}, code: "host_policy_unavailable", closed: true, world: func(w *kerneltest.World) { w.Options.Ceiling = ceilingOf("", "a") }, rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "host_policy_unavailable"}}},
		"host policy panics": {grants: []contract.Grant{readGrant("a").Obj()}, code: "host_policy_unavailable", closed: true,
			world: func(w *kerneltest.World) {
				w.Options.Ceiling = kernel.HostCeilingFunc(func(kernel.CeilingQuery) (bool, error) { panic("x") })
			},
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "host_policy_unavailable"}}},
		"host before uses": {grants: []contract.Grant{readGrant("a").MaxUses(1).Obj()}, code: "host_policy_denied",
			world:    func(w *kerneltest.World) { w.Options.Ceiling = ceilingOf("a", ""); w.Options.Usage = nil },
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "host_policy_denied"}}},
		"no resolver": {grants: []contract.Grant{readGrant("a").Parent("p").Obj()}, code: "delegation_chain_unverified", closed: true, missing: "delegationResolver",
			world: func(w *kerneltest.World) { w.Options.Delegation = nil }, rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "delegation"}}},
		"unverified outranks invalid, host and spent": {
			grants: []contract.Grant{
				readGrant("a").MaxUses(1).Obj(), readGrant("b").Obj(), readGrant("c").Parent("root").Obj(), readGrant("d").Parent("absent").Obj(),
			}, code: "delegation_chain_unverified", closed: true,
			world: func(w *kerneltest.World) {
				w.Options.Ceiling = ceilingOf("b", "")
				w.Ancestors.Add(readGrant("root").To(kerneltest.Alice()).Obj()) // grants no depth
				_, _ = w.Uses.Consume(context.Background(), kernel.Use{GrantID: "a", MaxUses: 1})
			},
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "exhausted"}, {GrantID: "b", Reason: "host_policy_denied"}, {GrantID: "c", Reason: "delegation"}, {GrantID: "d", Reason: "delegation"}},
		},
		"invalid outranks host": {
			grants: []contract.Grant{readGrant("a").Obj(), readGrant("b").Parent("root").Obj()}, code: "delegation_chain_invalid",
			world: func(w *kerneltest.World) {
				w.Options.Ceiling = ceilingOf("a", "")
				w.Ancestors.Add(readGrant("root").To(kerneltest.Alice()).Obj())
			},
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "host_policy_denied"}, {GrantID: "b", Reason: "delegation"}},
		},
		"host outranks spent": {
			grants: []contract.Grant{readGrant("a").MaxUses(1).Obj(), readGrant("b").Obj()}, code: "host_policy_denied",
			world: func(w *kerneltest.World) {
				w.Options.Ceiling = ceilingOf("b", "")
				_, _ = w.Uses.Consume(context.Background(), kernel.Use{GrantID: "a", MaxUses: 1})
			},
			rejected: []audit.RejectedGrant{{GrantID: "a", Reason: "exhausted"}, {GrantID: "b", Reason: "host_policy_denied"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(tt.grants...)
			if tt.world != nil {
				tt.world(w)
			}
			need := needOf
			if tt.need != nil {
				need = *tt.need
			}
			d := w.Turn(t).Consume(t.Context(), need)
			if d.ReasonCode != tt.code || d.MatchedGrantID != tt.grant || d.Allowed != (tt.code == "allowed") {
				t.Fatalf("decision = %+v, want %s by %q", d, tt.code, tt.grant)
			}
			if (d.RequiredAuthority != nil) != (tt.code == "no_matching_grant") {
				t.Errorf("required authority = %+v with %s", d.RequiredAuthority, tt.code)
			}
			e := lastEvent(t, w, audit.AuthorizationChecked)
			if e.Reason != tt.code || e.GrantID != tt.grant || e.FailClosed != tt.closed || e.MissingDependency != tt.missing {
				t.Errorf("recorded %s by %q, fail closed %t, missing %q", e.Reason, e.GrantID, e.FailClosed, e.MissingDependency)
			}
			if diff := cmp.Diff(tt.rejected, e.RejectedGrants); diff != "" {
				t.Errorf("rejected grants: -want +got\n%s", diff)
			}
			if !d.Allowed && (e.GrantsResolved == nil || *e.GrantsResolved != len(tt.grants)) {
				t.Errorf("grants resolved = %v, want %d", e.GrantsResolved, len(tt.grants))
			}
			if (e.Outcome == audit.Allowed) != d.Allowed {
				t.Errorf("outcome = %s", e.Outcome)
			}
		})
	}
}

func TestTheClockOnlyTakesAuthorityAway(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(
		readGrant("closing").Expires(time.Minute).Obj(),
		kerneltest.MakeGrant("opening").Descendants("files", []string{"Later"}, "read").NotBefore(time.Minute).Obj(),
		kerneltest.MakeGrant("revoking").Descendants("files", []string{"Kept"}, "read").Revoked(time.Minute).Obj(),
	)
	turn := w.Turn(t)
	code := func(path string) string {
		return turn.Authorize(t.Context(), kerneltest.Need("files", "read", path)).ReasonCode
	}
	if got := code("Work"); got != "allowed" {
		t.Errorf("before it closes: %s", got)
	}
	w.Clock.Advance(time.Minute)
	if got := code("Work"); got != "no_matching_grant" {
		t.Errorf("after the window closed: %s", got)
	}
	if got := code("Later"); got != "no_matching_grant" {
		t.Errorf("a window that opened mid-turn: %s", got)
	}
	if got := code("Kept"); got != "allowed" {
		t.Errorf("a grant revoked mid-turn is kept for the turn: %s", got)
	}
	w.Clock.Advance(-time.Hour)
	if got := code("Work"); got != "allowed" {
		t.Errorf("a clock that went back judges at admission: %s", got)
	}
}

func TestAuthorizeAndDiscoverSpendNothing(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").MaxUses(1).Obj())
	turn := w.Turn(t)
	need := kerneltest.Need("files", "read", "Work", "x")
	for range 3 {
		if d := turn.Authorize(t.Context(), need); !d.Allowed {
			t.Fatalf("authorize: %s", d.ReasonCode)
		}
		if d := turn.Discover(t.Context(), kerneltest.Need("files", "read")); !d.Allowed {
			t.Fatalf("discover: %s", d.ReasonCode)
		}
	}
	if w.Uses.Spent("a") != 0 {
		t.Fatalf("%d uses were spent by asking", w.Uses.Spent("a"))
	}
	if e := lastEvent(t, w, audit.AuthorizationChecked); e.Consumed {
		t.Error("asking is recorded as consuming")
	}
	if d := turn.Consume(t.Context(), need); !d.Allowed {
		t.Fatalf("consume: %s", d.ReasonCode)
	}
	if e := lastEvent(t, w, audit.AuthorizationChecked); !e.Consumed {
		t.Error("consuming is not recorded as such")
	}
	for name, d := range map[string]contract.AuthorizationDecision{
		"consume": turn.Consume(t.Context(), need), "authorize": turn.Authorize(t.Context(), need), "discover": turn.Discover(t.Context(), kerneltest.Need("files", "read")),
	} {
		if d.ReasonCode != "grant_exhausted" {
			t.Errorf("%s of a spent grant: %s", name, d.ReasonCode)
		}
	}
}

func TestDiscoveryIsOverlap(t *testing.T) {
	t.Parallel()
	narrow := kerneltest.MakeGrant("narrow").Exact("files", []string{"Work", "a"}, "read").Obj()
	wide := kerneltest.MakeGrant("wide").Descendants("repo", []string{"atlas"}, "*").Obj()
	turn := kerneltest.New(narrow, wide).Turn(t)
	for _, tt := range []struct {
		namespace, action string
		path              []string
		want              bool
	}{
		{"files", "read", nil, true}, {"files", "read", []string{"Work"}, true}, {"files", "read", []string{"Work", "a"}, true},
		{"files", "read", []string{"Work", "a", "b"}, false}, {"files", "read", []string{"Other"}, false}, {"files", "write", nil, false},
		{"repo", "anything", nil, true}, {"repo", "anything", []string{"atlas", "deep"}, true}, {"repo", "*", []string{"atlas"}, true}, {"repo", "x", []string{"atlas2"}, false},
	} {
		if d := turn.Discover(t.Context(), kerneltest.Need(tt.namespace, tt.action, tt.path...)); d.Allowed != tt.want {
			t.Errorf("discover %s %s %v: %s", tt.namespace, tt.action, tt.path, d.ReasonCode)
		}
	}
}

func TestRequiredAuthorityDescribesTheAsk(t *testing.T) {
	t.Parallel()
	w := kerneltest.New()
	turn := w.Turn(t)
	first := turn.Authorize(t.Context(), kerneltest.Need("files", "read", "Work")).RequiredAuthority
	w.Clock.Advance(time.Minute)
	again := turn.Authorize(t.Context(), kerneltest.Need("files", "read", "Work")).RequiredAuthority
	other := turn.Authorize(t.Context(), kerneltest.Need("files", "list", "Work")).RequiredAuthority
	if first.ID != again.ID || first.ID == other.ID {
		t.Errorf("ids %s, %s and %s", first.ID, again.ID, other.ID)
	}
	want := contract.CapabilityRequest{
		ID: first.ID, NamespaceID: kerneltest.NamespaceID, Requester: kerneltest.Actor(), Owner: kerneltest.Alice(), Purpose: kerneltest.Purpose,
		Capabilities: []contract.Capability{{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work"}}, Actions: []string{"read"}, Scope: contract.ScopeExact}},
		RequestedAt:  contract.At(kerneltest.Epoch),
	}
	if diff := cmp.Diff(want, *first); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := first.Validate(); err != nil {
		t.Errorf("the description is malformed: %v", err)
	}
}

func TestDecisionIsRecordedBeforeItIsGiven(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	turn := w.Turn(t)
	w.Audit.Fail = func(audit.Event) error { return kerneltest.ErrPort }
	for _, path := range []string{"Work", "Other"} {
		if d := turn.Consume(t.Context(), kerneltest.Need("files", "read", path)); d.Allowed || d.ReasonCode != "audit_unavailable" || d.MatchedGrantID != "" {
			t.Errorf("%s without a record: %+v", path, d)
		}
	}
}

func TestAllowsAllocateNothing(t *testing.T) {
	w := kerneltest.New(readGrant("a").Obj(), readGrant("b").MaxUses(5).Obj())
	turn := w.Turn(t)
	need := kerneltest.Need("files", "read", "Work", "x", "y")
	for _, mode := range []kernel.Mode{kernel.ModeConsume, kernel.ModeCheck, kernel.ModeDiscover} {
		if n := testing.AllocsPerRun(200, func() {
			if !turn.Allows(context.Background(), need, kerneltest.Epoch, mode) {
				t.Fatal("denied")
			}
		}); n != 0 {
			t.Errorf("mode %d allocates %v times, want 0", mode, n)
		}
	}
}

func TestEveryStandingIsJudgedEvenPastLoading(t *testing.T) {
	t.Parallel()
	w := kerneltest.New()
	k := w.Kernel(t)
	for want, g := range map[string]contract.Grant{
		"issuer": readGrant("g").From(contract.Human("bob")).To(contract.Human("bob")).Obj(), "subject": readGrant("g").To(contract.Human("bob")).World("other").Obj(),
		"namespace": readGrant("g").World("other").Expires(0).Issued(time.Hour).Obj(), "window": readGrant("g").Issued(time.Hour).Purposes("x").Obj(),
		"purpose": readGrant("g").Purposes("x").Obj(), "unknown": readGrant("g").Obj(),
	} {
		if got := k.StandingOf(g, w.Context()); got != want {
			t.Errorf("standing = %s, want %s", got, want)
		}
	}
}
