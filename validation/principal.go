package validation

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// Principals refuses a second Principal of one address. Two that are created at the
// same instant both pass; then both are disabled.
type Principals struct {
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements [admission.Handler].
func (h *Principals) Handle(ctx context.Context, req admission.Request) admission.Response {
	principal := &v1alpha1.Principal{}
	if err := h.Decoder.Decode(req, principal); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode principal: %w", err))
	}
	var list v1alpha1.PrincipalList
	if err := h.Reader.List(ctx, &list, client.InNamespace(req.Namespace)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list principals: %w", err))
	}
	address := translate.Address(principal.Spec.Address)
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != principal.Name && translate.Address(other.Spec.Address) == address {
			return admission.Denied(field.Duplicate(field.NewPath("spec", "address"),
				fmt.Sprintf("%s is the address of the principal %q", contract.CanonicalActor(address), other.Name)).Error())
		}
	}
	return admission.Allowed("")
}
