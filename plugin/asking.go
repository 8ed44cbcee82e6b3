package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

// asking is whose question it is and when.
type asking struct {
	principal string
	purpose   string
	at        string
}

// addFlags adds the flags; the Principal is --as, or an argument.
func (a *asking) addFlags(cmd *cobra.Command, e *env, withAs bool) {
	if withAs {
		cmd.Flags().StringVar(&a.principal, "as", "", "Principal that asks (required)")
		complete(cmd, "as", e.completePrincipals)
	}
	cmd.Flags().StringVar(&a.purpose, "purpose", "", "purpose that it declares; its first one if none is given")
	cmd.Flags().StringVar(&a.at, "at", "", "instant at which it is asked, as in 2026-09-15T12:00:00Z; now if none is given")
	complete(cmd, "purpose", e.completePurposes(func() string { return a.principal }))
}

// context resolves it.
func (a *asking) context(e *env, i *snapshot.Inspector, namespace string) (contract.AccessContext, error) {
	if a.principal == "" {
		return contract.AccessContext{}, usage("--as: name the Principal that asks")
	}
	at := e.clock()
	if a.at != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, a.at); err != nil {
			return contract.AccessContext{}, usage("--at: %q is no instant such as 2026-09-15T12:00:00Z", a.at)
		}
	}
	return i.Context(namespace, a.principal, a.purpose, at)
}

// resolve checks the output that is wanted, takes what the cluster has, and returns
// what answers with the context it is asked in.
func (a *asking) resolve(ctx context.Context, e *env, o *output) (*snapshot.Inspector, contract.AccessContext, error) {
	if err := o.check(); err != nil {
		return nil, contract.AccessContext{}, err
	}
	inspector, namespace, err := e.inspector(ctx)
	if err != nil {
		return nil, contract.AccessContext{}, err
	}
	ac, err := a.context(e, inspector, namespace)
	return inspector, ac, err
}
