package manager

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/toolsource"
)

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

// Invoke implements [kernel.ResourceProvider] with the provider of the operation's
// world, whose ToolNamespace has the plane's name. Its tools may be off: grants gate
// resources, and nothing else.
func (p plane) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	n := &v1alpha1.ToolNamespace{}
	err := p.reader.Get(ctx, client.ObjectKey{Namespace: op.Context.NamespaceID, Name: string(p.name)}, n)
	if apierrors.IsNotFound(err) {
		return contract.ResourceResult{}, &kernel.Failure{Err: contract.ProtocolError{
			Code: contract.CodeResourceProviderMissing, Message: kernel.MessageFor(contract.CodeResourceProviderMissing),
		}}
	}
	if err != nil {
		return contract.ResourceResult{}, fmt.Errorf("get tool namespace %q: %w", p.name, err)
	}
	connection, err := p.connector.Connect(ctx, n)
	if err != nil {
		return contract.ResourceResult{}, fmt.Errorf("tool namespace %q: %w", n.Name, err)
	}
	return connection.Invoke(ctx, op)
}
