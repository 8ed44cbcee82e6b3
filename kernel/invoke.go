package kernel

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Report is a tool call's result with what the envelope must know beside it.
type Report struct {
	Result contract.ToolResult
	// AuditFailed is true when a record of the call could not be kept.
	AuditFailed bool
	// Required describes what a denied call needed, where that is known. It is for
	// the host's record: the result tells the caller no more than it may know.
	Required *contract.CapabilityRequest
}

// Invoke runs one tool call in the seven steps.
func (t *Turn) Invoke(ctx context.Context, call contract.ToolCall) contract.ToolResult {
	return t.Call(ctx, call).Result
}

// Call is Invoke for the envelope.
func (t *Turn) Call(ctx context.Context, call contract.ToolCall) Report {
	ctx, end := t.k.span(ctx, Span{Name: "invoke", Tool: call.Tool, TraceID: t.ac.TraceID})
	inv := invocation{t: t, call: call}
	inv.run(ctx)
	report := inv.finish(ctx)
	code := ""
	if report.Result.Error != nil {
		code = report.Result.Error.Code
	}
	end(report.Result.Status, code)
	return report
}

// Refuse records and answers a call that the envelope ended before it came to the
// kernel, as denied or failed. For tool_unavailable the true cause is worked out.
func (t *Turn) Refuse(ctx context.Context, call contract.ToolCall, status contract.Status, failure contract.ProtocolError) Report {
	inv := invocation{t: t, call: call, source: audit.SourceEnvelope, status: status, failure: &failure, firm: true}
	if failure.Code == contract.CodeToolUnavailable {
		_, why := t.lookup(ctx, call.Tool)
		inv.unavailable(&why)
		if inv.cause == "" {
			inv.cause = causeNotOffered
		}
	}
	return inv.finish(ctx)
}

// invocation is one call on its way through the steps. The first step that
// refuses or fails sets status and failure, and none runs after it.
type invocation struct {
	t      *Turn
	call   contract.ToolCall
	source audit.Source

	tool    *compiled
	args    Arguments
	need    contract.CapabilityRequirement
	needed  bool // need has been established
	grantID string

	status      contract.Status
	output      Output
	failure     *contract.ProtocolError
	cause       string
	rejected    []audit.RejectedGrant // why no grant opens the tool
	required    *contract.CapabilityRequest
	consumed    bool
	auditFailed bool
	firm        bool // the record is waited for
}

func (inv *invocation) deny(code, cause string) {
	inv.status, inv.failure, inv.cause = contract.StatusDenied, protocolError(code), cause
}

func (inv *invocation) fail(code, cause string) {
	inv.status, inv.failure, inv.cause = contract.StatusFailed, protocolError(code), cause
}

func (inv *invocation) run(ctx context.Context) {
	steps := [...]func(context.Context){
		inv.find, inv.checkTrace, inv.parse, inv.derive, inv.bound, inv.authorize, inv.handle,
	}
	for _, step := range steps {
		if step(ctx); inv.status != "" {
			return
		}
	}
}

// find is step 1. What is absent, disabled or undiscoverable looks the same.
func (inv *invocation) find(ctx context.Context) {
	if inv.call.ValidateFrame() != nil {
		inv.deny(contract.CodeInvalidRequest, "invalid_call")
		return
	}
	tool, why := inv.t.lookup(ctx, inv.call.Tool)
	switch why.code {
	case "":
		inv.tool = tool
	case contract.CodeToolUnavailable:
		inv.deny(why.code, why.cause)
		inv.unavailable(&why)
	default:
		inv.fail(why.code, why.cause)
	}
}

// checkTrace is step 2.
func (inv *invocation) checkTrace(context.Context) {
	if inv.call.TraceID != inv.t.ac.TraceID {
		inv.deny(contract.CodeTraceMismatch, "")
	}
}

// parse is step 3: from here on there is only one reading of the arguments.
func (inv *invocation) parse(context.Context) {
	args, err := ParseArguments(inv.call.Arguments)
	if err != nil {
		inv.fail(contract.CodeInvalidToolArguments, "not_an_object")
		return
	}
	if !conforms(inv.tool.form.input, args.node) {
		inv.fail(contract.CodeInvalidToolArguments, "schema")
		return
	}
	inv.args = args
}

// derive is step 4.
func (inv *invocation) derive(context.Context) {
	need, err := guarded(func() (contract.CapabilityRequirement, error) {
		return inv.tool.Requirement(inv.args, inv.t.Context())
	})
	if err != nil {
		inv.fail(contract.CodeToolRequirementFailed, "")
		return
	}
	need.Resource = cloneResource(need.Resource)
	inv.need, inv.needed = need, true
}

// bound is step 5: inside this world, and below the tool's own ceiling. A
// requirement of another world is left to the decision, which refuses and records it.
func (inv *invocation) bound(context.Context) {
	if inv.t.belongs(&inv.need) && !inv.underDeclaredCeiling() {
		inv.fail(contract.CodeInvalidToolRequirement, "")
	}
}

func (inv *invocation) underDeclaredCeiling() bool {
	ceiling := &inv.tool.Definition.RequiredCapability
	return inv.need.Resource.Namespace == ceiling.Resource.Namespace &&
		inv.need.Action == ceiling.Action &&
		sameOwner(inv.need.Resource.Owner, ceiling.Resource.Owner, &inv.t.ac.Owner) &&
		hasPrefix(inv.need.Resource.Path, ceiling.Resource.Path)
}

