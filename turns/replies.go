package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Errors of an awaited reply.
var (
	errExpected  = errors.New("a reply to a message of this id is awaited already")
	errNoTurn    = errors.New("the message became no turn")
	errNoSuccess = errors.New("the recipient's turn did not succeed")
)

// Replies is the [kernel.ReplyRouter] of a cluster: the reply to a message is what
// the Turn that it became ends with. It is safe for concurrent use.
type Replies struct {
	Desk *Desk

	mu      sync.Mutex
	pending map[string]*pendingReply
}

var _ kernel.ReplyRouter = (*Replies)(nil)

// Expect implements [kernel.ReplyRouter].
func (r *Replies) Expect(_ context.Context, m contract.MessageEnvelope) (kernel.PendingReply, error) {
	p := &pendingReply{replies: r, message: m}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[string]*pendingReply{}
	}
	if r.pending[m.ID] != nil {
		return nil, errExpected
	}
	r.pending[m.ID] = p
	return p, nil
}

// awaited is the pending reply to that very message. The caller holds the lock.
func (r *Replies) awaited(m *contract.MessageEnvelope) *pendingReply {
	p := r.pending[m.ID]
	if p == nil || p.message.Sender != m.Sender || p.message.Receiver != m.Receiver || p.message.TraceID != m.TraceID {
		return nil
	}
	return p
}

// expectTurn begins to watch the Turn that the message is about to become, if a reply
// is awaited. Stop undoes it.
func (r *Replies) expectTurn(m *contract.MessageEnvelope, turn types.NamespacedName) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.awaited(m)
	if p == nil || p.stop != nil {
		return func() {}
	}
	p.ended, p.stop = r.Desk.Endings.Watch(turn)
	return p.stop
}

// made says which Turn the message has become.
func (r *Replies) made(m *contract.MessageEnvelope, turn *v1alpha1.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.awaited(m); p != nil {
		p.turn = turn
	}
}

// pendingReply is one awaited reply.
type pendingReply struct {
	replies *Replies
	message contract.MessageEnvelope

	// The rest is guarded by the lock of replies.
	turn  *v1alpha1.Turn
	ended <-chan *v1alpha1.Turn
	stop  func()
	over  bool
}

// Await implements [kernel.PendingReply].
func (p *pendingReply) Await(ctx context.Context) (contract.MessageEnvelope, error) {
	p.replies.mu.Lock()
	turn, ended := p.turn, p.ended
	p.replies.mu.Unlock()
	if turn == nil {
		return contract.MessageEnvelope{}, errNoTurn
	}
	desk := p.replies.Desk
	last, err := desk.await(ctx, ended, turn.UID)
	if err != nil {
		return contract.MessageEnvelope{}, err
	}
	p.finish()
	result, err := desk.result(ctx, last)
	if err != nil {
		return contract.MessageEnvelope{}, err
	}
	if result.Status != contract.StatusSucceeded {
		return contract.MessageEnvelope{}, fmt.Errorf("%w: it is %s", errNoSuccess, result.Status)
	}
	return p.reply(last, &result), nil
}

func (p *pendingReply) finish() {
	p.replies.mu.Lock()
	defer p.replies.mu.Unlock()
	p.over = true
}

// reply is the envelope that answers: its id is the turn's, so that the same turn
// never answers twice.
func (p *pendingReply) reply(turn *v1alpha1.Turn, result *contract.ExecutionResult) contract.MessageEnvelope {
	m := &p.message
	return contract.MessageEnvelope{
		Version: contract.Version, ID: turn.EffectiveExecutionID(), Sender: m.Receiver, Receiver: m.Sender, Purpose: m.Purpose,
		Payload: result.Output, TraceID: m.TraceID, CreatedAt: result.CompletedAt, ReplyTo: m.ID,
	}
}

// Close implements [kernel.PendingReply]. Nobody waits any more for a Turn that has
// not ended, so it is cancelled; unless it is this manager that ends.
func (p *pendingReply) Close() {
	r := p.replies
	r.mu.Lock()
	if r.pending[p.message.ID] == p {
		delete(r.pending, p.message.ID)
	}
	turn, stop, over := p.turn, p.stop, p.over
	p.over = true
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
	if turn != nil && !over && !r.Desk.stopping() {
		r.Desk.abandon(context.Background(), turn)
	}
}
