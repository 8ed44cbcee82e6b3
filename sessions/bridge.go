package sessions

import (
	"context"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// tokenSlack is how much longer than the turn its execution token is valid.
const tokenSlack = time.Minute

// Bind binds the turn to the pod. It is the controller's: the pod is stored in the
// Turn first. The binding never changes.
func (s *Session) Bind(pod Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pod.UID == "" {
		s.pod = pod
	}
	s.candidate = nil
}

// Bound reports whether the turn is bound to the pod of that UID.
func (s *Session) Bound(podUID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return podUID != "" && s.pod.UID == podUID
}

// Attach lets the pod in if it is the one that the turn is bound to. A turn that
// is bound to none yet is answered as not ready. Its error is a [*bridge.Error].
func (s *Session) Attach(pod Pod) error {
	if _, ended := s.exec.Ended(); ended {
		return refuse(bridge.CodeTurnEnded)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pod.UID == "":
		if s.candidate == nil {
			s.candidate = &pod
			defer s.notify()
		}
		return refuse(bridge.CodeTurnNotReady)
	case s.pod.UID != pod.UID:
		return refuse(bridge.CodePodNotBound)
	}
	s.recount()
	return nil
}

// Reject forgets the pod that asked to be bound, so that another may ask.
func (s *Session) Reject(podUID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.candidate != nil && s.candidate.UID == podUID {
		s.candidate = nil
	}
}

// Response is what an attached sidecar gets beside its execution token.
func (s *Session) Response() bridge.AttachResponse {
	req := &s.request
	return bridge.AttachResponse{
		ExecutionID: req.ExecutionID, NamespaceID: req.NamespaceID, Actor: contract.CanonicalActor(req.Agent),
		TraceID: req.TraceID, CatalogHash: req.Catalogue.CatalogHash, Message: req.Message, State: req.State,
		Harness: s.subject.Harness, TimeoutSec: int(s.subject.CallTimeout / time.Second),
	}
}

// TokenExpiry is until when an execution token minted now is valid.
func (s *Session) TokenExpiry() time.Time {
	timeout := s.request.Timeout
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.readyAt.IsZero() {
		return s.readyAt.Add(timeout + tokenSlack)
	}
	return s.now().Add(s.subject.StartTimeout + timeout + tokenSlack)
}

// Catalog is the turn's catalogue.
func (s *Session) Catalog() contract.Catalogue { return s.exec.Catalog() }

// Ready says that the sidecar is listening. The turn's deadline counts from the
// first time.
func (s *Session) Ready(ctx context.Context) {
	s.mu.Lock()
	if s.readyAt.IsZero() {
		s.readyAt = s.now()
	}
	s.mu.Unlock()
	s.exec.Start(ctx)
	s.notify()
}

// Invoke runs one call. A repeat of a call id gets the first answer.
func (s *Session) Invoke(ctx context.Context, in bridge.InvokeRequest) contract.ToolResult {
	if _, ended := s.exec.Ended(); !ended {
		s.exec.Start(ctx) // a call proves the bridge ready
	}
	ctx = s.within(ctx, s.request.ExecutionID, s.request.TraceID)
	call := contract.ToolCall{
		ID: in.CallID, Tool: in.Tool, Arguments: in.Arguments,
		TraceID: s.request.TraceID, RequestedAt: contract.At(s.now()),
	}
	result := s.calls.once(ctx, in.CallID, s.exec.Repeatable(in.Tool), func() contract.ToolResult {
		out := s.exec.Invoke(ctx, call, in.Step)
		if s.onCall != nil {
			code := ""
			if out.Error != nil {
				code = out.Error.Code
			}
			s.onCall(s.subject.Key, in.Tool, out.Status, code)
		}
		return out
	})
	if result == nil {
		return lostAnswer(call, s.now())
	}
	return *result
}

// lostAnswer is for a call whose answer is no longer kept, or whose first attempt
// is still running when its repeat was given up.
func lostAnswer(call contract.ToolCall, now time.Time) contract.ToolResult {
	retryable := false
	return contract.ToolResult{
		CallID: call.ID, Tool: call.Tool, Status: contract.StatusFailed, CompletedAt: contract.At(now),
		Error: &contract.ProtocolError{
			Code: bridge.CodeKernelUnavailable, Message: "the call was taken before and its answer is no longer kept", Retryable: &retryable,
		},
	}
}

// Outcome takes the harness's own report, ends the turn with it, and returns once
// that is stored. Only the first report counts.
func (s *Session) Outcome(ctx context.Context, o bridge.Outcome) error {
	s.mu.Lock()
	if s.outcome == nil {
		s.outcome = &o
	}
	first := *s.outcome
	s.mu.Unlock()
	s.exec.Finish(ctx, EnvelopeOutcome(first, s.subject.JSONOutput))
	return s.store(ctx)
}

// Done is closed when the turn has ended.
func (s *Session) Done() <-chan struct{} { return s.exec.Done() }

// Status is the ending's, once the turn has ended.
func (s *Session) Status() contract.Status {
	result, _ := s.exec.Ended()
	return result.Status
}

func refuse(code string) *bridge.Error {
	text := map[string]string{
		bridge.CodeTurnEnded:    "the turn has ended",
		bridge.CodeTurnNotReady: "the turn is not bound to a pod yet",
		bridge.CodePodNotBound:  "another pod is bound to the turn",
	}
	return &bridge.Error{Code: code, Message: text[code], Retryable: code == bridge.CodeTurnNotReady}
}
