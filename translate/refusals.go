package translate

import (
	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// Refusals are the first denied calls as a status lists them. What one of them
// needed is left out where it is too long for the status, never cut.
func Refusals(denied []envelope.DeniedCall) []v1alpha1.TurnRefusal {
	denied = denied[:min(len(denied), v1alpha1.MaxRefusals)]
	if len(denied) == 0 {
		return nil
	}
	out := make([]v1alpha1.TurnRefusal, 0, len(denied))
	for i := range denied {
		d := &denied[i]
		refusal := v1alpha1.TurnRefusal{
			CallID: Text(d.CallID, contract.MaxIdentifier), Tool: Text(d.Tool, contract.MaxIdentifier), Code: Text(d.Code, contract.MaxCode),
		}
		if len(d.Required) <= v1alpha1.MaxRequiredAuthority {
			refusal.RequiredAuthority = v1alpha1.JSONText(d.Required)
		}
		out = append(out, refusal)
	}
	return out
}

// ContractRefusals is the reverse of [Refusals].
func ContractRefusals(refusals []v1alpha1.TurnRefusal) []envelope.DeniedCall {
	if len(refusals) == 0 {
		return nil
	}
	out := make([]envelope.DeniedCall, 0, len(refusals))
	for i := range refusals {
		r := &refusals[i]
		denied := envelope.DeniedCall{CallID: r.CallID, Tool: r.Tool, Code: r.Code}
		if r.RequiredAuthority != "" {
			denied.Required = contract.Object(r.RequiredAuthority)
		}
		out = append(out, denied)
	}
	return out
}
