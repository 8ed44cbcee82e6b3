package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/oneview"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// obstacle is why a Turn cannot be handed to the envelope. A passing one may mend
// itself, and is waited for until the start timeout.
type obstacle struct {
	reason  v1alpha1.ConditionReason
	message string
	passing bool
}

// gathered is what admission knows of the world.
type gathered struct {
	parties translate.Parties
	harness *v1alpha1.Harness
}

// needs is the Grant without which the Turn cannot run.
func (g gathered) needs(t *v1alpha1.Turn) string {
	issuer := g.parties.Principal.Spec.Authority
	if issuer == "" {
		issuer = t.Spec.Principal
	}
	return fmt.Sprintf("it needs a Grant with issuer %q, subject %q, the action %q on the namespace %q and the path [%q, %q], "+
		"and which holds now for the purpose %q", issuer, t.Spec.Principal, "invoke", "sharedos.execution", "agent", g.parties.Actor.ID, g.parties.Purpose)
}

// admit hands the Turn to the envelope.
func (r *TurnReconciler) admit(ctx context.Context, s *turnScope) (ctrl.Result, error) {
	if reason := s.mustEnd(); reason != "" {
		s.endUnadmitted(v1alpha1.TurnReasonCancelled, v1alpha1.TurnCancelled, contract.CodeTurnCancelled, reason, r.Clock())
		return ctrl.Result{}, nil
	}
	// What is decided here is decided on one view of the world.
	ctx, end := oneview.With(ctx)
	defer end()
	found, problem, err := r.gather(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if problem != nil {
		return r.wait(s, found.harness, problem), nil
	}
	at := r.Clock().UTC().Truncate(time.Microsecond)
	req, invalid := translate.Request(s.turn, found.parties, at)
	if invalid == nil {
		invalid = req.Validate()
	}
	if invalid != nil {
		s.endUnadmitted(v1alpha1.TurnReasonInvalid, v1alpha1.TurnDenied, contract.CodeInvalidRequest, invalid.Error(), r.Clock())
		return ctrl.Result{}, nil
	}
	session, err := r.Sessions.Open(ctx, subjectOf(s.turn, found.harness), req)
	if errors.Is(err, sessions.ErrExecutionTaken) {
		s.endUnadmitted(v1alpha1.TurnReasonInvalid, v1alpha1.TurnDenied, contract.CodeInvalidRequest,
			"spec.executionId: another Turn of this namespace has it; leave it out or choose another", r.Clock())
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("open the turn: %w", err)
	}
	s.session, s.harness = session, found.harness
	return ctrl.Result{}, r.recordAdmission(ctx, s, req, found)
}

// recordAdmission puts into the status what the envelope established.
func (r *TurnReconciler) recordAdmission(ctx context.Context, s *turnScope, req contract.ExecutionRequest, found gathered) error {
	if result, refused := s.session.Execution().Ended(); refused {
		message := contractMessage(result.Error)
		if result.Error != nil && result.Error.Code == contract.CodeNoMatchingGrant {
			message += "; " + found.needs(s.turn)
		}
		s.set(v1alpha1.TurnConditionAdmitted, metav1.ConditionFalse, v1alpha1.TurnReasonDenied, message)
		return nil
	}
	admission := s.session.Execution().Admission()
	references, err := r.references(ctx, req.Context, admission)
	if err != nil {
		// The grants changed while they were read: begin again.
		r.Sessions.Forget(ctx, s.key())
		s.session = nil
		return err
	}
	policy := ""
	if found.harness != nil {
		if policy, err = policyHash(found.harness.Spec.ToolPolicy); err != nil {
			return err
		}
	}
	s.turn.Status.Admission = translate.Admission(admission, req.Context, found.parties.Options, references, policy)
	if len(references) > v1alpha1.MaxInlineGrants {
		s.records[recordGrants] = encodeJSON(references)
		s.turn.Status.Admission.GrantsRef = &v1alpha1.LocalReference{Name: recordName(s.turn, recordGrants)}
	}
	return nil
}

// gather holds the Turn and reads everybody it names, from the API server itself.
func (r *TurnReconciler) gather(ctx context.Context, s *turnScope) (gathered, *obstacle, error) {
	var held *v1alpha1.Turn
	var heldErr error
	var wg sync.WaitGroup
	wg.Go(func() { held, heldErr = r.hold(ctx, s) })
	found, problem, err := r.look(ctx, s.turn)
	wg.Wait()
	if heldErr != nil {
		return gathered{}, nil, heldErr
	}
	if held != nil {
		r.written.note(s.before.ResourceVersion, held)
		s.turn.ObjectMeta = *held.ObjectMeta.DeepCopy()
		s.before = held
	}
	return found, problem, err
}

// look is gather without the hold.
func (r *TurnReconciler) look(ctx context.Context, t *v1alpha1.Turn) (gathered, *obstacle, error) {
	var out gathered
	var principals v1alpha1.PrincipalList
	var namespaces v1alpha1.ToolNamespaceList
	var wg sync.WaitGroup
	var principalsErr, namespacesErr error
	wg.Go(func() { principalsErr = r.Live.List(ctx, &principals, client.InNamespace(t.Namespace)) })
	wg.Go(func() { namespacesErr = r.Live.List(ctx, &namespaces, client.InNamespace(t.Namespace)) })
	// The kernel will ask for the Grants, in this view: it need not wait for them then,
	// and is told the error if there is one.
	wg.Go(func() { _ = r.Live.List(ctx, &v1alpha1.GrantList{}, client.InNamespace(t.Namespace)) })
	harness, problem, err := r.harness(ctx, t)
	wg.Wait()
	if err != nil || problem != nil {
		return out, problem, err
	}
	out.harness = harness
	if principalsErr != nil {
		return out, nil, fmt.Errorf("list principals: %w", principalsErr)
	}
	directory := translate.NewDirectory(principals.Items)
	if out.parties, problem = partiesOf(t, directory); problem != nil {
		return out, problem, nil
	}
	if problem, err := r.sharedExecution(ctx, t); err != nil || problem != nil {
		return out, problem, err
	}
	if namespacesErr != nil {
		return out, nil, fmt.Errorf("list tool namespaces: %w", namespacesErr)
	}
	enabled, invalid := translate.EnabledToolNamespaces(namespaces.Items, out.parties.Principal)
	if invalid != nil {
		return out, &obstacle{reason: v1alpha1.TurnReasonInvalid, message: invalid.Error()}, nil //nolint:nilerr // the fault is the selector's, and the obstacle says so
	}
	out.parties.Enabled = enabled
	out.parties.Options = translate.Options(t, harness)
	return out, nil, nil
}

// sharedExecution refuses an execution id that a Turn which is admitted, or was,
// has already. Only ids that were chosen can be shared.
func (r *TurnReconciler) sharedExecution(ctx context.Context, t *v1alpha1.Turn) (*obstacle, error) {
	var turns v1alpha1.TurnList
	same := client.MatchingFields{IndexExecution: t.EffectiveExecutionID()}
	if err := r.Client.List(ctx, &turns, client.InNamespace(t.Namespace), same, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list turns: %w", err)
	}
	for i := range turns.Items {
		other := &turns.Items[i]
		if other.UID != t.UID && other.Status.Admission != nil {
			return &obstacle{
				reason:  v1alpha1.TurnReasonInvalid,
				message: fmt.Sprintf("spec.executionId: the Turn %q has it; leave it out or choose another", other.Name),
			}, nil
		}
	}
	return nil, nil
}

func (r *TurnReconciler) harness(ctx context.Context, t *v1alpha1.Turn) (*v1alpha1.Harness, *obstacle, error) {
	if t.Spec.Harness == "" {
		return nil, nil, nil
	}
	harness := &v1alpha1.Harness{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(t.Spec.Harness)}, harness)
	if apierrors.IsNotFound(err) {
		return nil, &obstacle{
			reason: v1alpha1.TurnReasonHarnessNotReady, passing: true,
			message: fmt.Sprintf("spec.harness: there is no Harness %q in this namespace; create it in time, or create another Turn after it", t.Spec.Harness),
		}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get harness %q: %w", t.Spec.Harness, err)
	}
	if fault := CheckHarness(harness); fault != nil {
		return harness, &obstacle{
			reason: v1alpha1.TurnReasonHarnessNotReady, passing: true,
			message: fmt.Sprintf("spec.harness: the Harness %q cannot be used: %s", t.Spec.Harness, fault.Message),
		}, nil
	}
	return harness, nil, nil
}

