package turns

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// people reads the Principals of a world from the API server itself.
func people(ctx context.Context, reader client.Reader, world string) (*translate.Directory, error) {
	var list v1alpha1.PrincipalList
	if err := reader.List(ctx, &list, client.InNamespace(world)); err != nil {
		return nil, fmt.Errorf("list principals: %w", err)
	}
	return translate.NewDirectory(list.Items), nil
}

// agentAt is the agent with the address, if there is exactly one and it can act.
func agentAt(d *translate.Directory, a contract.Address) (translate.Identity, bool) {
	names := d.Sharing(a)
	if a.Kind != contract.KindAgent || len(names) != 1 {
		return translate.Identity{}, false
	}
	who, err := d.Identity(names[0])
	return who, err == nil
}

// nameOf is the name of the one Principal with the address.
func nameOf(d *translate.Directory, a contract.Address) (string, bool) {
	names := d.Sharing(a)
	if len(names) != 1 {
		return "", false
	}
	return names[0], true
}
