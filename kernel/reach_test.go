package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestReachIsWhatMayBeTouchedNow(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(
		readGrant("a").Obj(),
		kerneltest.MakeGrant("b").Descendants("files", []string{"Work"}, "list", "read").Exact("files", []string{"Work"}, "write").Obj(),
		kerneltest.MakeGrant("others").Descendants("files", []string{"Bob"}, "read").Owned(contract.Human("bob")).Obj(),
		kerneltest.MakeGrant("own").Descendants("repo", nil, "*").Owned(kerneltest.Alice()).Obj(),
		readGrant("expired").Expires(0).Obj(), readGrant("purpose").Purposes("x").Obj(),
		kerneltest.MakeGrant("left").Descendants("calendar", nil, "read").MaxUses(2).Obj(),
		kerneltest.MakeGrant("spent").Descendants("mail", nil, "read").MaxUses(1).Obj(),
		kerneltest.MakeGrant("closing").Descendants("soon", nil, "read").Expires(time.Minute).Obj(),
		kerneltest.MakeGrant("orphan").Descendants("orphaned", nil, "read").Parent("absent").Obj(),
		leaf().Obj(),
	)
	w.Ancestors.Add(root().Obj())
	w.Options.Ceiling = ceilingOf("a", "b") // never consulted
	if _, err := w.Uses.Consume(t.Context(), kernel.Use{GrantID: "spent", MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	turn := w.Turn(t)
	want := contract.ReachResult{Status: "computed", Reach: []contract.ReachEntry{
		{Namespace: "calendar", Path: contract.Path{}, Actions: []string{"read"}, Scope: contract.ScopeDescendants},
		{Namespace: "files", Path: contract.Path{"Work"}, Actions: []string{"list", "read"}, Scope: contract.ScopeDescendants},
		{Namespace: "files", Path: contract.Path{"Work"}, Actions: []string{"write"}, Scope: contract.ScopeExact},
		{Namespace: "files", Path: contract.Path{"Work", "a"}, Actions: []string{"read"}, Scope: contract.ScopeDescendants},
		{Namespace: "repo", Path: contract.Path{}, Actions: []string{"*"}, Scope: contract.ScopeDescendants},
		{Namespace: "soon", Path: contract.Path{}, Actions: []string{"read"}, Scope: contract.ScopeDescendants},
	}}
	got := turn.Reach(t.Context())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	if w.Uses.Spent("left") != 0 {
		t.Error("asking for the reach spent a use")
	}
	w.Clock.Advance(time.Minute)
	for _, place := range turn.Reach(t.Context()).Reach {
		if place.Namespace == "soon" {
			t.Error("a place whose window has closed is within reach")
		}
	}
	if diff := cmp.Diff(turn.Reach(t.Context()), w.Kernel(t).Reach(t.Context(), w.Context())); diff != "" {
		t.Errorf("outside a turn: %s", diff)
	}
}

func TestReachIsWithheldWhole(t *testing.T) {
	t.Parallel()
	need := readGrant("b").MaxUses(1).Obj()
	for name, tt := range map[string]struct {
		world func(w *kerneltest.World)
		code  string
	}{
		"store fails":    {func(w *kerneltest.World) { w.Uses.Err = kerneltest.ErrPort }, "usage_store_unavailable"},
		"no store":       {func(w *kerneltest.World) { w.Options.Usage = nil }, "usage_store_unavailable"},
		"resolver fails": {func(w *kerneltest.World) { w.Ancestors.Err = kerneltest.ErrPort }, "authority_unavailable"},
	} {
		w := kerneltest.New(readGrant("a").Obj(), need, leaf().Obj())
		w.Ancestors.Add(root().Obj())
		tt.world(w)
		want := contract.ReachResult{Status: "unavailable", ReasonCode: tt.code}
		if diff := cmp.Diff(want, w.Turn(t).Reach(t.Context())); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	w := kerneltest.New()
	w.Grants.Err = kerneltest.ErrPort
	want := contract.ReachResult{Status: "unavailable", ReasonCode: "authority_unavailable"}
	if diff := cmp.Diff(want, w.Kernel(t).Reach(context.Background(), w.Context())); diff != "" {
		t.Errorf("no authority: %s", diff)
	}
}

func TestReachIsBounded(t *testing.T) {
	t.Parallel()
	grants := make([]contract.Grant, 0, 300)
	for i := range 300 {
		g := kerneltest.MakeGrant(fmt.Sprintf("g%d", i))
		for j := range 64 {
			g.Exact("files", []string{fmt.Sprint(i), fmt.Sprint(j)}, "read")
		}
		grants = append(grants, g.Obj())
	}
	if r := kerneltest.New(grants...).Turn(t).Reach(t.Context()); r.Status != "unavailable" || r.Validate() != nil {
		t.Errorf("a reach beyond the limit is %s with %d places", r.Status, len(r.Reach))
	}
	many := kerneltest.MakeGrant("many")
	for i := range 2 {
		actions := make([]string, 64)
		for j := range actions {
			actions[j] = fmt.Sprintf("a%d-%d", i, j)
		}
		many.Exact("files", nil, actions...)
	}
	r := kerneltest.New(many.Obj()).Turn(t).Reach(t.Context())
	if len(r.Reach) != 2 || r.Validate() != nil {
		t.Errorf("one place with too many actions became %d entries, %v", len(r.Reach), r.Validate())
	}
}

func TestReachTellsNothingAboutGrants(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.MakeGrant("secret-id").Descendants("files", nil, "read").MaxUses(7).Expires(time.Hour).Metadata(`{"note":"secret"}`).Obj())
	text := fmt.Sprintf("%+v", w.Turn(t).Reach(t.Context()))
	for _, word := range []string{"secret", "alice", "7"} {
		if strings.Contains(text, word) {
			t.Errorf("%q is in %s", word, text)
		}
	}
	for _, e := range w.Audit.Events() {
		if e.Type != audit.AuthorityResolved {
			t.Errorf("asking for the reach recorded %s", e.Type)
		}
	}
}
