package kernel_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// worlds is how many random worlds the two implementations are compared in; each
// is asked several questions. Raise it for a long run: 250000 are two million questions.
var worlds = flag.Int("worlds", 50000, "random worlds for the comparison with the naive decision")

const questionsPerWorld = 8

func TestDecisionAgreesWithTheNaiveOne(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	kernels := newKernels(t)
	seen := make(map[string]int)
	for i := range *worlds {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		w := randomWorld(r)
		if diff := kernels.compare(t.Context(), w, r, seen); diff != "" {
			t.Fatalf("world %d of seed %d: %s", i, seed, diff)
		}
	}
	for _, code := range []string{
		"allowed", "invalid_request", "usage_store_unavailable", "host_policy_unavailable", "delegation_chain_unverified",
		"delegation_chain_invalid", "host_policy_denied", "grant_exhausted", "no_matching_grant",
	} {
		if seen[code] < *worlds/2000 {
			t.Errorf("code %s came up %d times, too rarely to mean anything: %v", code, seen[code], seen)
		}
	}
}

// FuzzDecision lets the fuzzer choose the world.
func FuzzDecision(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*7919)
	}
	kernels := newKernels(f)
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		w := randomWorld(r)
		if diff := kernels.compare(t.Context(), w, r, map[string]int{}); diff != "" {
			t.Fatal(diff)
		}
	})
}

// kernels holds one kernel with and without each optional port; all of them look at
// the world of the moment.
type kernels struct {
	world *naive
	by    map[[2]bool]*kernel.Kernel
}

func newKernels(tb testing.TB) *kernels {
	tb.Helper()
	ks := &kernels{by: make(map[[2]bool]*kernel.Kernel)}
	for _, ports := range [][2]bool{{}, {true}, {false, true}, {true, true}} {
		k, err := kernel.New(ks.options(ports[0], ports[1]))
		if err != nil {
			tb.Fatal(err)
		}
		ks.by[ports] = k
	}
	return ks
}

// compare asks both implementations the same questions.
func (ks *kernels) compare(ctx context.Context, n *naive, r *rand.Rand, seen map[string]int) string {
	ks.world = n
	turn, cause, id := ks.by[[2]bool{n.hasStore, n.hasResolver}].LoadTurn(ctx, n.ac)
	if cause != "" {
		return fmt.Sprintf("authority is unavailable: %s %s", cause, id)
	}
	for range questionsPerWorld {
		need := randomNeed(r)
		now := kerneltest.Epoch.Add(pick(r, -time.Hour, 0, 30*time.Minute, time.Hour, 90*time.Minute))
		mode := pick(r, kernel.ModeConsume, kernel.ModeCheck, kernel.ModeDiscover)
		want := n.decide(need, now, mode)
		got := turn.Decide(ctx, need, now, mode)
		seen[want.code]++
		if got.Code != want.code || got.Grant != want.grant || got.Missing != want.missing ||
			got.Consumed != want.consumed || got.Cause != want.cause || !slices.Equal(got.Rejected, want.rejected) {
			return fmt.Sprintf("need %+v mode %d now %v\nwant %+v\ngot  %+v\n%s\ngrants %+v\nancestors %+v",
				need, mode, now, want, got, cmp.Diff(want.rejected, got.Rejected), n.grants, n.ancestors)
		}
	}
	return ""
}

// options are the ports of the real kernel over the naive world's facts.
func (ks *kernels) options(store, resolver bool) kernel.Options {
	o := kernel.Options{
		Grants: worldGrants{ks}, Audit: discard{},
		Clock: func() time.Time { return kerneltest.Epoch }, NewID: func() string { return "id" },
		Ceiling: kernel.HostCeilingFunc(func(q kernel.CeilingQuery) (bool, error) {
			if ks.world.ceilingFails[q.GrantID] {
				return true, errors.New("ceiling failed")
			}
			return !ks.world.ceilingDenies[q.GrantID], nil
		}),
		Verifier: verifyFunc(func(g contract.Grant) bool { return !ks.world.unverified[g.ID] }),
	}
	if store {
		o.Usage = frozenUses{ks}
	}
	if resolver {
		o.Delegation = frozenAncestors{ks}
	}
	return o
}

type worldGrants struct{ *kernels }

func (g worldGrants) Load(context.Context, contract.AccessContext) ([]contract.Grant, error) {
	return g.world.grants, nil
}

type verifyFunc func(g contract.Grant) bool

func (f verifyFunc) Verify(g contract.Grant) bool { return f(g) }

// frozenUses answers from the world's counts and never changes them, so that one
// world can be asked again and again.
type frozenUses struct{ *kernels }

func (u frozenUses) Consume(_ context.Context, use kernel.Use) (bool, error) {
	if u.world.storeFails {
		return true, errors.New("store failed")
	}
	return u.world.spent[use.GrantID] < use.MaxUses, nil
}

func (u frozenUses) Remaining(_ context.Context, use kernel.Use) (int64, error) {
	if u.world.storeFails {
		return 1, errors.New("store failed")
	}
	return use.MaxUses - u.world.spent[use.GrantID], nil
}

