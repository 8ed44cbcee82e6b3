package manager

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/toolsource"
)

// errAmbiguousPlane means that nobody can say which provider an operation is for.
var errAmbiguousPlane = errors.New("several tool namespaces provide the plane")

// planes are the resource planes that POST /v1/resources/invoke reaches.
func planes(reader client.Reader, connector toolsource.Connector) map[string]kernel.ResourceProvider {
	return map[string]kernel.ResourceProvider{
		files.Namespace: plane{v1alpha1.PlaneFiles, reader, connector},
		repo.Namespace:  plane{v1alpha1.PlaneRepo, reader, connector},
	}
}

// plane is a resource plane as the world of each operation has it.
type plane struct {
	name      v1alpha1.ResourcePlane
	reader    client.Reader
	connector toolsource.Connector
}

// Invoke implements [kernel.ResourceProvider] with the one provider of the plane in
// the operation's world. Tools may be off: grants gate resources, and nothing else.
func (p plane) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	var list v1alpha1.ToolNamespaceList
	if err := p.reader.List(ctx, &list, client.InNamespace(op.Context.NamespaceID)); err != nil {
		return contract.ResourceResult{}, fmt.Errorf("list tool namespaces: %w", err)
	}
	var found, on []*v1alpha1.ToolNamespace
	for i := range list.Items {
		n := &list.Items[i]
		if n.Spec.Source.Provider == nil || n.Spec.Source.Provider.Plane != p.name {
			continue
		}
		found = append(found, n)
		if n.Spec.Enabled {
			on = append(on, n)
		}
	}
	if len(on) > 0 {
		found = on
	}
	switch len(found) {
	case 0:
		return contract.ResourceResult{}, &kernel.Failure{Err: contract.ProtocolError{
			Code: contract.CodeResourceProviderMissing, Message: kernel.MessageFor(contract.CodeResourceProviderMissing),
		}}
	case 1:
		connection, err := p.connector.Connect(ctx, found[0])
		if err != nil {
			return contract.ResourceResult{}, fmt.Errorf("tool namespace %q: %w", found[0].Name, err)
		}
		return connection.Invoke(ctx, op)
	default:
		return contract.ResourceResult{}, fmt.Errorf("%w: %q and %q", errAmbiguousPlane, found[0].Name, found[1].Name)
	}
}
