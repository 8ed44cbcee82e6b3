package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

type approve struct {
	env     *env
	output  output
	name    string
	expires time.Duration
	uses    int64
	within  []string
	apply   bool
	again   bool
	follow  bool
}

func newApprove(e *env) *cobra.Command {
	a := &approve{env: e}
	cmd := &cobra.Command{
		Use:   "approve TURN",
		Short: "Write the narrowest Grant that answers an escalation",
		Long: `Prints a Grant of exactly what the Turn asked for: that action on that one place, for
the purpose of the Turn, once, for an hour. Look at it before you apply it: an agent
chose what it asks for.

The Grant never exceeds the ceiling: what is asked for must be one action on one place
that some tool which is on for the Principal could use, in the owner's resources, and
below --within if that is given. Anything else is refused, and so is a request with
characters that do not show.`,
		Example: examples(`
kubectl sharedos approve status-report                    # look at it
kubectl sharedos approve status-report --within files:Work/atlas/** --apply
kubectl sharedos approve status-report --apply --run-again --follow`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: e.completeTurns(func(t *v1alpha1.Turn) bool { return t.Status.Escalation != nil }),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&a.name, "name", "", "name of the Grant; made from the Turn's if none is given")
	f.DurationVar(&a.expires, "expires-in", time.Hour, "time that the Grant is good for; 0 is for ever")
	f.Int64Var(&a.uses, "max-uses", 1, "operations that the Grant allows; 0 is any number")
	f.StringSliceVar(&a.within, "within", nil, "refuse what is not below one of these places, as in files:Work/atlas/**")
	f.BoolVar(&a.apply, "apply", false, "create the Grant instead of printing it")
	f.BoolVar(&a.again, "run-again", false, "with --apply: run the Turn again")
	f.BoolVar(&a.follow, "follow", false, "with --run-again: follow it")
	a.output.addFlag(cmd)
	return cmd
}

func (a *approve) run(cmd *cobra.Command, arg string) error {
	switch {
	case a.again && !a.apply, a.follow && !a.again:
		return usage("--run-again goes with --apply, and --follow with --run-again")
	case a.expires < 0 || a.uses < 0:
		return usage("limits must be positive")
	}
	if err := a.output.check(); err != nil {
		return err
	}
	c, turn, err := a.env.turn(cmd.Context(), arg)
	if err != nil {
		return err
	}
	taken, err := snapshot.Take(cmd.Context(), cluster.Reader(c), turn.Namespace)
	if err != nil {
		return err
	}
	grant, err := a.grant(cmd.Context(), turn, taken)
	if err != nil {
		return fmt.Errorf("turn %q: %w", turn.Name, err)
	}
	if !a.apply {
		return a.env.printObject(grant, &a.output)
	}
	if err := c.Create(cmd.Context(), grant, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("create the Grant: %w", err)
	}
	fmt.Fprintf(a.env.streams.ErrOut, "grant/%s created: %s\n", grant.Name, about(grant))
	if !a.again {
		return nil
	}
	return a.runAgain(cmd.Context(), c, turn)
}

// Refusals of an approval.
var (
	errNotAsked    = errors.New("it does not ask for a decision")
	errAskedNoThis = errors.New("it does not say what it asks for; read its reason and write a Grant by hand")
	errTooMuch     = errors.New("it asks for more than one action on one place")
	errNotWithin   = errors.New("it asks for something that is not below --within")
	errNoTool      = errors.New("it asks for something that no tool which is on for it could use")
	errOtherOwner  = errors.New("it asks for what belongs to another than it works for")
	errOtherParty  = errors.New("what it asks for is for somebody else")
)

// grant is the narrowest Grant that answers the Turn's escalation, or an error.
func (a *approve) grant(ctx context.Context, turn *v1alpha1.Turn, taken *snapshot.Snapshot) (*v1alpha1.Grant, error) {
	asked := translate.ContractEscalation(turn.Status.Escalation)
	switch {
	case asked == nil || turn.Status.Admission == nil || turn.Status.Admission.Context == nil:
		return nil, errNotAsked
	case asked.RequestedAuthority == nil:
		return nil, errAskedNoThis
	}
	admitted := turn.Status.Admission.Context
	request := asked.RequestedAuthority
	ac := contract.AccessContext{
		NamespaceID: turn.Namespace, Actor: translate.Address(admitted.Actor), Authority: translate.Address(admitted.Authority),
		Owner: translate.Address(admitted.Owner), Purpose: string(admitted.Purpose),
	}
	for _, namespace := range admitted.EnabledToolNamespaces {
		ac.EnabledToolNamespaces = append(ac.EnabledToolNamespaces, string(namespace))
	}
	if request.NamespaceID != ac.NamespaceID || request.Requester != ac.Actor || request.Owner != ac.Owner || request.Purpose != ac.Purpose {
		return nil, errOtherParty
	}
	capability, err := a.underCeiling(ctx, request, ac, taken)
	if err != nil {
		return nil, err
	}
	now := a.env.clock()
	grant := contract.Grant{
		ID: a.grantName(turn, request), NamespaceID: turn.Namespace, Issuer: ac.Authority, Subject: ac.Actor,
		Capabilities: []contract.Capability{capability}, IssuedAt: contract.At(now),
		Constraints: contract.Constraints{Purposes: []string{ac.Purpose}},
	}
	if a.expires > 0 {
		grant.Constraints.ExpiresAt = new(contract.At(now.Add(a.expires).Truncate(time.Second)))
	}
	if a.uses > 0 {
		grant.Constraints.MaxUses = &a.uses
	}
	if err := grant.Validate(); err != nil {
		return nil, err
	}
	return grantObject(&grant, translate.NewDirectory(taken.Principals(turn.Namespace)))
}

// underCeiling checks that one action on one exact place is asked for, which some tool
// could use, and that the reviewer's own bound holds.
func (a *approve) underCeiling(
	ctx context.Context, request *contract.CapabilityRequest, ac contract.AccessContext, taken *snapshot.Snapshot,
) (contract.Capability, error) {
	if len(request.Capabilities) != 1 {
		return contract.Capability{}, errTooMuch
	}
	c := request.Capabilities[0]
	switch {
	case len(c.Actions) != 1 || c.Actions[0] == contract.ActionAny || c.Scope != contract.ScopeExact:
		return c, errTooMuch
	case c.Resource.Owner != nil && *c.Resource.Owner != ac.Owner:
		return c, errOtherOwner
	}
	inspector, err := snapshot.NewInspector(taken)
	if err != nil {
		return c, err
	}
	tools, err := inspector.Ceilings(ctx, ac)
	if err != nil {
		return c, err
	}
	if !slices.ContainsFunc(tools, func(d contract.ToolDefinition) bool {
		ceiling := &d.RequiredCapability
		return ceiling.Action == c.Actions[0] && ceiling.Resource.Namespace == c.Resource.Namespace && below(c.Resource.Path, ceiling.Resource.Path)
	}) {
		return c, fmt.Errorf("%w: %s", errNoTool, asksFor(request))
	}
	return c, a.checkWithin(&c)
}

func (a *approve) checkWithin(c *contract.Capability) error {
	if len(a.within) == 0 {
		return nil
	}
	for _, place := range a.within {
		ref, scope, err := snapshot.ParsePlace(place)
		if err != nil {
			return usageError{Err: err}
		}
		same := slices.Equal(c.Resource.Path, ref.Path)
		if ref.Namespace == c.Resource.Namespace && (same || (scope == contract.ScopeDescendants && below(c.Resource.Path, ref.Path))) {
			return nil
		}
	}
	return errNotWithin
}

// below compares segment by segment.
func below(path, ceiling contract.Path) bool {
	return len(path) >= len(ceiling) && slices.Equal(path[:len(ceiling)], ceiling)
}

// grantName is the same for the same ask of the same Turn, so that approving twice
// makes one Grant.
func (a *approve) grantName(turn *v1alpha1.Turn, request *contract.CapabilityRequest) string {
	if a.name != "" {
		return a.name
	}
	sum := sha256.Sum256([]byte(string(turn.UID) + request.ID))
	return "approved-" + turn.Name + "-" + hex.EncodeToString(sum[:])[:8]
}

// runAgain creates the Turn anew; its message is a new one.
func (a *approve) runAgain(ctx context.Context, c client.WithWatch, old *v1alpha1.Turn) error {
	turn := &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, GenerateName: generateName(old.Name)},
		Spec:       *old.Spec.DeepCopy(),
	}
	turn.Spec.ExecutionID, turn.Spec.Cancel = "", false
	turn.Spec.Message.ID, turn.Spec.Message.TraceID, turn.Spec.Message.CreatedAt = "", "", ""
	if err := c.Create(ctx, turn, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("create the Turn: %w", err)
	}
	fmt.Fprintf(a.env.streams.ErrOut, "turn/%s created\n", turn.Name)
	if !a.follow {
		return nil
	}
	return a.env.follow(ctx, c, turn, true, &a.output)
}