type frozenAncestors struct{ *kernels }

func (a frozenAncestors) Resolve(_ context.Context, _, id string) (contract.Grant, error) {
	if a.world.resolverFails {
		return contract.Grant{}, errors.New("resolver failed")
	}
	g, ok := a.world.ancestors[id]
	if !ok {
		return contract.Grant{}, kernel.ErrGrantNotFound
	}
	return g, nil
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// rarely is true one time in n.
func rarely(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// randomWorld makes a world in which most conditions hold, so that each of them is
// often the only one that fails.
func randomWorld(r *rand.Rand) *naive {
	n := &naive{
		ac:       kerneltest.New().Context(),
		hasStore: !rarely(r, 12), storeFails: rarely(r, 12), hasResolver: !rarely(r, 12), resolverFails: rarely(r, 16),
		spent: map[string]int64{}, ancestors: map[string]contract.Grant{},
		ceilingDenies: map[string]bool{}, ceilingFails: map[string]bool{}, unverified: map[string]bool{},
	}
	for i := range r.IntN(8) {
		id := fmt.Sprintf("g%d", i)
		g := randomGrant(r, id)
		if rarely(r, 2) {
			g = n.derived(r, g)
		}
		g.Subject, g.Issuer, g.NamespaceID = kerneltest.Actor(), kerneltest.Alice(), kerneltest.NamespaceID
		n.grants = append(n.grants, g)
		n.spent[id] = r.Int64N(3)
		n.ceilingDenies[id], n.ceilingFails[id], n.unverified[id] = rarely(r, 8), rarely(r, 24), rarely(r, 16)
	}
	r.Shuffle(len(n.grants), func(i, j int) { n.grants[i], n.grants[j] = n.grants[j], n.grants[i] })
	return n
}

func randomPath(r *rand.Rand) contract.Path {
	path := contract.Path{}
	for range r.IntN(4) {
		path = append(path, pick(r, "a", "b", "cell-3", "cell-30"))
	}
	return path
}

func randomOwner(r *rand.Rand) *contract.Address {
	if !rarely(r, 3) {
		return nil
	}
	owner := pick(r, kerneltest.Alice(), kerneltest.Alice(), contract.Human("bob"))
	return &owner
}

func randomNeed(r *rand.Rand) contract.CapabilityRequirement {
	need := kerneltest.Need(pick(r, "files", "files", "repo"), pick(r, "read", "read", "write", "*"), randomPath(r)...)
	need.Resource.Owner = randomOwner(r)
	if rarely(r, 40) {
		need.Resource.Path = append(need.Resource.Path, pick(r, "..", "", "a/b", " a", "\x00"))
	}
	return need
}

func randomInstant(r *rand.Rand, of ...time.Duration) *contract.Timestamp {
	at := contract.At(kerneltest.Epoch.Add(pick(r, of...)))
	return &at
}

func randomGrant(r *rand.Rand, id string) contract.Grant {
	g := kerneltest.MakeGrant(id).Obj()
	for range 1 + r.IntN(2) {
		c := contract.Capability{
			Resource: contract.ResourceRef{Namespace: pick(r, "files", "files", "repo"), Path: randomPath(r), Owner: randomOwner(r)},
			Actions:  pick(r, []string{"read"}, []string{"write"}, []string{"read", "write"}, []string{"*"}, []string{"write", "*"}),
			Scope:    pick(r, contract.ScopeExact, contract.ScopeDescendants, contract.ScopeDescendants),
		}
		g.Capabilities = append(g.Capabilities, c)
	}
	g.IssuedAt = *randomInstant(r, -2*time.Hour, -2*time.Hour, -time.Hour, 0, time.Hour)
	if rarely(r, 4) {
		g.Constraints.NotBefore = randomInstant(r, -2*time.Hour, -time.Hour, 0, 30*time.Minute)
	}
	if rarely(r, 3) {
		g.Constraints.ExpiresAt = randomInstant(r, 0, time.Hour, time.Hour, 2*time.Hour, 90*time.Minute)
		if before := g.Constraints.NotBefore; before != nil && before.After(g.Constraints.ExpiresAt.Time) {
			g.Constraints.NotBefore = nil
		}
	}
	if rarely(r, 8) {
		g.RevokedAt = randomInstant(r, -time.Hour, 0, time.Hour)
	}
	if rarely(r, 3) {
		g.Constraints.Purposes = pick(r, []string{kerneltest.Purpose}, []string{"other", kerneltest.Purpose}, []string{"other"})
	}
	if rarely(r, 4) {
		uses := 1 + r.Int64N(3)
		g.Constraints.MaxUses = &uses
	}
	if rarely(r, 3) {
		depth := r.Int64N(3)
		g.Constraints.DelegationDepth = &depth
	}
	return g
}

// derived gives the grant ancestors that would justify it, and then spoils at most
// a few things along the chain.
func (n *naive) derived(r *rand.Rand, leaf contract.Grant) contract.Grant {
	length := 1 + r.IntN(3)
	if rarely(r, 20) {
		length = 15 + r.IntN(4)
	}
	child := leaf
	child.Issuer, child.NamespaceID = kerneltest.Alice(), kerneltest.NamespaceID
	var depth int64
	if d := child.Constraints.DelegationDepth; d != nil {
		depth = *d
	}
	out := leaf
	for i := range length {
		parent := widened(r, child, fmt.Sprintf("%s-p%d", leaf.ID, i))
		depth++
		parentDepth := depth
		parent.Constraints.DelegationDepth = &parentDepth
		parent.Subject = child.Issuer
		if rarely(r, 6) {
			spoil(r, &parent)
		}
		if i == 0 {
			out.ParentGrantID = parent.ID
		}
		if i > 0 {
			previous := n.ancestors[child.ID]
			previous.ParentGrantID = parent.ID
			n.ancestors[child.ID] = previous
		}
		n.ancestors[parent.ID] = parent
		child = parent
	}
	n.spoilChain(r, leaf.ID, child.ID)
	return out
}

func (n *naive) spoilChain(r *rand.Rand, leaf, root string) {
	g := n.ancestors[root]
	switch r.IntN(14) {
	case 0:
		delete(n.ancestors, root)
		return
	case 1:
		g.ParentGrantID = leaf
	case 2:
		g.ParentGrantID = pick(r, leaf+"-p0", leaf+"-p1")
		if g.ParentGrantID == g.ID {
			g.ParentGrantID = ""
		}
	case 3:
		g.ID = strings.ToUpper(g.ID)
	case 4:
		g.Capabilities = nil // no grant at all
	}
	n.ancestors[root] = g
}

// widened makes a parent that contains the child, wider on a few axes.
func widened(r *rand.Rand, child contract.Grant, id string) contract.Grant {
	parent := child
	parent.ID, parent.ParentGrantID, parent.RevokedAt = id, "", nil
	parent.Issuer = pick(r, contract.Human("root"), contract.Human("carol"))
	parent.Constraints.MaxUses = nil
	parent.Capabilities = slices.Clone(child.Capabilities)
	for i := range parent.Capabilities {
		c := &parent.Capabilities[i]
		if rarely(r, 3) {
			c.Scope = contract.ScopeDescendants
			c.Resource.Path = c.Resource.Path[:r.IntN(len(c.Resource.Path)+1)]
		}
		if rarely(r, 3) {
			c.Actions = pick(r, append(slices.Clone(c.Actions), "extra"), []string{"*"})
		}
		if rarely(r, 4) && (c.Resource.Owner == nil || *c.Resource.Owner == kerneltest.Alice()) {
			c.Resource.Owner = pick(r, nil, new(kerneltest.Alice()))
		}
	}
	if rarely(r, 4) {
		parent.Constraints.Purposes = nil
	}
	if rarely(r, 4) {
		parent.Constraints.NotBefore = nil
	}
	if rarely(r, 4) {
		parent.Constraints.ExpiresAt = nil
	}
	if rarely(r, 3) {
		parent.IssuedAt = contract.At(parent.IssuedAt.Add(-time.Hour))
	}
	return parent
}

// spoil breaks one thing about an ancestor.
func spoil(r *rand.Rand, g *contract.Grant) {
	c := &g.Capabilities[r.IntN(len(g.Capabilities))]
	switch r.IntN(16) {
	case 0:
		g.NamespaceID = "team-other"
	case 1:
		g.Subject = contract.Human("mallory")
	case 2:
		g.RevokedAt = randomInstant(r, -time.Hour, 0, time.Hour)
	case 3:
		g.Constraints.Purposes = []string{"other"}
	case 4:
		g.Constraints.DelegationDepth = nil
	case 5:
		depth := *g.Constraints.DelegationDepth - 1
		g.Constraints.DelegationDepth = &depth
	case 6:
		uses := int64(5)
		g.Constraints.MaxUses = &uses
	case 7:
		c.Actions = pick(r, []string{"read"}, []string{"write"})
	case 8:
		c.Scope = contract.ScopeExact
	case 9:
		c.Resource.Path = randomPath(r)
	case 10:
		c.Resource.Namespace = "repo"
	case 11:
		c.Resource.Owner = pick(r, nil, new(contract.Human("bob")), new(kerneltest.Alice()))
	case 12:
		g.Constraints.ExpiresAt = randomInstant(r, time.Hour, 90*time.Minute, 2*time.Hour)
		g.Constraints.NotBefore = nil
	case 13:
		g.Constraints.NotBefore = randomInstant(r, -2*time.Hour, -time.Hour, 0, 30*time.Minute)
		g.Constraints.ExpiresAt = nil
	case 14:
		g.IssuedAt = *randomInstant(r, -time.Hour, -30*time.Minute, 0, time.Hour)
	case 15:
		g.Constraints.Purposes = []string{kerneltest.Purpose, "third"}
	}
}
