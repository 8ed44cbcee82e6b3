package translate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Errors of [Directory.Identity]. The error text names the Principal.
var (
	ErrPrincipalNotFound = errors.New("principal not found")
	ErrDuplicateAddress  = errors.New("another principal has the same address")
)

// Directory is the Principals of one world, by name and by address. Principals
// that share an address are all disabled: nobody can say which of them is meant.
type Directory struct {
	byName    map[string]*v1alpha1.Principal
	byAddress map[contract.Address][]string
}

// NewDirectory indexes the Principals of one world. It keeps pointers into the
// slice, which must not change afterwards.
func NewDirectory(principals []v1alpha1.Principal) *Directory {
	d := &Directory{
		byName:    make(map[string]*v1alpha1.Principal, len(principals)),
		byAddress: make(map[contract.Address][]string, len(principals)),
	}
	for i := range principals {
		p := &principals[i]
		d.byName[p.Name] = p
		address := Address(p.Spec.Address)
		d.byAddress[address] = append(d.byAddress[address], p.Name)
	}
	return d
}

// Principal returns the Principal of that name, disabled or not.
func (d *Directory) Principal(name string) (*v1alpha1.Principal, bool) {
	p, ok := d.byName[name]
	return p, ok
}

// Sharing returns the names of all Principals with the address.
func (d *Directory) Sharing(a contract.Address) []string { return d.byAddress[a] }

// Address returns the address of the named Principal, unless it is disabled.
func (d *Directory) Address(name string) (contract.Address, error) {
	p, ok := d.byName[name]
	if !ok {
		return contract.Address{}, fmt.Errorf("principal %q: %w", name, ErrPrincipalNotFound)
	}
	address := Address(p.Spec.Address)
	if len(d.byAddress[address]) > 1 {
		return contract.Address{}, fmt.Errorf("principal %q: %w", name, ErrDuplicateAddress)
	}
	return address, nil
}

// Identity is who a Principal acts as.
type Identity struct {
	Principal *v1alpha1.Principal
	Actor     contract.Address
	Authority contract.Address
	Owner     contract.Address
}

// Identity resolves a Principal with its authority and its owner, which are itself
// unless it names others.
func (d *Directory) Identity(name string) (Identity, error) {
	actor, err := d.Address(name)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Principal: d.byName[name], Actor: actor, Authority: actor, Owner: actor}
	if other := id.Principal.Spec.Authority; other != "" {
		if id.Authority, err = d.Address(string(other)); err != nil {
			return Identity{}, fmt.Errorf("spec.authority of principal %q: %w", name, err)
		}
	}
	if other := id.Principal.Spec.Owner; other != "" {
		if id.Owner, err = d.Address(string(other)); err != nil {
			return Identity{}, fmt.Errorf("spec.owner of principal %q: %w", name, err)
		}
	}
	return id, nil
}

// Context is what the Principal acts in at the instant: in its own world, for the
// asked purpose (see [Identity.Purpose]), with those of the world's tool namespaces
// that are on for it.
func (id Identity) Context(asked v1alpha1.Purpose, namespaces []v1alpha1.ToolNamespace, trace string, at time.Time) (contract.AccessContext, error) {
	purpose, err := id.Purpose(asked)
	if err != nil {
		return contract.AccessContext{}, err
	}
	enabled, err := EnabledToolNamespaces(namespaces, id.Principal)
	if err != nil {
		return contract.AccessContext{}, err
	}
	return id.context(id.Principal.Namespace, purpose, enabled, trace, at), nil
}

func (id Identity) context(world, purpose string, enabled []string, trace string, at time.Time) contract.AccessContext {
	return contract.AccessContext{
		NamespaceID: world, Actor: id.Actor, Authority: id.Authority, Owner: id.Owner,
		Purpose: purpose, TraceID: trace, EnabledToolNamespaces: enabled, Now: contract.At(at.UTC()),
	}
}

// Purpose chooses the purpose of a context: the asked one if the Principal may
// declare it, the first when none is asked.
func (id Identity) Purpose(asked v1alpha1.Purpose) (string, error) {
	allowed := id.Principal.Spec.Purposes
	if asked == "" {
		if len(allowed) == 0 {
			return "", fmt.Errorf("spec.purposes of principal %q is empty; add the purposes it may declare", id.Principal.Name)
		}
		return string(allowed[0]), nil
	}
	if slices.Contains(allowed, asked) {
		return string(asked), nil
	}
	return "", fmt.Errorf("purpose %q is not one of spec.purposes of principal %q", asked, id.Principal.Name)
}
