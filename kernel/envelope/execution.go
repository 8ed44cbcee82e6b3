package envelope

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Execution is one turn. It is safe for concurrent use.
type Execution struct {
	env     *Envelope
	req     contract.ExecutionRequest
	ac      contract.AccessContext
	limits  limits
	turn    *kernel.Turn      // nil if none could be opened
	catalog *kernel.Catalogue // nil until resolved
	reach   *kernel.Places    // nil until resolved
	done    chan struct{}     // closed once result is set

	mu         sync.Mutex
	openedAt   contract.Timestamp
	startedAt  *contract.Timestamp
	draining   bool
	closed     bool // ending or ended: nothing new is taken
	stops      []func() bool
	events     []contract.ExecutionEvent
	sequence   int64
	scratch    []byte // where the data of an event is put together
	usage      Usage
	denied     []DeniedCall // the first MaxDeniedCalls
	steps      map[int64]struct{}
	observed   int
	unsafe     bool
	running    map[*runningCall]struct{}
	refused    int    // calls in the record that never reached the kernel
	latch      *latch // an escalation on its way to being kept
	escalation *contract.Escalation
	result     contract.ExecutionResult
}

// runningCall is a call whose handler has not come back.
type runningCall struct {
	cancel     context.CancelFunc
	repeatable bool
}

// Done is closed when the turn has ended.
func (x *Execution) Done() <-chan struct{} { return x.done }

// Ended returns the result once the turn has ended.
func (x *Execution) Ended() (contract.ExecutionResult, bool) {
	select {
	case <-x.done:
		return x.result, true
	default:
		return contract.ExecutionResult{}, false
	}
}

// Admission returns what opening established; it is zero for a refused turn.
func (x *Execution) Admission() Admission {
	if x.turn == nil || x.catalog == nil {
		return Admission{}
	}
	return Admission{
		At: x.ac.Now, AuthorityHash: x.turn.AuthorityHash(), Grants: x.turn.Grants(),
		CatalogHash: x.catalog.Hash(), ToolCount: x.catalog.Len(), Reach: x.reach.Result(),
	}
}

// Catalog returns the effective catalogue. Each call returns a fresh copy.
func (x *Execution) Catalog() contract.Catalogue {
	c := contract.Catalogue{Version: contract.Version, ExecutionID: x.req.ExecutionID, Tools: []contract.PublishedTool{}}
	if x.catalog != nil {
		c.CatalogHash, c.Tools = x.catalog.Hash(), x.catalog.Published()
	}
	return c
}

// Repeatable reports whether a call to the tool may be repeated when its answer
// was lost: it only reads, or says it is idempotent.
func (x *Execution) Repeatable(tool string) bool {
	return x.catalog != nil && x.catalog.Repeatable(tool)
}

// Request returns the sanitised request. Each call returns a fresh copy.
func (x *Execution) Request() Request {
	m := x.req.Message
	m.Payload = bytes.Clone(m.Payload)
	if p := m.Provenance; p != nil {
		m.Provenance = &contract.Provenance{
			Source: p.Source, ParentIDs: slices.Clone(p.ParentIDs), Metadata: bytes.Clone(p.Metadata),
		}
	}
	return Request{
		ExecutionID: x.req.ExecutionID, NamespaceID: x.ac.NamespaceID, Agent: x.req.Agent, Owner: x.ac.Owner,
		Purpose: x.ac.Purpose, TraceID: x.ac.TraceID, Message: m, State: bytes.Clone(x.req.State),
		Catalogue: x.Catalog(), Reach: x.reach.Result(),
		MaxSteps: x.limits.steps, MaxCalls: x.limits.calls, Timeout: x.limits.timeout,
	}
}

// Usage returns the counters so far.
func (x *Execution) Usage() Usage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.usage
}

// Start records turn.started; the deadline counts from here. A second Start, or
// one after the ending, does nothing.
func (x *Execution) Start(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.startedAt != nil {
		return
	}
	now := x.now()
	x.startedAt = &now
	names := x.catalog.Names()
	x.emit(contract.EventTurnStarted, map[string]any{"tools": names, "catalogHash": x.catalog.Hash()})
	x.arm(context.WithoutCancel(ctx), x.limits.timeout)
}

// arm sets the timers for what is left until the deadline. The caller holds the lock.
func (x *Execution) arm(ctx context.Context, left time.Duration) {
	if grace := x.env.opts.DrainGrace; grace > 0 {
		if grace >= left {
			x.draining = true
		} else {
			x.stops = append(x.stops, x.env.opts.AfterFunc(left-grace, x.drain))
		}
	}
	x.stops = append(x.stops, x.env.opts.AfterFunc(max(left, 0), func() { x.end(ctx, cancelledBy(endedByDeadline, "deadline")) }))
}

func (x *Execution) drain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.draining = true
}

func (x *Execution) now() contract.Timestamp { return contract.At(x.env.k.Now()) }

// emit appends an event. The caller holds the lock, which keeps the order.
func (x *Execution) emit(kind contract.EventType, data map[string]any) {
	raw, err := json.Marshal(data)
	if err != nil {
		raw = []byte("{}") // unreachable: data holds strings, numbers and checked JSON
	}
	x.emitRaw(kind, raw)
}

// emitRaw is emit of data that is JSON already.
func (x *Execution) emitRaw(kind contract.EventType, raw []byte) {
	e := contract.ExecutionEvent{
		Version: contract.Version, EventID: x.env.k.NewID(), ExecutionID: x.req.ExecutionID,
		TraceID: x.ac.TraceID, Sequence: x.sequence, Type: kind, Data: raw, OccurredAt: x.now(),
	}
	x.sequence++
	x.events = append(x.events, e)
	if x.env.opts.OnEvent != nil {
		x.env.opts.OnEvent(e)
	}
}

// Limits of what a harness can put into a turn's record.
const (
	// MaxRefusals is the most calls of one turn that are in its events although the
	// envelope refused them; later ones are answered and audited all the same.
	MaxRefusals = 10000
	// MaxObservation is the largest observation, bytes.
	MaxObservation = 64 << 10
	// MaxObservations is the most observations of one turn.
	MaxObservations = 10000
)

// Errors of [Execution.Observe].
var (
	ErrNotRunning      = errors.New("the turn is not running")
	ErrBadObservation  = errors.New("an observation must be a JSON object within its limit")
	ErrTooManyObserved = errors.New("the turn has taken all its observations")
)

// Observe records a runtime's observation, a JSON object, as a runtime.event. A
// runtime can say what it likes in it; it cannot forge a lifecycle event.
func (x *Execution) Observe(data contract.Object) error {
	if len(data) > MaxObservation {
		return ErrBadObservation
	}
	if node, err := strictjson.Parse(data); err != nil || node.Kind != strictjson.Object {
		return ErrBadObservation
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed || x.startedAt == nil:
		return ErrNotRunning
	case x.observed >= MaxObservations:
		return ErrTooManyObserved
	}
	x.observed++
	x.emit(contract.EventRuntime, map[string]any{"observation": data})
	return nil
}
