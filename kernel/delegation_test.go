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
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// root is a grant to Alice that she may pass on, wide on every axis.
func root() *kerneltest.GrantBuilder {
	return kerneltest.MakeGrant("root").From(contract.Human("carol")).To(kerneltest.Alice()).Issued(-3*time.Hour).
		Descendants("files", []string{"Work"}, "read", "list").Purposes(kerneltest.Purpose, "other").
		NotBefore(-2 * time.Hour).Expires(2 * time.Hour).Depth(2)
}

// leaf is a grant derived from root that stays within it.
func leaf() *kerneltest.GrantBuilder {
	return kerneltest.MakeGrant("leaf").Descendants("files", []string{"Work", "a"}, "read").Purposes(kerneltest.Purpose).
		NotBefore(-time.Hour).Expires(time.Hour).Parent("root")
}

func TestEachFaultOfADelegationLink(t *testing.T) {
	t.Parallel()
	bob := contract.Human("bob")
	need := kerneltest.Need("files", "read", "Work", "a")
	tests := map[string]struct {
		root, leaf *kerneltest.GrantBuilder
		world      func(w *kerneltest.World)
		code       string
		cause      string
	}{
		"within":                 {root(), leaf(), nil, "allowed", ""},
		"any action above":       {kerneltest.MakeGrant("root").To(kerneltest.Alice()).Descendants("files", nil, "*").Depth(1), leaf(), nil, "allowed", ""},
		"owner named above":      {root().Owned(kerneltest.Alice()), leaf(), nil, "allowed", ""},
		"owner named below":      {root(), leaf().Owned(kerneltest.Alice()), nil, "allowed", ""},
		"another world":          {root().World("other"), leaf(), nil, "delegation_chain_invalid", "namespace_mismatch"},
		"not the parent's":       {root().To(bob), leaf(), nil, "delegation_chain_invalid", "issuer_not_parent_subject"},
		"parent revoked":         {root().Revoked(-time.Minute), leaf(), nil, "delegation_chain_invalid", "parent_inactive"},
		"parent expired":         {root().Expires(0), leaf().Expires(0), nil, "no_matching_grant", ""},
		"parent not yet":         {root().NotBefore(time.Minute), leaf(), nil, "delegation_chain_invalid", "parent_inactive"},
		"parent issued later":    {root().Issued(time.Minute), leaf(), nil, "delegation_chain_invalid", "parent_inactive"},
		"parent's purposes":      {root().Purposes("other"), leaf(), nil, "delegation_chain_invalid", "parent_inactive"},
		"no depth":               {kerneltest.MakeGrant("root").To(kerneltest.Alice()).Descendants("files", nil, "*"), leaf(), nil, "delegation_chain_invalid", "delegation_not_permitted"},
		"depth zero":             {root().Depth(0), leaf(), nil, "delegation_chain_invalid", "delegation_not_permitted"},
		"depth not less":         {root().Depth(2), leaf().Depth(2), nil, "delegation_chain_invalid", "delegation_depth_exceeded"},
		"depth less":             {root().Depth(2), leaf().Depth(1), nil, "allowed", ""},
		"bounded parent":         {root().MaxUses(5), leaf(), nil, "delegation_chain_invalid", "bounded_parent_not_delegable"},
		"bounded child":          {root(), leaf().MaxUses(5), nil, "allowed", ""},
		"wider path":             {root(), kerneltest.MakeGrant("leaf").Descendants("files", nil, "read").Purposes(kerneltest.Purpose).NotBefore(-time.Hour).Expires(time.Hour).Parent("root"), nil, "delegation_chain_invalid", "capability_widened"},
		"wider action":           {root(), leaf().Descendants("files", []string{"Work", "a"}, "delete"), nil, "delegation_chain_invalid", "capability_widened"},
		"any action below":       {root(), leaf().Descendants("files", []string{"Work", "a"}, "*"), nil, "delegation_chain_invalid", "capability_widened"},
		"another plane":          {root(), leaf().Descendants("repo", []string{"Work"}, "read"), nil, "delegation_chain_invalid", "capability_widened"},
		"another owner":          {root(), leaf().Descendants("files", []string{"Work"}, "read").Owned(bob), nil, "delegation_chain_invalid", "capability_widened"},
		"wider scope":            {root().Exact("repo", []string{"x"}, "read"), leaf().Descendants("repo", []string{"x"}, "read"), nil, "delegation_chain_invalid", "capability_widened"},
		"of two parents' fields": {root().Exact("repo", []string{"x"}, "list"), leaf().Exact("repo", []string{"x"}, "read"), nil, "delegation_chain_invalid", "capability_widened"},
		"purposes left out":      {root(), kerneltest.MakeGrant("leaf").Descendants("files", []string{"Work", "a"}, "read").NotBefore(-time.Hour).Expires(time.Hour).Parent("root"), nil, "delegation_chain_invalid", "constraints_widened"},
		"another purpose":        {root(), leaf().Purposes(kerneltest.Purpose, "third"), nil, "delegation_chain_invalid", "constraints_widened"},
		"opens earlier":          {root(), leaf().NotBefore(-150 * time.Minute), nil, "delegation_chain_invalid", "constraints_widened"},
		"opening left out":       {root(), kerneltest.MakeGrant("leaf").Descendants("files", []string{"Work", "a"}, "read").Purposes(kerneltest.Purpose).Expires(time.Hour).Parent("root"), nil, "delegation_chain_invalid", "constraints_widened"},
		"closes later":           {root(), leaf().Expires(3 * time.Hour), nil, "delegation_chain_invalid", "constraints_widened"},
		"closing left out":       {root(), kerneltest.MakeGrant("leaf").Descendants("files", []string{"Work", "a"}, "read").Purposes(kerneltest.Purpose).NotBefore(-time.Hour).Parent("root"), nil, "delegation_chain_invalid", "constraints_widened"},
		"issued before":          {root().Issued(-30 * time.Minute), leaf(), nil, "delegation_chain_invalid", "constraints_widened"},
		"parent not found":       {root(), leaf().Parent("absent"), nil, "delegation_chain_unverified", "parent_not_found"},
		"resolver fails":         {root(), leaf(), func(w *kerneltest.World) { w.Ancestors.Err = errors.New("down") }, "delegation_chain_unverified", "resolver_failed"},
		"resolver missing":       {root(), leaf(), func(w *kerneltest.World) { w.Options.Delegation = nil }, "delegation_chain_unverified", "resolver_unavailable"},
		"resolver gives another": {root(), leaf(), func(w *kerneltest.World) { w.Options.Delegation = fixedAncestor{root().Parent("x").Obj(), "y"} }, "delegation_chain_unverified", "resolver_failed"},
		"resolver gives nonsense": {root(), leaf(), func(w *kerneltest.World) {
			g := root().Obj()
			g.Capabilities = nil
			w.Options.Delegation = fixedAncestor{g, g.ID}
		}, "delegation_chain_unverified", "resolver_failed"},
		"resolver panics": {root(), leaf(), func(w *kerneltest.World) { w.Options.Delegation = fixedAncestor{} }, "delegation_chain_unverified", "resolver_failed"},
		"cycle":           {root().Parent("leaf"), leaf(), nil, "delegation_chain_invalid", "chain_cycle"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := kerneltest.New(tt.leaf.Obj())
			w.Ancestors.Add(tt.root.Obj())
			if tt.world != nil {
				tt.world(w)
			}
			d := w.Turn(t).Consume(t.Context(), need)
			e := lastEvent(t, w, audit.AuthorizationChecked)
			if d.ReasonCode != tt.code || e.Cause != tt.cause {
				t.Errorf("decision %s, cause %q; want %s, %q", d.ReasonCode, e.Cause, tt.code, tt.cause)
			}
		})
	}
}

