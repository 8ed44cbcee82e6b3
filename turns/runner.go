package turns

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// Speakers says whether the user who calls has the verb use on a Principal.
type Speakers interface {
	MayUse(ctx context.Context, namespace, principal string) (bool, error)
}

// Runner is the [httpapi.TurnRunner] of a cluster: it creates a Turn and waits for
// its end.
type Runner struct {
	Desk *Desk
	// Kernel says who may run whose agent, and records refusals.
	Kernel *kernel.Kernel
	// Speakers says in whose name a caller may send, beside its own.
	Speakers Speakers
}

var _ httpapi.TurnRunner = (*Runner)(nil)

// RunTurn implements [httpapi.TurnRunner]. A caller may run the agent that it is, and
// with a grant of sharedos.execution somebody else's. An execution id is one Turn's
// for as long as the Turn is kept: who asks for it again is denied with
// invalid_request, whatever has become of the first.
func (r *Runner) RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	order, refused, err := r.order(ctx, &ac, &req)
	if err != nil {
		return contract.ExecutionResult{}, err
	}
	if refused != nil {
		return r.refuse(ctx, &ac, &req, refused), nil
	}
	name := client.ObjectKeyFromObject(order)
	ended, stop := r.Desk.Endings.Watch(name)
	defer stop()
	made, err := r.Desk.create(ctx, order)
	if message, ok := misfit(err); ok {
		return contract.ExecutionResult{}, &httpapi.InvalidRequestError{Message: message}
	}
	if err != nil {
		return contract.ExecutionResult{}, err
	}
	if !made {
		return r.refuse(ctx, &ac, &req, taken()), nil
	}
	turn, err := r.Desk.await(ctx, ended, order.UID)
	switch {
	case err == nil:
		return r.Desk.result(ctx, turn)
	case ctx.Err() != nil && !errors.Is(err, ErrStopping):
		// The client is gone, and nobody else waits for this turn.
		r.Desk.abandon(ctx, order)
	}
	return contract.ExecutionResult{}, err
}

func taken() *refusal {
	return &refusal{
		status: contract.StatusDenied, code: contract.CodeInvalidRequest,
		message: "executionId: a turn of this world has it; choose another",
	}
}

// order decides whether the turn may be made, and how it looks.
func (r *Runner) order(ctx context.Context, ac *contract.AccessContext, req *contract.RemoteExecutionRequest) (*v1alpha1.Turn, *refusal, error) {
	if code := mismatch(ac, req); code != "" {
		return nil, denied(code), nil
	}
	for field, value := range map[string]contract.Value{"message.payload": req.Message.Payload, "state": req.State} {
		if err := fits(field, value); err != nil {
			return nil, nil, &httpapi.InvalidRequestError{Message: err.Error()}
		}
	}
	directory, err := people(ctx, r.Desk.Live, ac.NamespaceID)
	if err != nil {
		return nil, nil, err
	}
	order := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{
		Namespace: ac.NamespaceID, Name: nameFor(v1alpha1.OriginHTTP, req.ExecutionID),
		Labels: map[string]string{v1alpha1.LabelOrigin: v1alpha1.OriginHTTP},
	}}
	earlier, err := r.Desk.find(ctx, client.ObjectKeyFromObject(order))
	if err != nil {
		return nil, nil, err
	}
	from, refused, err := r.sender(ctx, ac, req, directory)
	if err != nil || refused != nil {
		return nil, refused, err
	}
	agent, refused := r.agent(ctx, ac, req, directory, earlier)
	if refused != nil {
		return nil, refused, nil
	}
	order.Spec = v1alpha1.TurnSpec{
		Principal: v1alpha1.ObjectName(agent.Principal.Name), Purpose: v1alpha1.Purpose(ac.Purpose),
		ExecutionID: v1alpha1.Identifier(req.ExecutionID), Message: translate.TurnMessage(&req.Message, from),
		State: v1alpha1.JSONText(req.State), Options: translate.APIOptions(req.Options), Harness: agent.Principal.Spec.Harness,
	}
	return order, nil, nil
}

