package validation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/translate"
)

// Grants validates Grants that name a parent.
type Grants struct {
	Reader  client.Reader
	Decoder admission.Decoder
	Clock   func() time.Time
}

var parentField = field.NewPath("spec", "parentGrant")

// Handle implements [admission.Handler].
func (h *Grants) Handle(ctx context.Context, req admission.Request) admission.Response {
	grant := &v1alpha1.Grant{}
	if err := h.Decoder.Decode(req, grant); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode grant: %w", err))
	}
	// Revoking must always be possible.
	if grant.Spec.ParentGrant == "" || grant.Spec.Revoked {
		return admission.Allowed("")
	}
	grant.Namespace = req.Namespace
	if grant.CreationTimestamp.IsZero() {
		grant.CreationTimestamp.Time = h.Clock()
	}
	fault, err := h.check(ctx, grant)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case fault != nil:
		return admission.Denied(fault.Error())
	}
	return admission.Allowed("")
}

func (h *Grants) check(ctx context.Context, grant *v1alpha1.Grant) (*field.Error, error) {
	var principals v1alpha1.PrincipalList
	if err := h.Reader.List(ctx, &principals, client.InNamespace(grant.Namespace)); err != nil {
		return nil, fmt.Errorf("list principals: %w", err)
	}
	directory := translate.NewDirectory(principals.Items)
	child, err := translate.Grant(grant, directory)
	if err != nil {
		return field.Invalid(field.NewPath("spec"), grant.Name, err.Error()), nil
	}
	ancestors, fault, err := h.ancestors(ctx, grant)
	if err != nil || fault != nil {
		return fault, err
	}
	if err := authority.CheckChain(child, ancestors, directory, h.Clock()); err != nil {
		return field.Invalid(parentField, grant.Spec.ParentGrant, err.Error()), nil
	}
	return nil, nil
}

// ancestors reads the chain, the immediate parent first.
func (h *Grants) ancestors(ctx context.Context, grant *v1alpha1.Grant) ([]*v1alpha1.Grant, *field.Error, error) {
	var out []*v1alpha1.Grant
	seen := map[string]bool{grant.Name: true}
	for name := string(grant.Spec.ParentGrant); name != ""; {
		if seen[name] {
			return nil, field.Invalid(parentField, name, "chain_cycle: a grant cannot be its own ancestor"), nil
		}
		if len(out) == kernel.MaxChainLinks {
			return nil, field.Invalid(parentField, name, fmt.Sprintf("chain_too_long: at most %d ancestors", kernel.MaxChainLinks)), nil
		}
		seen[name] = true
		parent := &v1alpha1.Grant{}
		err := h.Reader.Get(ctx, client.ObjectKey{Namespace: grant.Namespace, Name: name}, parent)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("get grant %q: %w", name, err)
		}
		if err != nil {
			return nil, field.NotFound(parentField, name), nil
		}
		out = append(out, parent)
		name = string(parent.Spec.ParentGrant)
	}
	return out, nil, nil
}