// fixedAncestor answers with one grant under another id, or panics.
type fixedAncestor struct {
	g  contract.Grant
	id string
}

func (f fixedAncestor) Resolve(context.Context, string, string) (contract.Grant, error) {
	if f.id == "" {
		panic("resolver")
	}
	g := f.g
	g.ID = f.id
	return g, nil
}

func TestParentsExpireWhileTheTurnRuns(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(leaf().Expires(time.Hour).Obj())
	w.Ancestors.Add(root().Expires(2 * time.Hour).Obj())
	turn := w.Turn(t)
	need := kerneltest.Need("files", "read", "Work", "a")
	if d := turn.Authorize(t.Context(), need); !d.Allowed {
		t.Fatal(d.ReasonCode)
	}
	w.Ancestors.Add(root().Expires(30 * time.Minute).Obj()) // shortened at the store: judged at every use
	if d := turn.Authorize(t.Context(), need); d.ReasonCode != "delegation_chain_invalid" {
		t.Errorf("a child that outlives its parent: %s", d.ReasonCode)
	}
}

// chain makes a leaf with n ancestors; each may delegate.
func chain(n int) (contract.Grant, []contract.Grant) {
	build := func(i int) contract.Grant {
		g := kerneltest.MakeGrant(fmt.Sprintf("link-%02d", i)).Descendants("files", []string{"Work"}, "read").
			From(contract.Human(fmt.Sprintf("h%d", i))).To(contract.Human(fmt.Sprintf("h%d", i-1))).Depth(int64(i))
		if i < n {
			g.Parent(fmt.Sprintf("link-%02d", i+1))
		}
		return g.Obj()
	}
	var ancestors []contract.Grant
	for i := 1; i <= n; i++ {
		ancestors = append(ancestors, build(i))
	}
	first := build(0)
	first.Subject, first.Issuer = kerneltest.Actor(), kerneltest.Alice()
	ancestors[0].Subject = kerneltest.Alice()
	return first, ancestors
}