// partiesOf resolves the Turn's participants. It is pure.
func partiesOf(t *v1alpha1.Turn, d *translate.Directory) (translate.Parties, *obstacle) {
	var out translate.Parties
	var err error
	if out.Identity, err = d.Identity(string(t.Spec.Principal)); err != nil {
		return out, &obstacle{reason: v1alpha1.TurnReasonPrincipalNotReady, message: "spec.principal: " + err.Error(), passing: true}
	}
	if out.Actor.Kind != contract.KindAgent {
		return out, &obstacle{
			reason:  v1alpha1.TurnReasonPrincipalNotReady,
			message: fmt.Sprintf("spec.principal: %q is a %s; only an agent runs turns", t.Spec.Principal, out.Actor.Kind),
		}
	}
	if out.Purpose, err = out.Identity.Purpose(t.Spec.Purpose); err != nil {
		return out, &obstacle{reason: v1alpha1.TurnReasonInvalid, message: "spec.purpose: " + err.Error()}
	}
	out.Sender = out.Actor
	if from := t.Spec.Message.From; from != "" {
		if out.Sender, err = d.Address(string(from)); err != nil {
			return out, &obstacle{
				reason: v1alpha1.TurnReasonPrincipalNotReady, message: "spec.message.from: " + err.Error(),
				passing: errors.Is(err, translate.ErrPrincipalNotFound),
			}
		}
	}
	return out, nil
}