// authorize is step 6: decide, spend, and keep the record before anything happens.
func (inv *invocation) authorize(ctx context.Context) {
	if ctx.Err() != nil {
		inv.fail(contract.CodeToolExecutionFailed, "cancelled")
		return
	}
	q := question{need: inv.need, now: inv.t.k.opts.Clock(), mode: modeConsume}
	v := inv.t.decide(ctx, &q)
	decision := inv.t.decisionOf(&q, &v)
	inv.grantID, inv.consumed = decision.MatchedGrantID, v.consumed
	if err := inv.t.recordDecision(ctx, &q, &v, decision.RequiredAuthority, inv.call.ID); err != nil {
		inv.auditFailed = true
		inv.fail(contract.CodeAuditUnavailable, "")
		return
	}
	if !decision.Allowed {
		inv.deny(decision.ReasonCode, v.cause)
		inv.failure.Details = detailsOf(decision.RequiredAuthority)
		inv.required = decision.RequiredAuthority
	}
}

func detailsOf(required *contract.CapabilityRequest) contract.Object {
	if required == nil {
		return nil
	}
	details, err := json.Marshal(map[string]any{"requiredAuthority": required})
	if err != nil {
		return nil
	}
	return details
}

// handle is step 7.
func (inv *invocation) handle(ctx context.Context) {
	if ctx.Err() != nil { // it went away while the decision was being recorded
		inv.fail(contract.CodeToolExecutionFailed, "cancelled")
		return
	}
	out, err := guarded(func() (Output, error) {
		return inv.tool.Handle(ctx, ToolInvocation{
			CallID: inv.call.ID, Tool: inv.call.Tool, Arguments: inv.args,
			Requirement: contract.CapabilityRequirement{Resource: cloneResource(inv.need.Resource), Action: inv.need.Action},
			Context:     inv.t.Context(), Now: contract.At(inv.t.k.opts.Clock()),
		})
	})
	if out.CallID != "" && out.CallID != inv.call.ID {
		inv.fail(contract.CodeInvalidToolResult, "other_call")
		return
	}
	if err != nil {
		inv.handlerFailed(err)
		return
	}
	if cause := inv.flaw(&out); cause != "" {
		inv.fail(contract.CodeInvalidToolResult, cause)
		return
	}
	inv.status, inv.output = contract.StatusSucceeded, out
}

func (inv *invocation) handlerFailed(err error) {
	var failure *Failure
	if !errors.As(err, &failure) {
		inv.fail(contract.CodeToolExecutionFailed, "handler_error")
		return
	}
	status := failure.Status
	if status == "" {
		status = contract.StatusFailed
	}
	if failure.Err.Validate() != nil || (status != contract.StatusDenied && status != contract.StatusFailed) {
		inv.fail(contract.CodeInvalidToolResult, "malformed_failure")
		return
	}
	coded := failure.Err
	inv.status, inv.failure, inv.cause = status, &coded, "handler"
}

// flaw names what is wrong with an output, or nothing.
func (inv *invocation) flaw(out *Output) string {
	if !strictjson.Fits(out.Value) {
		return "too_many_values"
	}
	node, err := strictjson.Parse(out.Value)
	if err != nil {
		return "malformed_output"
	}
	if len(out.Metadata) > 0 {
		if meta, err := strictjson.Parse(out.Metadata); err != nil || meta.Kind != strictjson.Object {
			return "malformed_metadata"
		}
	}
	if schema := inv.tool.form.output; schema != nil && !conforms(schema, node) {
		return "output_schema"
	}
	return ""
}

// finish records the call and builds its result. An answer that cannot be recorded
// is withheld.
func (inv *invocation) finish(ctx context.Context) Report {
	keep := inv.t.follow
	if inv.firm {
		keep = inv.t.Record
	}
	if err := keep(context.WithoutCancel(ctx), inv.event()); err != nil {
		inv.auditFailed = true
		inv.fail(contract.CodeAuditUnavailable, "")
	}
	result := contract.ToolResult{
		CallID: inv.call.ID, Tool: inv.call.Tool, Status: inv.status,
		CompletedAt: contract.At(inv.t.k.opts.Clock()),
	}
	if inv.status == contract.StatusSucceeded {
		result.Output, result.Metadata = inv.output.Value, inv.output.Metadata
	} else {
		result.Error = inv.failure
	}
	return Report{Result: result, AuditFailed: inv.auditFailed, Required: inv.lacked()}
}

func (inv *invocation) event() audit.Event {
	e := audit.Event{
		Type: audit.ToolInvoked, Outcome: audit.Outcome(inv.status), Tool: inv.call.Tool,
		OperationID: inv.call.ID, GrantID: inv.grantID, AuthorityHash: inv.t.auth.hash,
		Cause: inv.cause, Source: inv.source, Consumed: inv.consumed,
	}
	if inv.cause == causeNotDiscoverable {
		e.GrantsResolved, e.RejectedGrants = inv.t.heldCount(), inv.rejected
	}
	if inv.needed {
		e.Resource, e.Action = safeResource(inv.need.Resource), inv.need.Action
	}
	if inv.failure != nil {
		e.Reason, e.FailClosed = inv.failure.Code, failsClosed(inv.failure.Code)
	}
	return e
}
