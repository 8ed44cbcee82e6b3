package envelope

import (
	"context"
	"errors"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Open validates the request, loads authority, admits the turn and resolves its
// reach and catalogue. A turn that was refused comes back already ended. The
// request must carry its context, whose Now is the instant of admission. Of the
// allowed tools those in the request are offered, or all of them if its Tools are nil.
func (e *Envelope) Open(ctx context.Context, req contract.ExecutionRequest) *Execution {
	x := e.newExecution(req)
	if end := x.open(ctx); end != nil {
		x.end(ctx, *end)
	}
	return x
}

func (e *Envelope) newExecution(req contract.ExecutionRequest) *Execution {
	x := &Execution{
		env: e, req: req, limits: limitsOf(req.Options), done: make(chan struct{}),
		steps: make(map[int64]struct{}), running: make(map[*runningCall]struct{}),
	}
	if req.Context != nil {
		x.ac = *req.Context
	}
	x.openedAt = x.now()
	return x
}

// open runs steps 1 to 4 and returns the ending of a turn that goes no further.
func (x *Execution) open(ctx context.Context) *ending {
	if code := x.check(); code != "" {
		return deniedWith(code)
	}
	turn, err := x.env.k.OpenTurn(ctx, x.ac)
	if err != nil {
		return refusedBy(err)
	}
	x.turn = turn
	decision := turn.Consume(ctx, contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: contract.NamespaceExecution, Path: contract.AddressPath(x.req.Agent)},
		Action:   contract.ActionInvoke,
	})
	switch {
	case decision.ReasonCode == contract.CodeAuditUnavailable:
		return failedBy(contract.CodeAuditUnavailable)
	case !decision.Allowed:
		end := deniedWith(decision.ReasonCode)
		end.required = decision.RequiredAuthority
		return end
	}
	return x.resolve(ctx)
}

// check is step 1.
func (x *Execution) check() string {
	m := &x.req.Message
	switch {
	case x.req.Context == nil || x.ac.Validate() != nil:
		return contract.CodeInvalidContext
	case x.req.Validate() != nil:
		return contract.CodeInvalidRequest
	case x.ac.Actor != x.req.Agent:
		return contract.CodeActorMismatch
	case m.Receiver != x.req.Agent:
		return contract.CodeReceiverMismatch
	case m.Purpose != x.ac.Purpose || m.TraceID != x.ac.TraceID:
		return contract.CodeMessageContextMismatch
	default:
		return ""
	}
}

// resolve is step 4: reach, and the tools that are allowed and requested.
func (x *Execution) resolve(ctx context.Context) *ending {
	catalog, err := x.turn.Catalog(ctx)
	if err != nil {
		return failedBy(codeOf(err))
	}
	if x.req.Tools != nil {
		names := make([]string, 0, len(x.req.Tools))
		for i := range x.req.Tools {
			names = append(names, x.req.Tools[i].Name)
		}
		catalog = catalog.Only(names)
	}
	x.catalog = catalog
	x.reach = x.turn.PlacesOf(ctx, catalog)
	return nil
}

// codeOf is the code of a kernel refusal.
func codeOf(err error) string {
	if r, ok := errors.AsType[*kernel.Refusal](err); ok {
		return r.Code
	}
	return contract.CodeAuthorityUnavailable
}

// refusedBy turns a kernel refusal into an ending: what could not be recorded
// failed, everything else was denied.
func refusedBy(err error) *ending {
	code := codeOf(err)
	if code == contract.CodeAuditUnavailable {
		return failedBy(code)
	}
	return deniedWith(code)
}