func TestChainLength(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "allowed", 8: "allowed", 16: "allowed", 17: "delegation_chain_invalid", 40: "delegation_chain_invalid"} {
		first, ancestors := chain(n)
		w := kerneltest.New(first)
		w.Ancestors.Add(ancestors...)
		d := w.Turn(t).Authorize(t.Context(), kerneltest.Need("files", "read", "Work"))
		if d.ReasonCode != want {
			t.Errorf("%d ancestors: %s, want %s", n, d.ReasonCode, want)
		}
		if e := lastEvent(t, w, audit.AuthorizationChecked); (want != "allowed") != (e.Cause == "chain_too_long") {
			t.Errorf("%d ancestors: cause %q", n, e.Cause)
		}
	}
	first, ancestors := chain(4)
	ancestors[2].RevokedAt = new(contract.At(kerneltest.Epoch))
	w := kerneltest.New(first)
	w.Ancestors.Add(ancestors...)
	if d := w.Turn(t).Authorize(t.Context(), kerneltest.Need("files", "read", "Work")); d.ReasonCode != "delegation_chain_invalid" {
		t.Errorf("an ancestor far up was revoked: %s", d.ReasonCode)
	}
}

func TestDeriveGrantInherits(t *testing.T) {
	t.Parallel()
	parent := root().Obj()
	got, err := kernel.DeriveGrant(parent, kernel.DeriveRequest{
		ID: "leaf", Subject: kerneltest.Actor(), IssuedAt: contract.At(kerneltest.Epoch), Metadata: contract.Object(`{"k":1}`),
		Capabilities: []contract.Capability{{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "a"}}, Actions: []string{"read"}, Scope: contract.ScopeExact}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := kerneltest.MakeGrant("leaf").Issued(0).Exact("files", []string{"Work", "a"}, "read").Purposes(kerneltest.Purpose, "other").
		NotBefore(-2 * time.Hour).Expires(2 * time.Hour).Depth(1).Parent("root").Metadata(`{"k":1}`).Obj()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	got.Constraints.Purposes[0] = "changed"
	if parent.Constraints.Purposes[0] == "changed" {
		t.Error("the child shares memory with its parent")
	}
	w := kerneltest.New(want)
	w.Ancestors.Add(parent)
	if d := w.Turn(t).Authorize(t.Context(), kerneltest.Need("files", "read", "Work", "a")); !d.Allowed {
		t.Errorf("what was derived does not verify: %s", d.ReasonCode)
	}
}

func TestDeriveGrantRefuses(t *testing.T) {
	t.Parallel()
	capability := func(path contract.Path, scope contract.Scope, actions ...string) contract.Capability {
		return contract.Capability{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Actions: actions, Scope: scope}
	}
	owned := capability(contract.Path{"Work"}, contract.ScopeExact, "read")
	owned.Resource.Owner = new(kerneltest.Alice())
	good := kernel.DeriveRequest{
		ID: "leaf", Subject: kerneltest.Actor(), IssuedAt: contract.At(kerneltest.Epoch),
		Capabilities: []contract.Capability{capability(contract.Path{"Work"}, contract.ScopeExact, "read")},
	}
	at := func(d time.Duration) *contract.Timestamp { return new(contract.At(kerneltest.Epoch.Add(d))) }
	unbounded := kerneltest.MakeGrant("root").To(kerneltest.Alice()).Descendants("files", []string{"Work"}, "read").Depth(1)
	tests := map[string]struct {
		parent *kerneltest.GrantBuilder
		change func(r *kernel.DeriveRequest)
		want   error
	}{
		"no capability":   {root(), func(r *kernel.DeriveRequest) { r.Capabilities = nil; r.ID = "root" }, kernel.ErrEmptyCapabilities},
		"the parent's id": {root().MaxUses(1), func(r *kernel.DeriveRequest) { r.ID = "root" }, kernel.ErrIDCollidesWithParent},
		"bounded parent":  {kerneltest.MakeGrant("root").Descendants("files", nil, "*").MaxUses(1), nil, kernel.ErrBoundedParent},
		"not delegable":   {kerneltest.MakeGrant("root").Descendants("repo", nil, "*"), nil, kernel.ErrParentNotDelegable},
		"depth zero":      {root().Depth(0), func(r *kernel.DeriveRequest) { r.Capabilities[0].Actions = []string{"x"} }, kernel.ErrDepthExhausted},
		"deeper":          {root(), func(r *kernel.DeriveRequest) { r.DelegationDepth = new(int64(2)) }, kernel.ErrDepthExhausted},
		"wider action": {root(), func(r *kernel.DeriveRequest) {
			r.Capabilities[0].Actions = []string{"read", "write"}
			r.Purposes = []string{"x"}
		}, kernel.ErrCapabilityNotWithin},
		"wider path":         {root(), func(r *kernel.DeriveRequest) { r.Capabilities[0].Resource.Path = contract.Path{} }, kernel.ErrCapabilityNotWithin},
		"sibling path":       {root(), func(r *kernel.DeriveRequest) { r.Capabilities[0].Resource.Path = contract.Path{"Workshop"} }, kernel.ErrCapabilityNotWithin},
		"wider scope":        {kerneltest.MakeGrant("root").To(kerneltest.Alice()).Exact("files", []string{"Work"}, "read").Depth(1), func(r *kernel.DeriveRequest) { r.Capabilities[0].Scope = contract.ScopeDescendants }, kernel.ErrCapabilityNotWithin},
		"owned from unowned": {root(), func(r *kernel.DeriveRequest) { r.Capabilities = []contract.Capability{owned} }, kernel.ErrCapabilityNotWithin},
		"unowned from owned": {root().Owned(kerneltest.Alice()), nil, kernel.ErrCapabilityNotWithin},
		"another purpose":    {root(), func(r *kernel.DeriveRequest) { r.Purposes = []string{"third"}; r.ExpiresAt = at(9 * time.Hour) }, kernel.ErrPurposeNotWithin},
		"closes later":       {root(), func(r *kernel.DeriveRequest) { r.ExpiresAt = at(3 * time.Hour) }, kernel.ErrWindowNotWithin},
		"opens earlier":      {root(), func(r *kernel.DeriveRequest) { r.NotBefore = at(-9 * time.Hour); r.IssuedAt = *at(-9 * time.Hour) }, kernel.ErrWindowNotWithin},
		"issued before":      {root(), func(r *kernel.DeriveRequest) { r.IssuedAt = *at(-4 * time.Hour) }, kernel.ErrIssuedBeforeParent},
		"narrower on all axes": {root(), func(r *kernel.DeriveRequest) {
			r.Purposes = []string{"other"}
			r.NotBefore = at(0)
			r.ExpiresAt = at(time.Hour)
			r.DelegationDepth = new(int64(0))
			r.MaxUses = new(int64(1))
		}, nil},
		"unbounded parent": {unbounded, func(r *kernel.DeriveRequest) { r.Purposes = []string{"any"}; r.ExpiresAt = at(time.Hour) }, nil},
	}
	for name, tt := range tests {
		r := good
		r.Capabilities = []contract.Capability{capability(contract.Path{"Work"}, contract.ScopeExact, "read")}
		if tt.change != nil {
			tt.change(&r)
		}
		g, err := kernel.DeriveGrant(tt.parent.Obj(), r)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if (err == nil) != (g.ID == "leaf") {
			t.Errorf("%s: grant %+v with error %v", name, g, err)
		}
	}
	bad := good
	bad.ID = ""
	var fault *contract.FieldError
	if _, err := kernel.DeriveGrant(root().Obj(), bad); !errors.As(err, &fault) || fault.Path != "id" {
		t.Errorf("a grant without an id: %v", err)
	}
}
