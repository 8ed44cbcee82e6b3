package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// Inspector runs the kernel over a snapshot. It answers one question at a time and
// is safe for concurrent use.
type Inspector struct {
	snapshot *Snapshot
	uses     *Uses
	kernel   *kernel.Kernel

	mu    sync.Mutex
	ids   int64
	now   time.Time
	alone string      // when set, the only grant that is loaded
	last  audit.Event // the last decision's record
	held  map[heldKey]*kernel.Turn
}

// NewInspector returns an inspector of a snapshot.
func NewInspector(s *Snapshot) (*Inspector, error) {
	i := &Inspector{snapshot: s, uses: NewUses(s), held: map[heldKey]*kernel.Turn{}}
	grants := authority.Grants{Reader: s}
	k, err := kernel.New(kernel.Options{
		Grants: loader{i, grants}, Delegation: grants, Usage: i.uses, Audit: recorder{i},
		Clock: func() time.Time { return i.now }, NewID: i.newID,
		Providers: []kernel.ToolProvider{described{s}}, Transport: nobody{}, Replies: nobody{},
	})
	if err != nil {
		return nil, fmt.Errorf("make the kernel: %w", err)
	}
	i.kernel = k
	return i, nil
}

// Snapshot is what the inspector looks at.
func (i *Inspector) Snapshot() *Snapshot { return i.snapshot }

// Uses are how many uses of bounded Grants count as spent.
func (i *Inspector) Uses() *Uses { return i.uses }

// newID is called with the lock held, as everything the kernel calls.
func (i *Inspector) newID() string {
	i.ids++
	return "question-" + strconv.FormatInt(i.ids, 10)
}

// Context is the context in which a Principal would act: its authority, its owner,
// and the tool namespaces that are on for it. An empty purpose means its first.
func (i *Inspector) Context(namespace, principal, purpose string, at time.Time) (contract.AccessContext, error) {
	id, err := translate.NewDirectory(i.snapshot.Principals(namespace)).Identity(principal)
	if err != nil {
		return contract.AccessContext{}, err
	}
	return id.Context(v1alpha1.Purpose(purpose), i.snapshot.ToolNamespaces(namespace), "inspection", at)
}

// Answer is a decision with what the host learns beside it.
type Answer struct {
	contract.AuthorizationDecision
	// Cause is the fault of a delegation chain that decided.
	Cause string
	// Rejected are the grants that did not allow, when the answer is no.
	Rejected []audit.RejectedGrant
}

// Authorize asks whether the exact requirement is allowed.
func (i *Inspector) Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) Answer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.authorize(ctx, ac, need)
}

func (i *Inspector) authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) Answer {
	i.now, i.last = ac.Now.Time, audit.Event{}
	decision := i.decide(ctx, ac, need)
	return Answer{AuthorizationDecision: decision, Cause: i.last.Cause, Rejected: i.last.RejectedGrants}
}

// heldKey is a context, and the Grant that is looked at alone.
type heldKey struct {
	namespace, purpose, alone string
	actor, authority, owner   contract.Address
	now                       time.Time
}

// maxHeld bounds how many contexts are held.
const maxHeld = 1024

// decide asks in the context's turn. The snapshot does not change, so the authority
// that was loaded for a context is good for its next question.
func (i *Inspector) decide(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) contract.AuthorizationDecision {
	key := heldKey{ac.NamespaceID, ac.Purpose, i.alone, ac.Actor, ac.Authority, ac.Owner, ac.Now.Time}
	turn := i.held[key]
	if turn == nil {
		var err error
		if turn, err = i.kernel.OpenTurn(ctx, ac); err != nil {
			return i.kernel.Authorize(ctx, ac, need) // which says why
		}
		if len(i.held) >= maxHeld {
			clear(i.held)
		}
		i.held[key] = turn
	}
	return turn.Authorize(ctx, need)
}

// Reach is what the context may touch.
func (i *Inspector) Reach(ctx context.Context, ac contract.AccessContext) contract.ReachResult {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = ac.Now.Time
	return i.kernel.Reach(ctx, ac)
}

// Tools is the catalogue that a turn of the context would be served, sorted by name.
func (i *Inspector) Tools(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = ac.Now.Time
	catalogue, err := i.kernel.Tools(ctx, ac)
	if err != nil {
		return nil, err
	}
	return catalogue.Definitions(), nil
}

// loader leaves out all grants but one, when one is looked at alone.
type loader struct {
	i      *Inspector
	source kernel.GrantSource
}

// Load implements [kernel.GrantSource].
func (l loader) Load(ctx context.Context, ac contract.AccessContext) ([]contract.Grant, error) {
	all, err := l.source.Load(ctx, ac)
	if err != nil || l.i.alone == "" {
		return all, err
	}
	for n := range all {
		if all[n].ID == l.i.alone {
			return all[n : n+1], nil
		}
	}
	return nil, nil
}

// recorder keeps the record of a decision.
type recorder struct{ i *Inspector }

// Record implements [audit.Sink].
func (r recorder) Record(_ context.Context, e audit.Event) error {
	if e.Type == audit.AuthorizationChecked || e.Type == audit.AuthorityResolved {
		r.i.last = e
	}
	return nil
}

var errNobody = errors.New("nothing is sent here")

// nobody stands in for the transport of messages, so that the tool is described.
type nobody struct{}

// Send implements [kernel.MessageTransport].
func (nobody) Send(context.Context, contract.AccessContext, contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return contract.MessageDeliveryResult{}, errNobody
}

// Expect implements [kernel.ReplyRouter].
func (nobody) Expect(context.Context, contract.MessageEnvelope) (kernel.PendingReply, error) {
	return nil, errNobody
}
