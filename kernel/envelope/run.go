package envelope

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Runtime is a replaceable agent loop inside this process. It ends when its
// context does; an error or a panic ends the turn as runtime_failed.
type Runtime interface {
	Run(ctx context.Context, req Request, host Host) (Outcome, error)
}

// Host is all that a runtime is handed beside its request.
type Host interface {
	// Invoke runs one tool call. A nil step declares none.
	Invoke(ctx context.Context, tool string, arguments contract.Object, step *int64) contract.ToolResult
	// Observe records an observation of the runtime's own.
	Observe(data contract.Object) error
}

const reasonRequestCancelled = "request_cancelled"

// Run is one whole turn of an in-process runtime. It returns when the turn has
// ended, also if the runtime has not; what the runtime holds is then shut.
func (e *Envelope) Run(ctx context.Context, req contract.ExecutionRequest, r Runtime) contract.ExecutionResult {
	x := e.Open(ctx, req)
	if result, ended := x.Ended(); ended {
		return result
	}
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { x.Cancel(ctx, reasonRequestCancelled) })
	defer stop()
	x.Start(ctx)
	go func() {
		outcome, err := contained(runCtx, x, r)
		if err != nil && ctx.Err() != nil {
			x.Cancel(ctx, reasonRequestCancelled) // it ended because it was told to
			return
		}
		if err != nil {
			x.end(runCtx, *failedBy(contract.CodeRuntimeFailed))
			return
		}
		x.Finish(runCtx, outcome)
	}()
	<-x.done
	return x.result
}

var errRuntimePanicked = errors.New("runtime did not return")

// contained runs the runtime and turns a panic, or an exit of its goroutine, into
// an error.
func contained(ctx context.Context, x *Execution, r Runtime) (o Outcome, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		recover() //nolint:errcheck // its text may hold anything; the turn says runtime_failed
		o, err = Outcome{}, errRuntimePanicked
		x.end(ctx, *failedBy(contract.CodeRuntimeFailed))
	}()
	o, err = r.Run(ctx, x.Request(), host{x})
	returned = true
	return o, err
}

// host is the one method of the turn that a runtime gets.
type host struct{ x *Execution }

// Invoke implements [Host].
func (h host) Invoke(ctx context.Context, tool string, arguments contract.Object, step *int64) contract.ToolResult {
	return h.x.Invoke(ctx, contract.ToolCall{
		ID: h.x.env.k.NewID(), Tool: tool, Arguments: arguments, TraceID: h.x.ac.TraceID, RequestedAt: h.x.now(),
	}, step)
}

// Observe implements [Host].
func (h host) Observe(data contract.Object) error { return h.x.Observe(data) }
