package authority

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects"
	"github.com/sharedos-dev/operator/translate"
)

// Grants is a [kernel.GrantSource] and a [kernel.DelegationResolver] over the
// Grants of a namespace.
type Grants struct{ Reader objects.Reader }

var (
	_ kernel.GrantSource        = Grants{}
	_ kernel.DelegationResolver = Grants{}
)

// Load implements [kernel.GrantSource]. A Grant that names a Principal which does
// not exist, or one of a duplicate address, is left out: it cannot be said whose
// authority it is. Its own condition says so.
func (g Grants) Load(ctx context.Context, ac contract.AccessContext) ([]contract.Grant, error) {
	// Both are read as they are now, and neither needs the other's answer.
	var list v1alpha1.GrantList
	var listErr error
	var wg sync.WaitGroup
	wg.Go(func() { listErr = g.Reader.List(ctx, &list, ac.NamespaceID) })
	directory, err := g.directory(ctx, ac.NamespaceID)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	if listErr != nil {
		return nil, fmt.Errorf("list grants: %w", listErr)
	}
	var out []contract.Grant
	for i := range list.Items {
		grant := &list.Items[i]
		if !between(grant, directory, ac.Authority, ac.Actor) {
			continue
		}
		translated, err := translate.Grant(grant, directory)
		switch {
		case errors.Is(err, translate.ErrPrincipalNotFound), errors.Is(err, translate.ErrDuplicateAddress):
			continue
		case err != nil:
			return nil, fmt.Errorf("translate grant %q: %w", grant.Name, err)
		}
		out = append(out, translated)
	}
	return out, nil
}

// between reports whether the grant is the issuer's to the subject.
func between(g *v1alpha1.Grant, d *translate.Directory, issuer, subject contract.Address) bool {
	i, err := d.Address(string(g.Spec.Issuer))
	if err != nil || i != issuer {
		return false
	}
	s, err := d.Address(string(g.Spec.Subject))
	return err == nil && s == subject
}

// Resolve implements [kernel.DelegationResolver].
func (g Grants) Resolve(ctx context.Context, namespaceID, grantID string) (contract.Grant, error) {
	grant := &v1alpha1.Grant{}
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: namespaceID, Name: grantID}, grant)
	if apierrors.IsNotFound(err) {
		return contract.Grant{}, kernel.ErrGrantNotFound
	}
	if err != nil {
		return contract.Grant{}, fmt.Errorf("get grant %q: %w", grantID, err)
	}
	directory, err := g.directory(ctx, namespaceID)
	if err != nil {
		return contract.Grant{}, err
	}
	translated, err := translate.Grant(grant, directory)
	if errors.Is(err, translate.ErrPrincipalNotFound) {
		return contract.Grant{}, kernel.ErrGrantNotFound
	}
	if err != nil {
		return contract.Grant{}, fmt.Errorf("translate grant %q: %w", grantID, err)
	}
	return translated, nil
}

func (g Grants) directory(ctx context.Context, namespace string) (*translate.Directory, error) {
	var list v1alpha1.PrincipalList
	if err := g.Reader.List(ctx, &list, namespace); err != nil {
		return nil, fmt.Errorf("list principals: %w", err)
	}
	return translate.NewDirectory(list.Items), nil
}