// wait keeps a Turn pending for as long as its obstacle may still go away.
func (r *TurnReconciler) wait(s *turnScope, harness *v1alpha1.Harness, problem *obstacle) ctrl.Result {
	left := s.turn.CreationTimestamp.Add(startTimeout(s.turn, harness)).Sub(r.Clock())
	if !problem.passing || left <= 0 {
		s.endUnadmitted(problem.reason, v1alpha1.TurnDenied, contract.CodeInvalidRequest, problem.message, r.Clock())
		return ctrl.Result{}
	}
	s.set(v1alpha1.TurnConditionAdmitted, metav1.ConditionFalse, problem.reason, problem.message)
	// Principals and Harnesses that come wake it sooner.
	return ctrl.Result{RequeueAfter: left}
}

// endUnadmitted ends a Turn that never came to the envelope.
func (s *turnScope) endUnadmitted(
	reason v1alpha1.ConditionReason, outcome v1alpha1.TurnOutcome, code, message string, now time.Time,
) {
	at := metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond))
	s.turn.Status.Outcome = outcome
	s.turn.Status.StartedAt, s.turn.Status.CompletedAt = new(at), new(at)
	s.turn.Status.Error = &v1alpha1.TurnError{Code: code, Message: translate.Text(message, translate.MaxMessage)}
	s.set(v1alpha1.TurnConditionAdmitted, metav1.ConditionFalse, reason, message)
}

// hold puts the finalizer on a Turn that is about to run, and returns it as it is then;
// nil if it has the finalizer.
func (r *TurnReconciler) hold(ctx context.Context, s *turnScope) (*v1alpha1.Turn, error) {
	if controllerutil.ContainsFinalizer(s.before, v1alpha1.FinalizerTurn) {
		return nil, nil //nolint:nilnil // nothing to do and no error
	}
	held := s.before.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.FinalizerTurn)
	patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, held, patch, client.FieldOwner(FieldOwner)); err != nil {
		return nil, fmt.Errorf("hold the turn: %w", err)
	}
	return held, nil
}

func subjectOf(t *v1alpha1.Turn, h *v1alpha1.Harness) sessions.Subject {
	subject := sessions.Subject{
		Key: sessions.Key{Namespace: t.Namespace, Turn: t.Name}, UID: string(t.UID),
		Harness: string(v1alpha1.HarnessCustom), StartTimeout: startTimeout(t, h), CallTimeout: envelope.DefaultTimeout,
	}
	if h != nil {
		subject.Harness = string(h.Spec.Type)
		subject.JSONOutput = h.Spec.Output == v1alpha1.OutputJSON
	}
	if ms := translate.Options(t, h).TimeoutMs; ms != nil {
		subject.CallTimeout = time.Duration(*ms) * time.Millisecond
	}
	return subject
}

func contractMessage(e *contract.ProtocolError) string {
	if e == nil {
		return "refused"
	}
	return e.Code + ": " + e.Message
}
