package policytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

// Plan is what was read: the world, and the cases about it.
type Plan struct {
	Set      *manifest.Set
	Snapshot *snapshot.Snapshot
	Suites   []*Suite
}

// Load reads files and folders. Objects and cases that name no namespace are of the
// given one. Its error is [manifest.Faults] when files are at fault, or when what they
// declare does not hold together: a Grant between Principals that do not exist, two
// Principals with one address, a derived Grant that its parent does not cover, a case
// that names what is not there.
func Load(paths []string, namespace string, now time.Time) (*Plan, error) {
	set, err := manifest.Read(paths, manifest.Options{Namespace: namespace})
	faults, ok := errors.AsType[manifest.Faults](err)
	if err != nil && !ok {
		return nil, err
	}
	p := &Plan{Set: set, Snapshot: snapshot.New(set.Objects...)}
	for _, d := range set.Tests {
		s, wrong := parse(d, namespace)
		faults = append(faults, wrong...)
		if s != nil {
			p.Suites = append(p.Suites, s)
		}
	}
	if len(faults) == 0 {
		faults = append(p.consistent(now), p.misspelt()...)
	}
	if len(faults) > 0 {
		return p, faults
	}
	return p, nil
}

// consistent says what does not hold together.
func (p *Plan) consistent(now time.Time) manifest.Faults {
	var faults manifest.Faults
	for _, namespace := range p.Snapshot.Namespaces() {
		principals := p.Snapshot.Principals(namespace)
		directory := translate.NewDirectory(principals)
		for i := range principals {
			if _, err := directory.Identity(principals[i].Name); err != nil {
				faults = append(faults, manifest.Fault{Position: p.Set.Position(&principals[i], "spec"), Message: err.Error()})
			}
		}
		grants := p.Snapshot.Grants(namespace)
		for i := range grants {
			if err := p.holds(&grants[i], directory, now); err != nil {
				faults = append(faults, manifest.Fault{
					Position: p.Set.Position(&grants[i], "spec"), Message: fmt.Sprintf("grant %q: %v", grants[i].Name, err),
				})
			}
		}
	}
	return faults
}

// holds judges one Grant as the kernel would load it.
func (p *Plan) holds(g *v1alpha1.Grant, d *translate.Directory, now time.Time) error {
	translated, err := translate.Grant(g, d)
	if err != nil || g.Spec.Revoked {
		return err
	}
	if err := translated.Validate(); err != nil {
		return err
	}
	ancestors, err := p.ancestors(g)
	if err != nil || len(ancestors) == 0 {
		return err
	}
	err = authority.CheckChain(translated, ancestors, d, now)
	if errors.Is(err, authority.ErrParentInactive) {
		return nil // it is in order, and allows nothing now
	}
	return err
}

func (p *Plan) ancestors(g *v1alpha1.Grant) ([]*v1alpha1.Grant, error) {
	var out []*v1alpha1.Grant
	for name := g.Spec.ParentGrant; name != ""; {
		if len(out) == kernel.MaxChainLinks {
			return nil, fmt.Errorf("it has more than %d ancestors", kernel.MaxChainLinks)
		}
		parent := find(p.Snapshot.Grants(g.Namespace), string(name))
		if parent == nil {
			return nil, fmt.Errorf("spec.parentGrant: there is no grant %q", name)
		}
		out = append(out, parent)
		name = parent.Spec.ParentGrant
	}
	return out, nil
}

func find(grants []v1alpha1.Grant, name string) *v1alpha1.Grant {
	for i := range grants {
		if grants[i].Name == name {
			return &grants[i]
		}
	}
	return nil
}

// formatPlace is one place of a reach, in a form that is compared.
func formatPlace(namespace string, path contract.Path, scope contract.Scope, actions []string) string {
	return fmt.Sprintf("%s %v", snapshot.FormatPlace(namespace, path, scope), sorted(actions))
}
