package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// errGrantsMoved means that a Grant changed between the kernel's look and ours.
var errGrantsMoved = errors.New("grants changed during admission")

// errNoAdmission means that a status does not hold what a turn is rebuilt from.
var errNoAdmission = errors.New("status.admission cannot be resumed from")

// references names the Grants behind an admission, by UID and generation.
func (r *TurnReconciler) references(ctx context.Context, ac *contract.AccessContext, a envelope.Admission) ([]v1alpha1.GrantReference, error) {
	grants, err := r.Grants.Load(ctx, *ac)
	if err != nil {
		return nil, err
	}
	now := make(map[kernel.GrantRef]v1alpha1.GrantReference, len(grants))
	for i := range grants {
		ref, err := kernel.ReferenceTo(grants[i])
		if err != nil {
			return nil, err
		}
		if now[ref], err = translate.GrantReference(&grants[i]); err != nil {
			return nil, err
		}
	}
	out := make([]v1alpha1.GrantReference, 0, len(a.Grants))
	for _, ref := range a.Grants {
		reference, ok := now[ref]
		if !ok {
			return nil, fmt.Errorf("grant %q: %w", ref.ID, errGrantsMoved)
		}
		out = append(out, reference)
	}
	return out, nil
}

// resume rebuilds the session of a turn that another manager admitted: with those
// of its Grants that are still what they were, and no others.
func (r *TurnReconciler) resume(ctx context.Context, s *turnScope) error {
	sender, err := r.sender(ctx, s.turn)
	if err != nil {
		return err
	}
	parties, at, ok := translate.Readmission(s.turn, sender)
	if !ok {
		return errNoAdmission
	}
	req, err := translate.Request(s.turn, parties, at)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	held, err := r.held(ctx, s.turn, req.Context)
	if err != nil {
		return err
	}
	harness := &v1alpha1.Harness{}
	if s.turn.Spec.Harness == "" {
		harness = nil
	} else if err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.turn.Namespace, Name: string(s.turn.Spec.Harness)}, harness); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get harness: %w", err)
		}
		harness = nil // what matters of it is in the pod already
	}
	s.session, err = r.Sessions.Resume(ctx, subjectOf(s.turn, harness), req, translate.Checkpoint(s.turn, held))
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if pod := s.turn.Status.Pod; pod != nil {
		s.session.Bind(sessions.Pod{Name: string(pod.Name), UID: string(pod.UID)})
	}
	return nil
}

// sender is the message's, as it is now; one that is gone was the agent itself.
func (r *TurnReconciler) sender(ctx context.Context, t *v1alpha1.Turn) (contract.Address, error) {
	fallback := contract.Address{}
	if c := t.Status.Admission.Context; c != nil {
		fallback = translate.Address(c.Actor)
	}
	if t.Spec.Message.From == "" {
		return fallback, nil
	}
	principal := &v1alpha1.Principal{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(t.Spec.Message.From)}, principal)
	if apierrors.IsNotFound(err) {
		return fallback, nil
	}
	if err != nil {
		return contract.Address{}, fmt.Errorf("get principal %q: %w", t.Spec.Message.From, err)
	}
	return translate.Address(principal.Spec.Address), nil
}

// held are the references of the Grants that the turn was admitted with and that
// still have the same UID and generation.
func (r *TurnReconciler) held(ctx context.Context, t *v1alpha1.Turn, ac *contract.AccessContext) ([]kernel.GrantRef, error) {
	admitted, err := r.admittedGrants(ctx, t)
	if err != nil {
		return nil, err
	}
	grants, err := r.Grants.Load(ctx, *ac)
	if err != nil {
		return nil, err
	}
	out := []kernel.GrantRef{}
	for i := range grants {
		reference, err := translate.GrantReference(&grants[i])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(admitted, reference) {
			continue
		}
		ref, err := kernel.ReferenceTo(grants[i])
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
	}
	return out, nil
}

// admittedGrants reads the references from the status or from beside it.
func (r *TurnReconciler) admittedGrants(ctx context.Context, t *v1alpha1.Turn) ([]v1alpha1.GrantReference, error) {
	a := t.Status.Admission
	if a.GrantsRef == nil {
		return a.Grants, nil
	}
	record := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: string(a.GrantsRef.Name)}, record); err != nil {
		return nil, fmt.Errorf("get the record of admitted grants: %w", err)
	}
	var out []v1alpha1.GrantReference
	if err := decodeRecord(record, &out); err != nil {
		return nil, fmt.Errorf("read the record of admitted grants: %w", err)
	}
	return out, nil
}
