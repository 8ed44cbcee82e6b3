// Package kerneltest is a fixed small world for tests of the kernel and of every
// door to it: in-memory ports, a clock that only moves when told, ids that count,
// and builders for grants and tools.
package kerneltest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// The parties and constants of the world.
const (
	NamespaceID = "team-atlas"
	Purpose     = "atlas-status"
	TraceID     = "trace-1"
)

// Epoch is the instant the world's clock starts at and turns are admitted at.
var Epoch = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// Actor is the agent that acts, Alice whose authority it exercises and whose
// resources it touches.
func Actor() contract.Address { return contract.Agent("alice-assistant") }

// Alice issues the world's grants and owns its resources.
func Alice() contract.Address { return contract.Human("alice") }

// World is a set of ports a kernel can be built from.
type World struct {
	Clock     *Clock
	Grants    *Grants
	Uses      *Uses
	Ancestors *Ancestors
	Audit     *audit.Memory
	// Options is what Kernel builds from; change it before calling that.
	Options kernel.Options
	// Prepare, when set, changes what Request returns.
	Prepare func(r *contract.ExecutionRequest)
}

// New returns a world with every port but ceiling, verifier, tools and messages.
func New(grants ...contract.Grant) *World {
	w := &World{
		Clock: NewClock(Epoch), Grants: &Grants{List: grants}, Uses: &Uses{},
		Ancestors: &Ancestors{}, Audit: &audit.Memory{},
	}
	w.Options = kernel.Options{
		Grants: w.Grants, Audit: w.Audit, Clock: w.Clock.Now, NewID: Counter("id"),
		Usage: w.Uses, Delegation: w.Ancestors,
	}
	return w
}

// Kernel builds the kernel; a failure ends the test.
func (w *World) Kernel(tb testing.TB) *kernel.Kernel {
	tb.Helper()
	k, err := kernel.New(w.Options)
	if err != nil {
		tb.Fatalf("build kernel: %v", err)
	}
	return k
}

// Turn opens a turn in the world's context; a refusal ends the test.
func (w *World) Turn(tb testing.TB) *kernel.Turn {
	tb.Helper()
	turn, err := w.Kernel(tb).OpenTurn(tb.Context(), w.Context())
	if err != nil {
		tb.Fatalf("open turn: %v", err)
	}
	return turn
}

// Context is the world's context at the clock's instant.
func (w *World) Context() contract.AccessContext {
	return contract.AccessContext{
		NamespaceID: NamespaceID, Actor: Actor(), Authority: Alice(), Owner: Alice(),
		Purpose: Purpose, TraceID: TraceID,
		EnabledToolNamespaces: []string{"files", "repo", "brokered", kernel.ToolNamespaceSharedOS, kernel.ToolNamespaceMessages},
		Now:                   contract.At(w.Clock.Now()),
	}
}

// Request is a turn of the world's agent.
func (w *World) Request() contract.ExecutionRequest {
	ac := w.Context()
	req := contract.ExecutionRequest{
		Version: contract.Version, ExecutionID: "execution-1", Agent: Actor(), Context: &ac,
		Message: contract.MessageEnvelope{
			Version: contract.Version, ID: "message-1", Sender: Alice(), Receiver: Actor(), Purpose: Purpose,
			Payload: contract.Value(`{"text":"When does Atlas ship?"}`), TraceID: TraceID, CreatedAt: contract.At(Epoch),
		},
	}
	if w.Prepare != nil {
		w.Prepare(&req)
	}
	return req
}

// Call is a tool call in the world's trace.
func Call(id, tool, arguments string) contract.ToolCall {
	return contract.ToolCall{
		ID: id, Tool: tool, Arguments: contract.Object(arguments), TraceID: TraceID, RequestedAt: contract.At(Epoch),
	}
}

// Need is a requirement on one resource.
func Need(namespace, action string, path ...string) contract.CapabilityRequirement {
	return contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: namespace, Path: append(contract.Path{}, path...)}, Action: action,
	}
}

// Counter mints prefix-1, prefix-2 and so on.
func Counter(prefix string) func() string {
	var n atomic.Int64
	return func() string { return prefix + "-" + strconv.FormatInt(n.Add(1), 10) }
}

// Grants is a source that answers with List whatever the context.
type Grants struct {
	mu    sync.Mutex
	List  []contract.Grant
	Err   error
	loads int
}

// Load implements [kernel.GrantSource].
func (g *Grants) Load(context.Context, contract.AccessContext) ([]contract.Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loads++
	return slices.Clone(g.List), g.Err
}

// Loads is how often authority was loaded.
func (g *Grants) Loads() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.loads
}

// Fail makes every later answer an error, or none if err is nil.
func (g *Grants) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Err = err
}

// Set replaces the grants.
func (g *Grants) Set(list ...contract.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.List = list
}

// Uses counts uses in memory.
type Uses struct {
	mu    sync.Mutex
	spent map[string]int64
	Err   error
}

// Consume implements [kernel.UsageStore].
func (u *Uses) Consume(_ context.Context, use kernel.Use) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Err != nil {
		return false, u.Err
	}
	if u.spent[use.GrantID] >= use.MaxUses {
		return false, nil
	}
	if u.spent == nil {
		u.spent = make(map[string]int64)
	}
	u.spent[use.GrantID]++
	return true, nil
}

// Remaining implements [kernel.UsageStore].
func (u *Uses) Remaining(_ context.Context, use kernel.Use) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return use.MaxUses - u.spent[use.GrantID], u.Err
}

// Fail makes every later answer an error, or none if err is nil.
func (u *Uses) Fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Err = err
}

// Spent is how many uses of the grant were consumed.
func (u *Uses) Spent(grantID string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.spent[grantID]
}

// ErrPort is an error for ports that are to fail.
var ErrPort = errors.New("port failed with a secret detail")

// Ancestors resolves grants by id.
type Ancestors struct {
	mu   sync.Mutex
	byID map[string]contract.Grant
	Err  error
}

// Add makes grants resolvable.
func (a *Ancestors) Add(grants ...contract.Grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil {
		a.byID = make(map[string]contract.Grant)
	}
	for i := range grants {
		a.byID[grants[i].ID] = grants[i]
	}
}

// Resolve implements [kernel.DelegationResolver].
func (a *Ancestors) Resolve(_ context.Context, _, grantID string) (contract.Grant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Err != nil {
		return contract.Grant{}, a.Err
	}
	g, ok := a.byID[grantID]
	if !ok {
		return contract.Grant{}, kernel.ErrGrantNotFound
	}
	return g, nil
}
