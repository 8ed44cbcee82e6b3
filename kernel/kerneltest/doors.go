package kerneltest

import (
	"context"
	"testing"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// KernelDoor hands the adversary a kernel turn.
type KernelDoor struct{}

// Name implements [Door].
func (KernelDoor) Name() string { return DoorKernel }

// Enter implements [Door].
func (KernelDoor) Enter(tb testing.TB, w *World) Seat {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	turn, err := w.Kernel(tb).OpenTurn(ctx, w.Context())
	if err != nil {
		return Seat{Entry: refusalAnswer(err)}
	}
	return Seat{
		Tools: func() []string {
			c, err := turn.Catalog(ctx)
			if err != nil {
				return nil
			}
			return c.Names()
		},
		Call: func(id, tool, arguments string, _ *int64) Answer {
			r := turn.Invoke(ctx, Call(id, tool, arguments))
			return AnswerOf(string(r.Status), r.Error)
		},
		Authorize: func(need contract.CapabilityRequirement) Answer {
			d := turn.Authorize(ctx, need)
			if d.Allowed {
				return Answer{Status: "allowed"}
			}
			return Answer{"denied", d.ReasonCode}
		},
		Operate: func(op contract.ResourceOperation) Answer {
			r := turn.InvokeResource(ctx, op)
			return AnswerOf(string(r.Status), r.Error)
		},
		Send: func(m contract.MessageEnvelope) Answer {
			r := turn.Send(ctx, m)
			return AnswerOf(r.Status, r.Error)
		},
		Handed: []any{kernel.ToolInvocation{}, contract.ResourceOperation{}, contract.MessageEnvelope{}, contract.AccessContext{}},
	}
}

func refusalAnswer(err error) Answer {
	r, ok := err.(*kernel.Refusal) //nolint:errorlint // returned unwrapped
	if !ok {
		return Answer{Status: "failed", Code: "unknown"}
	}
	return Answer{"denied", r.Code}
}

// EnvelopeDoor hands the adversary a turn inside the envelope.
type EnvelopeDoor struct{}

// Name implements [Door].
func (EnvelopeDoor) Name() string { return DoorEnvelope }

// Enter implements [Door].
func (EnvelopeDoor) Enter(tb testing.TB, w *World) Seat {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	e := envelope.New(w.Kernel(tb), envelope.Options{AfterFunc: w.Clock.AfterFunc})
	x := e.Open(ctx, w.Request())
	if r, ended := x.Ended(); ended {
		return Seat{Entry: AnswerOf(string(r.Status), r.Error)}
	}
	x.Start(ctx)
	return Seat{
		Tools: func() []string {
			tools := x.Catalog().Tools
			names := make([]string, 0, len(tools))
			for _, tool := range tools {
				names = append(names, tool.Name)
			}
			return names
		},
		Call: func(id, tool, arguments string, step *int64) Answer {
			r := x.Invoke(ctx, Call(id, tool, arguments), step)
			return AnswerOf(string(r.Status), r.Error)
		},
		End: func(o envelope.Outcome) Answer {
			r := x.Finish(ctx, o)
			return AnswerOf(string(r.Status), r.Error)
		},
		Crash: func() Answer {
			r := e.Run(ctx, w.Request(), panics{})
			return AnswerOf(string(r.Status), r.Error)
		},
		Events: func() []contract.ExecutionEvent { return x.Checkpoint().Events },
		Handed: []any{envelope.Request{}, new(envelope.Host), envelope.Outcome{}, kernel.ToolInvocation{}, contract.ToolResult{}},
	}
}

// panics is a runtime that does nothing else.
type panics struct{}

// Run implements [envelope.Runtime].
func (panics) Run(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
	panic(Secret)
}