// mismatch is what of the message contradicts the request or its context. The Turn
// would not show it: its message is made from these same parts.
func mismatch(ac *contract.AccessContext, req *contract.RemoteExecutionRequest) string {
	m := &req.Message
	switch {
	case m.Receiver != req.Agent:
		return contract.CodeReceiverMismatch
	case m.Purpose != ac.Purpose || m.TraceID != ac.TraceID:
		return contract.CodeMessageContextMismatch
	default:
		return ""
	}
}

// agent is who is to run, if the caller may run it. Until that is known the caller
// learns nothing of the agent, not even whether it exists; and no use is spent on
// what cannot happen.
func (r *Runner) agent(
	ctx context.Context, ac *contract.AccessContext, req *contract.RemoteExecutionRequest, d *translate.Directory, earlier *v1alpha1.Turn,
) (translate.Identity, *refusal) {
	agent, exists := agentAt(d, req.Agent)
	fault := obstacle(&agent, ac.Purpose)
	switch {
	case !exists:
		agent = translate.Identity{Actor: req.Agent, Authority: ac.Authority, Owner: ac.Owner}
		fault = &refusal{contract.StatusDenied, contract.CodeInvalidRequest, "agent: no agent of this world that can act has the address"}
	case fault == nil && earlier != nil:
		fault = taken()
	}
	// An agent that runs itself is asked at its own admission, once.
	if !exists || req.Agent != ac.Actor {
		if decision := mayRun(ctx, r.Kernel, *ac, agent, fault == nil); !decision.Allowed {
			return agent, denied(decision.ReasonCode)
		}
	}
	return agent, fault
}

// sender is the Principal that the message says it comes from: the caller, or one
// that the caller may use, as for anybody who creates a Turn.
func (r *Runner) sender(ctx context.Context, ac *contract.AccessContext, req *contract.RemoteExecutionRequest, d *translate.Directory) (string, *refusal, error) {
	name, known := nameOf(d, req.Message.Sender)
	if req.Message.Sender == ac.Actor && known {
		return name, nil, nil
	}
	if !known {
		return "", denied(contract.CodeMessageContextMismatch), nil
	}
	allowed, err := r.Speakers.MayUse(ctx, ac.NamespaceID, name)
	if err != nil {
		return "", nil, err
	}
	if !allowed {
		return "", denied(contract.CodeMessageContextMismatch), nil
	}
	return name, nil, nil
}

// refuse is the result of a turn that was not made, recorded like one that was.
func (r *Runner) refuse(ctx context.Context, ac *contract.AccessContext, req *contract.RemoteExecutionRequest, why *refusal) contract.ExecutionResult {
	outcome := audit.Denied
	if why.status == contract.StatusFailed {
		outcome = audit.Failed
	}
	err := r.Kernel.Record(context.WithoutCancel(ctx), *ac, audit.Event{
		Type: audit.TurnEnded, Outcome: outcome, OperationID: req.ExecutionID, Reason: why.code, Source: audit.SourceEnvelope, EndedBy: "host",
	})
	if err != nil {
		why = &refusal{
			status: contract.StatusFailed, code: contract.CodeAuditUnavailable, message: kernel.MessageFor(contract.CodeAuditUnavailable),
		}
	}
	now := contract.At(r.Kernel.Now())
	event := contract.ExecutionEvent{
		Version: contract.Version, EventID: r.Kernel.NewID(), ExecutionID: req.ExecutionID, TraceID: ac.TraceID,
		Type: contract.EventTurnDenied, Data: contract.Object(fmt.Sprintf(`{"code":%q}`, why.code)), OccurredAt: now,
	}
	if why.status == contract.StatusFailed {
		event.Type = contract.EventTurnFailed
		event.Data = contract.Object(fmt.Sprintf(`{"code":%q,"source":"envelope","retryable":true}`, why.code))
	}
	out := contract.ExecutionResult{
		Version: contract.Version, ExecutionID: req.ExecutionID, TraceID: ac.TraceID, Status: why.status,
		Error:  &contract.ProtocolError{Code: why.code, Message: why.message},
		Events: []contract.ExecutionEvent{event}, StartedAt: now, CompletedAt: now,
	}
	if why.status == contract.StatusFailed {
		out.Error.Retryable = new(true)
	}
	return out
}
