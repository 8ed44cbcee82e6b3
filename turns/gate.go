package turns

import (
	"context"
	"errors"
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// mayRun asks the kernel whether the context's actor may run the agent: for the
// capability sharedos.execution on it, granted by whoever's authority the agent
// exercises, on what its owner owns. A grant of the sender's own side proves nothing
// about somebody else's agent. Spend says that the agent is about to run.
func mayRun(ctx context.Context, k *kernel.Kernel, ac contract.AccessContext, agent translate.Identity, spend bool) contract.AuthorizationDecision {
	ac.Authority, ac.Owner = agent.Authority, agent.Owner
	need := contract.CapabilityRequirement{
		Resource: contract.ResourceRef{Namespace: contract.NamespaceExecution, Path: contract.AddressPath(agent.Actor)},
		Action:   contract.ActionInvoke,
	}
	if !spend {
		return k.Authorize(ctx, ac, need)
	}
	turn, err := k.OpenTurn(ctx, ac)
	if err != nil {
		code := contract.CodeAuthorityUnavailable
		if refusal, ok := errors.AsType[*kernel.Refusal](err); ok {
			code = refusal.Code
		}
		return contract.AuthorizationDecision{ReasonCode: code}
	}
	return turn.Consume(ctx, need)
}

// CodeHarnessNotConfigured is the code of a turn or message for an agent whose
// Principal names no Harness.
const CodeHarnessNotConfigured = "harness_not_configured"

// refusal is why a Turn is not made.
type refusal struct {
	status  contract.Status
	code    string
	message string
}

func denied(code string) *refusal {
	return &refusal{status: contract.StatusDenied, code: code, message: kernel.MessageFor(code)}
}

// obstacle is why an agent cannot run for the purpose, whoever asks.
func obstacle(agent *translate.Identity, purpose string) *refusal {
	switch {
	case agent.Principal == nil:
		return nil
	case !slices.Contains(agent.Principal.Spec.Purposes, v1alpha1.Purpose(purpose)):
		return &refusal{contract.StatusDenied, contract.CodeInvalidRequest, "purpose: the agent may not declare it"}
	case agent.Principal.Spec.Harness == "":
		return &refusal{contract.StatusFailed, CodeHarnessNotConfigured, "the agent's Principal names no Harness in spec.harness"}
	default:
		return nil
	}
}
