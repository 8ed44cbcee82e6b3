package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// codeOf is the code of a refusal.
func codeOf(err error) string {
	if r, ok := errors.AsType[*kernel.Refusal](err); ok {
		return r.Code
	}
	return ""
}

func TestAuthorityIsAllOrNothing(t *testing.T) {
	t.Parallel()
	many := make([]contract.Grant, kernel.MaxGrants+1)
	for i := range many {
		many[i] = readGrant(fmt.Sprintf("g%d", i)).Obj()
	}
	broken := readGrant("broken").Obj()
	broken.Capabilities = nil
	odd := readGrant("odd").Metadata(`{"a":1,"a":2}`).Obj()
	tests := map[string]struct {
		grants       []contract.Grant
		err          error
		cause, grant string
	}{
		"source failed":     {nil, kerneltest.ErrPort, "grant_source_failed", ""},
		"malformed":         {[]contract.Grant{readGrant("a").Obj(), broken}, nil, "invalid_grant_material", "broken"},
		"malformed inside":  {[]contract.Grant{odd}, nil, "invalid_grant_material", "odd"},
		"twice the same id": {[]contract.Grant{readGrant("a").Obj(), readGrant("a").Obj()}, nil, "invalid_grant_material", "a"},
		"another world":     {[]contract.Grant{readGrant("a").Obj(), readGrant("b").World("other").Obj()}, nil, "grant_scope_mismatch", "b"},
		"another subject":   {[]contract.Grant{readGrant("b").To(contract.Agent("bob")).Obj()}, nil, "grant_scope_mismatch", "b"},
		"another issuer":    {[]contract.Grant{readGrant("b").From(contract.Human("bob")).Obj()}, nil, "grant_scope_mismatch", "b"},
		"too many":          {many, nil, "grant_limit_exceeded", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(tt.grants...)
			w.Grants.Err = tt.err
			k := w.Kernel(t)
			if _, err := k.OpenTurn(t.Context(), w.Context()); codeOf(err) != "authority_unavailable" {
				t.Fatalf("open: %v, want authority_unavailable", err)
			}
			e := lastEvent(t, w, audit.AuthorityResolved)
			if e.Outcome != audit.Failed || e.Cause != tt.cause || e.GrantID != tt.grant || !e.FailClosed || e.Reason != "authority_unavailable" {
				t.Errorf("recorded %s, cause %s, grant %q, fail closed %t", e.Outcome, e.Cause, e.GrantID, e.FailClosed)
			}
			d := k.Authorize(t.Context(), w.Context(), kerneltest.Need("files", "read", "Work"))
			if d.Allowed || d.ReasonCode != "authority_unavailable" || d.RequiredAuthority != nil {
				t.Errorf("authorize without authority: %+v", d)
			}
			if e := lastEvent(t, w, audit.AuthorizationChecked); !e.FailClosed || e.Outcome != audit.Denied {
				t.Errorf("recorded %+v", e)
			}
		})
	}
}

type panickingSource struct{}

func (panickingSource) Load(context.Context, contract.AccessContext) ([]contract.Grant, error) {
	panic("source")
}

func TestSourceThatPanicsIsUnavailable(t *testing.T) {
	t.Parallel()
	w := kerneltest.New()
	w.Options.Grants = panickingSource{}
	if _, err := w.Kernel(t).OpenTurn(t.Context(), w.Context()); codeOf(err) != "authority_unavailable" {
		t.Errorf("open: %v", err)
	}
}

func TestMostGrantsAreHeld(t *testing.T) {
	t.Parallel()
	most := make([]contract.Grant, kernel.MaxGrants)
	for i := range most {
		most[i] = kerneltest.MakeGrant(fmt.Sprintf("g%04d", i)).Exact("files", []string{fmt.Sprint(i)}, "read").Obj()
	}
	turn := kerneltest.New(most...).Turn(t)
	if d := turn.Authorize(t.Context(), kerneltest.Need("files", "read", "4095")); d.MatchedGrantID != "g4095" {
		t.Errorf("decision = %+v", d)
	}
	if n := len(turn.Grants()); n != kernel.MaxGrants {
		t.Errorf("%d grants are held", n)
	}
}

