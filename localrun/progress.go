package localrun

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

// progress tells what happens, one line each, and passes records on. Names in it come
// from the agent, so nothing is printed as it is.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
	clock func() time.Time
	next  audit.Sink
	// started is set once the turn was admitted, so that its runtime runs.
	started atomic.Bool
}

func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%6.1fs  %s\n", p.clock().Sub(p.began).Seconds(), plain.Text(fmt.Sprintf(format, args...)))
}

// event tells of the turn's own events.
func (p *progress) event(e contract.ExecutionEvent) {
	var data struct {
		Tool   string
		Status string
		Code   string
		Tools  []string
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	switch e.Type {
	case contract.EventTurnStarted:
		p.started.Store(true)
		p.line("turn started with %d tools: %s", len(data.Tools), strings.Join(data.Tools, ", "))
	case contract.EventToolCompleted:
		p.line("%s %s", data.Tool, strings.TrimSpace(data.Status+" "+data.Code))
	case contract.EventTurnCompleted, contract.EventTurnDenied, contract.EventTurnFailed, contract.EventTurnCancelled, contract.EventTurnEscalated:
		p.line("%s %s", strings.Replace(string(e.Type), ".", " ", 1), data.Code)
	case contract.EventToolRequested, contract.EventRuntime:
	}
}

// Record implements [audit.Sink]: a refusal is told with what would have been needed.
func (p *progress) Record(ctx context.Context, e audit.Event) error {
	if e.Type == audit.AuthorizationChecked && e.Outcome == audit.Denied && e.Resource != nil {
		p.line("refused: %s %s (%s)", e.Action, snapshot.FormatResource(e.Resource.Namespace, e.Resource.Path), e.Reason)
		for _, g := range e.RejectedGrants {
			p.line("  grant %s: %s", g.GrantID, g.Reason)
		}
	}
	return p.next.Record(ctx, e)
}
