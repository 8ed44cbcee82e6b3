package plugin

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

type derive struct {
	env          *env
	output       output
	name         string
	subject      string
	capabilities []string
	purposes     []string
	notBefore    string
	expires      string
	depth        int64
	uses         int64
	apply        bool
}

func newDerive(e *env) *cobra.Command {
	d := &derive{env: e}
	cmd := &cobra.Command{
		Use:   "derive GRANT --to PRINCIPAL --capability ACTIONS@PLACE",
		Short: "Pass a part of a Grant on to another Principal",
		Long: `Prints a Grant that its subject passes on: derived from a parent and within it. What
is left out is inherited and written out. The kernel judges it; what goes beyond the
parent is refused with its reason, and nothing is cut to fit.`,
		Example: examples(`
kubectl sharedos derive read-atlas --to researcher --capability 'read@files:Work/atlas/**'
kubectl sharedos derive read-atlas --to researcher --capability 'read,list@files:Work/atlas/status.md' \
  --expires-at 2026-10-01T00:00:00Z --name researcher-reads --apply`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(e.completeGrants),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&d.subject, "to", "", "Principal that gets the Grant (required)")
	f.StringArrayVar(&d.capabilities, "capability", nil, "what is passed on, as ACTION,ACTION@NAMESPACE:PATH or …/** (required, may be repeated)")
	f.StringVar(&d.name, "name", "", "name of the Grant; made from the parent's if none is given")
	f.StringArrayVar(&d.purposes, "purpose", nil, "purposes; the parent's if none is given")
	f.StringVar(&d.notBefore, "not-before", "", "instant from which it is active; the parent's if none is given")
	f.StringVar(&d.expires, "expires-at", "", "instant at which it ends; the parent's if none is given")
	f.Int64Var(&d.depth, "depth", -1, "how many more times it may be passed on; one less than the parent if none is given")
	f.Int64Var(&d.uses, "max-uses", 0, "operations that it allows; any number if none is given")
	f.BoolVar(&d.apply, "apply", false, "create the Grant instead of printing it")
	d.output.addFlag(cmd)
	complete(cmd, "to", e.completePrincipals)
	return cmd
}

func (d *derive) run(cmd *cobra.Command, parentName string) error {
	if d.subject == "" || len(d.capabilities) == 0 {
		return usage("say to whom and what: --to and --capability")
	}
	if err := d.output.check(); err != nil {
		return err
	}
	c, namespace, err := d.env.world()
	if err != nil {
		return err
	}
	taken, err := snapshot.Take(cmd.Context(), cluster.Reader(c), namespace)
	if err != nil {
		return err
	}
	var parent *v1alpha1.Grant
	grants := taken.Grants(namespace)
	for i := range grants {
		if grants[i].Name == parentName {
			parent = &grants[i]
		}
	}
	if parent == nil {
		return fmt.Errorf("there is no Grant %q in namespace %q", parentName, namespace)
	}
	directory := translate.NewDirectory(taken.Principals(namespace))
	from, err := translate.Grant(parent, directory)
	if err != nil {
		return err
	}
	request, err := d.request(directory, parentName)
	if err != nil {
		return err
	}
	derived, err := kernel.DeriveGrant(from, request)
	if err != nil {
		fmt.Fprintf(d.env.streams.ErrOut, "refused: %v\n", err)
		return no()
	}
	grant, err := grantObject(&derived, directory)
	if err != nil {
		return err
	}
	if !d.apply {
		return d.env.printObject(grant, &d.output)
	}
	if err := c.Create(cmd.Context(), grant, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("create the Grant: %w", err)
	}
	fmt.Fprintf(d.env.streams.Out, "grant/%s created: %s\n", grant.Name, about(grant))
	return nil
}

func (d *derive) request(directory *translate.Directory, parent string) (kernel.DeriveRequest, error) {
	r := kernel.DeriveRequest{ID: d.name, IssuedAt: contract.At(d.env.clock()), Purposes: d.purposes}
	if r.ID == "" {
		r.ID = parent + "-for-" + d.subject
	}
	var err error
	if r.Subject, err = directory.Address(d.subject); err != nil {
		return r, fmt.Errorf("--to: %w", err)
	}
	for _, text := range d.capabilities {
		c, err := parseCapability(text)
		if err != nil {
			return r, err
		}
		r.Capabilities = append(r.Capabilities, c)
	}
	if r.NotBefore, err = instant("not-before", d.notBefore); err != nil {
		return r, err
	}
	if r.ExpiresAt, err = instant("expires-at", d.expires); err != nil {
		return r, err
	}
	if d.depth >= 0 {
		r.DelegationDepth = &d.depth
	}
	if d.uses > 0 {
		r.MaxUses = &d.uses
	}
	return r, nil
}

func instant(flag, text string) (*contract.Timestamp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was given
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, usage("--%s: %q is no instant such as 2026-09-15T12:00:00Z", flag, text)
	}
	return new(contract.At(at)), nil
}

// parseCapability reads ACTIONS@PLACE.
func parseCapability(text string) (contract.Capability, error) {
	actions, place, found := strings.Cut(text, "@")
	if !found {
		return contract.Capability{}, usage("--capability: %q has no @: write ACTIONS@NAMESPACE:PATH", text)
	}
	ref, scope, err := snapshot.ParsePlace(place)
	if err != nil {
		return contract.Capability{}, usage("--capability: %w", err)
	}
	return contract.Capability{Resource: ref, Actions: strings.Split(actions, ","), Scope: scope}, nil
}