func TestAuthorityIsLoadedOncePerTurn(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("a").Obj())
	turn := w.Turn(t)
	w.Grants.Set() // revoked at the source
	for range 3 {
		if d := turn.Authorize(t.Context(), kerneltest.Need("files", "read", "Work")); !d.Allowed {
			t.Errorf("this turn keeps its authority: %s", d.ReasonCode)
		}
	}
	if w.Grants.Loads() != 1 {
		t.Errorf("authority was loaded %d times", w.Grants.Loads())
	}
	if d := w.Turn(t).Authorize(t.Context(), kerneltest.Need("files", "read", "Work")); d.Allowed {
		t.Error("the next turn has it too")
	}
}

func TestWhatTheSourceKeepsItCannotChange(t *testing.T) {
	t.Parallel()
	g := readGrant("a").Purposes(kerneltest.Purpose).Expires(time.Hour).MaxUses(3).Metadata(`{"k":1}`).Obj()
	w := kerneltest.New(g)
	turn := w.Turn(t)
	hash := turn.AuthorityHash()
	g.Capabilities[0].Resource.Path[0] = "Secret"
	g.Capabilities[0].Actions[0] = "write"
	g.Constraints.Purposes[0] = "other"
	*g.Constraints.MaxUses = 1000
	g.Constraints.ExpiresAt.Time = kerneltest.Epoch.Add(-time.Hour)
	g.Metadata[2] = 'X'
	if d := turn.Authorize(t.Context(), kerneltest.Need("files", "write", "Secret")); d.Allowed {
		t.Error("a source widened a held grant")
	}
	if d := turn.Authorize(t.Context(), kerneltest.Need("files", "read", "Work")); !d.Allowed {
		t.Errorf("a source took a held grant away: %s", d.ReasonCode)
	}
	if turn.AuthorityHash() != hash {
		t.Error("the authority hash moved")
	}
}

