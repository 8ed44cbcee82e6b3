package kerneltest

import (
	"strconv"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// widening is one axis on which a derived grant exceeds its parent.
type widening struct {
	axis   string
	parent func(g *contract.Grant)
	child  func(g *contract.Grant)
	// atIssue is the issuing side's refusal; nil where the axis is not its to set.
	request func(r *kernel.DeriveRequest)
}

func minute(n int) *contract.Timestamp { return at(time.Duration(n) * time.Minute) }

func widenings() []widening {
	one, five, two := int64(1), int64(5), int64(2)
	bob := contract.Human("bob")
	return []widening{
		{axis: "path", child: func(g *contract.Grant) { g.Capabilities[0].Resource.Path = contract.Path{} }, request: func(r *kernel.DeriveRequest) { r.Capabilities[0].Resource.Path = contract.Path{} }},
		{axis: "action", child: func(g *contract.Grant) { g.Capabilities[0].Actions = []string{"read", "delete"} }, request: func(r *kernel.DeriveRequest) { r.Capabilities[0].Actions = []string{"read", "delete"} }},
		{axis: "any action", child: func(g *contract.Grant) { g.Capabilities[0].Actions = []string{"*"} }, request: func(r *kernel.DeriveRequest) { r.Capabilities[0].Actions = []string{"*"} }},
		{axis: "scope", parent: func(g *contract.Grant) { g.Capabilities[0].Scope = contract.ScopeExact }, request: func(r *kernel.DeriveRequest) { r.Capabilities[0].Scope = contract.ScopeDescendants }},
		{axis: "plane", child: func(g *contract.Grant) { g.Capabilities = append(g.Capabilities, repoCapability()) }, request: func(r *kernel.DeriveRequest) { r.Capabilities = append(r.Capabilities, repoCapability()) }},
		{axis: "owner", parent: func(g *contract.Grant) { g.Capabilities[0].Resource.Owner = &bob }, request: func(*kernel.DeriveRequest) {}},
		{axis: "purposes left out", child: func(g *contract.Grant) { g.Constraints.Purposes = nil }},
		{axis: "another purpose", child: func(g *contract.Grant) { g.Constraints.Purposes = []string{Purpose, "x"} }, request: func(r *kernel.DeriveRequest) { r.Purposes = []string{Purpose, "x"} }},
		{axis: "opens earlier", child: func(g *contract.Grant) { g.Constraints.NotBefore = minute(-100) }, request: func(r *kernel.DeriveRequest) { r.NotBefore = minute(-100) }},
		{axis: "opening left out", child: func(g *contract.Grant) { g.Constraints.NotBefore = nil }},
		{axis: "closes later", child: func(g *contract.Grant) { g.Constraints.ExpiresAt = minute(100) }, request: func(r *kernel.DeriveRequest) { r.ExpiresAt = minute(100) }},
		{axis: "closing left out", child: func(g *contract.Grant) { g.Constraints.ExpiresAt = nil }},
		{axis: "issued before", child: func(g *contract.Grant) { g.IssuedAt = *minute(-500) }, request: func(r *kernel.DeriveRequest) { r.IssuedAt = *minute(-500) }},
		{axis: "depth", child: func(g *contract.Grant) { g.Constraints.DelegationDepth = &five }, request: func(r *kernel.DeriveRequest) { r.DelegationDepth = &two }},
		{axis: "no depth above", parent: func(g *contract.Grant) { g.Constraints.DelegationDepth = nil }, request: func(*kernel.DeriveRequest) {}},
		{axis: "a bounded parent", parent: func(g *contract.Grant) { g.Constraints.MaxUses = &one }, request: func(*kernel.DeriveRequest) {}},
		{axis: "another's grant", parent: func(g *contract.Grant) { g.Subject = bob }},
		{axis: "another world", parent: func(g *contract.Grant) { g.NamespaceID = "team-other" }},
	}
}

func repoCapability() contract.Capability {
	return contract.Capability{Resource: contract.ResourceRef{Namespace: "repo", Path: contract.Path{"x"}}, Actions: []string{"read"}, Scope: contract.ScopeExact}
}

func delegationRows() []Row {
	return []Row{{
		ID: "widened-delegation", Violation: "derived grant exceeds its parent on each axis separately",
		Expected: "delegation_chain_invalid, or refused at issue",
		Run: func(t *Trial) {
			parent := func() contract.Grant {
				return MakeGrant("parent").To(Alice()).From(contract.Human("carol")).Issued(-2*time.Hour).Descendants("files", []string{"Shared"}, "read").
					Purposes(Purpose).NotBefore(-90 * time.Minute).Expires(90 * time.Minute).Depth(2).Obj()
			}
			request := func() kernel.DeriveRequest {
				return kernel.DeriveRequest{ID: "child", Subject: Actor(), IssuedAt: contract.At(Epoch.Add(-time.Hour)), Capabilities: []contract.Capability{
					{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Shared"}}, Actions: []string{"read"}, Scope: contract.ScopeDescendants},
				}}
			}
			enter := func(child, parent contract.Grant) Seat {
				w, _ := stage(child)
				w.Ancestors.Add(parent)
				return t.Enter(w)
			}
			for i, axis := range widenings() {
				above := parent()
				child, err := kernel.DeriveGrant(above, request())
				if err != nil {
					t.TB.Fatalf("derive: %v", err)
				}
				if axis.parent != nil {
					axis.parent(&above)
				}
				if axis.child != nil {
					axis.child(&child)
				}
				t.Attempt(axis.axis, enter(child, above).Call("c"+strconv.Itoa(i), "files.read", pathArgs("Shared", "a"), nil), denied, contract.CodeDelegationChainInvalid)
				if axis.request != nil {
					r := request()
					axis.request(&r)
					_, err = kernel.DeriveGrant(above, r)
					t.Holds(axis.axis+" at issue", err != nil, "a wider grant was issued")
				}
			}
			child, err := kernel.DeriveGrant(parent(), request())
			if err != nil {
				t.TB.Fatalf("derive: %v", err)
			}
			t.Control("within its parent", enter(child, parent()).Call("control", "files.read", pathArgs("Shared", "a"), nil))
		},
	}}
}
