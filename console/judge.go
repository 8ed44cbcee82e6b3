package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/translate"
)

// newKernel makes the kernel that the console asks: the real decisions over the same
// Grants, without tools, and unable to spend or to record anything.
func newKernel(opts Options) (*kernel.Kernel, error) {
	reader := shared{opts.Reader}
	grants := authority.Grants{Reader: cluster.Reader(reader)}
	k, err := kernel.New(kernel.Options{
		Grants: grants, Delegation: grants, Usage: unspent{&authority.Uses{Reader: cluster.Reader(reader)}},
		Audit: unrecorded{}, Clock: opts.Clock, NewID: opts.NewID,
	})
	if err != nil {
		return nil, fmt.Errorf("make the console's kernel: %w", err)
	}
	return k, nil
}

// errReadOnly means that something tried to spend a use.
var errReadOnly = errors.New("the console spends no use")

// unspent reads how many uses are left, and spends none.
type unspent struct{ *authority.Uses }

func (unspent) Consume(context.Context, kernel.Use) (bool, error) { return false, errReadOnly }

// unrecorded takes no record: a question that permits nothing is no decision, and
// the audit log of the manager is about decisions.
type unrecorded struct{}

func (unrecorded) Record(context.Context, audit.Event) error { return nil }

// standing is why there is no context for a Principal, in words for a person.
type standing struct{ reason string }

func (s *standing) Error() string { return s.reason }

// world is what is known of one namespace while a page is made.
type world struct {
	principals []v1alpha1.Principal
	directory  *translate.Directory
	namespaces []v1alpha1.ToolNamespace
}

// judge asks the kernel on behalf of one page. It reads each world once and loads
// the authority of each context once.
type judge struct {
	c      *console
	worlds map[string]*world
	turns  map[[3]string]*kernel.Turn
}

func (c *console) newJudge() *judge {
	return &judge{c: c, worlds: map[string]*world{}, turns: map[[3]string]*kernel.Turn{}}
}

func (j *judge) world(ctx context.Context, name string) (*world, error) {
	if w, ok := j.worlds[name]; ok {
		return w, nil
	}
	w := &world{}
	var err error
	if w.principals, err = j.c.reads.principals(ctx, name); err != nil {
		return nil, err
	}
	if w.namespaces, err = j.c.reads.toolNamespaces(ctx, name); err != nil {
		return nil, err
	}
	w.directory = translate.NewDirectory(w.principals)
	j.worlds[name] = w
	return w, nil
}

// context is what the Principal would act in now, as a new Turn would. A [*standing]
// says why it could not act at all.
func (j *judge) context(ctx context.Context, world, principal, purpose string) (contract.AccessContext, error) {
	w, err := j.world(ctx, world)
	if err != nil {
		return contract.AccessContext{}, err
	}
	identity, err := w.directory.Identity(principal)
	if err != nil {
		return contract.AccessContext{}, &standing{err.Error()}
	}
	ac, err := identity.Context(v1alpha1.Purpose(purpose), w.namespaces, j.c.opts.NewID(), j.c.opts.Clock())
	if err != nil {
		return contract.AccessContext{}, &standing{err.Error()}
	}
	return ac, nil
}

// turn is the authority of a context, loaded.
func (j *judge) turn(ctx context.Context, world, principal, purpose string) (*kernel.Turn, error) {
	key := [3]string{world, principal, purpose}
	if t, ok := j.turns[key]; ok {
		return t, nil
	}
	ac, err := j.context(ctx, world, principal, purpose)
	if err != nil {
		return nil, err
	}
	t, err := j.c.kernel.OpenTurn(ctx, ac)
	if err != nil {
		return nil, fmt.Errorf("load the authority of principal %q: %w", principal, err)
	}
	j.turns[key] = t
	return t, nil
}

// allowedNow reports whether a new Turn of the same Principal and purpose would be
// allowed everything that was asked for, at the places that were named.
func (j *judge) allowedNow(ctx context.Context, t *v1alpha1.Turn, asked *contract.CapabilityRequest) (bool, error) {
	if asked == nil || len(asked.Capabilities) == 0 {
		return false, nil
	}
	turn, err := j.turn(ctx, t.Namespace, string(t.Spec.Principal), asked.Purpose)
	var none *standing
	var refused *kernel.Refusal
	if errors.As(err, &none) || errors.As(err, &refused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, c := range asked.Capabilities {
		for _, action := range c.Actions {
			if !turn.Authorize(ctx, contract.CapabilityRequirement{Resource: c.Resource, Action: action}).Allowed {
				return false, nil
			}
		}
	}
	return true, nil
}

// waits reports whether the Turn asked for a person's decision and nobody has
// allowed since what it asked for.
func (j *judge) waits(ctx context.Context, t *v1alpha1.Turn) (bool, error) {
	asked := translate.ContractEscalation(t.Status.Escalation)
	if asked == nil {
		return false, nil
	}
	allowed, err := j.allowedNow(ctx, t, asked.RequestedAuthority)
	return !allowed, err
}