func TestAuthorityHash(t *testing.T) {
	t.Parallel()
	a, b := readGrant("a").Obj(), readGrant("b").Purposes("x", "y").NotBefore(0).Expires(time.Hour).MaxUses(2).Depth(0).Parent("p").Revoked(time.Hour).
		Owned(kerneltest.Alice()).Metadata(`{"z":1.50,"a":"é"}`).Obj()
	one := kerneltest.New(a, b).Turn(t).AuthorityHash()
	if other := kerneltest.New(b, a).Turn(t).AuthorityHash(); other != one {
		t.Error("the order of the source matters")
	}
	w := kerneltest.New(a, b)
	w.Clock.Advance(time.Minute)
	if later := w.Turn(t).AuthorityHash(); later != one {
		t.Error("the request matters")
	}
	want, err := canonical.Hash([]contract.Grant{a, b})
	if err != nil || one != want {
		t.Errorf("hash = %s, want %s, %v", one, want, err)
	}
	if changed := kerneltest.New(a, readGrant("b").Obj()).Turn(t).AuthorityHash(); changed == one {
		t.Error("another grant has the same hash")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	w := kerneltest.New()
	k := w.Kernel(t)
	for name, change := range map[string]func(ac *contract.AccessContext){
		"no instant": func(ac *contract.AccessContext) { ac.Now = contract.Timestamp{} },
		"no purpose": func(ac *contract.AccessContext) { ac.Purpose = "" },
		"no trace":   func(ac *contract.AccessContext) { ac.TraceID = "" },
		"no actor":   func(ac *contract.AccessContext) { ac.Actor = contract.Address{} },
	} {
		ac := w.Context()
		change(&ac)
		if _, err := k.OpenTurn(t.Context(), ac); codeOf(err) != "invalid_context" {
			t.Errorf("%s: %v, want invalid_context", name, err)
		}
		if d := k.Authorize(t.Context(), ac, kerneltest.Need("files", "read")); d.ReasonCode != "invalid_context" {
			t.Errorf("%s: decision %+v", name, d)
		}
	}
	if len(w.Audit.Events()) != 0 || w.Grants.Loads() != 0 {
		t.Error("an invalid context reached the source or the record")
	}
	w.Audit.Fail = func(audit.Event) error { return kerneltest.ErrPort }
	if _, err := k.OpenTurn(t.Context(), w.Context()); codeOf(err) != "audit_unavailable" {
		t.Errorf("open without a record: %v", err)
	}
	w.Grants.Err = kerneltest.ErrPort
	if _, err := k.OpenTurn(t.Context(), w.Context()); codeOf(err) != "audit_unavailable" {
		t.Errorf("failed open without a record: %v", err)
	}
}

func TestResumeNeverGainsAGrant(t *testing.T) {
	t.Parallel()
	kept, changed, gone := readGrant("kept").Obj(), kerneltest.MakeGrant("changed").Descendants("files", []string{"B"}, "read").Obj(), kerneltest.MakeGrant("gone").Descendants("files", []string{"C"}, "read").Obj()
	w := kerneltest.New(kept, changed, gone)
	held := w.Turn(t).Grants()
	if len(held) != 3 || held[0].ID != "changed" || len(held[0].Hash) != 64 {
		t.Fatalf("held %+v", held)
	}
	w.Grants.Set(kept, kerneltest.MakeGrant("changed").Descendants("files", nil, "read").Obj(), kerneltest.MakeGrant("new").Descendants("files", []string{"D"}, "read").Obj())
	k := w.Kernel(t)
	turn, err := k.ResumeTurn(t.Context(), w.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"Work": true, "B": false, "C": false, "D": false} {
		if d := turn.Authorize(t.Context(), kerneltest.Need("files", "read", path)); d.Allowed != want {
			t.Errorf("%s: %s", path, d.ReasonCode)
		}
	}
	if diff := cmp.Diff(kerneltest.New(kept).Turn(t).AuthorityHash(), turn.AuthorityHash()); diff != "" {
		t.Errorf("hash of what is left: %s", diff)
	}
	if ref, err := kernel.ReferenceTo(changed); err != nil || ref != held[0] {
		t.Errorf("reference to a grant: %+v, %v; want %+v", ref, err, held[0])
	}
	if _, err := kernel.ReferenceTo(readGrant("odd").Metadata(`{"a":1,"a":2}`).Obj()); err == nil {
		t.Error("a grant that cannot be hashed has a reference")
	}
	none, err := k.ResumeTurn(t.Context(), w.Context(), nil)
	if err != nil || len(none.Grants()) != 0 {
		t.Errorf("resuming with nothing held: %v, %v", none.Grants(), err)
	}
}

func TestTurnHandsOutCopiesOfItsContext(t *testing.T) {
	t.Parallel()
	w := kerneltest.New()
	ac := w.Context()
	turn, err := w.Kernel(t).OpenTurn(t.Context(), ac)
	if err != nil {
		t.Fatal(err)
	}
	ac.EnabledToolNamespaces[0] = "changed"
	turn.Context().EnabledToolNamespaces[0] = "changed"
	if diff := cmp.Diff(w.Context(), turn.Context()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestNewRefusesWhatItCannotRunWith(t *testing.T) {
	t.Parallel()
	good := kerneltest.New().Options
	for name, change := range map[string]func(o *kernel.Options){
		"no grants": func(o *kernel.Options) { o.Grants = nil }, "no audit": func(o *kernel.Options) { o.Audit = nil },
		"no clock": func(o *kernel.Options) { o.Clock = nil }, "no ids": func(o *kernel.Options) { o.NewID = nil },
		"two of a name": func(o *kernel.Options) {
			o.Tools = append(kerneltest.FilesTools(&kerneltest.Plane{}), kerneltest.FilesTools(&kerneltest.Plane{})...)
		},
	} {
		o := good
		change(&o)
		if _, err := kernel.New(o); err == nil {
			t.Errorf("%s: a kernel was built", name)
		}
	}
	k, err := kernel.New(good)
	if err != nil {
		t.Fatal(err)
	}
	if first := k.NewID(); k.Now() != kerneltest.Epoch || first == k.NewID() {
		t.Error("the kernel has another clock or repeats ids")
	}
}
