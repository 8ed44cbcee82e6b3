package console

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// principalRow is one Principal in the list of a world.
type principalRow struct {
	Name, Link, Address, Authority string
	Grants                         int
}

// grantRow is one Grant to a Principal.
type grantRow struct {
	Name, Issuer, State, Uses string
	Tone                      string
	Places, Purposes          []string
	Expires                   moment
}

// reachBody is the page of who can reach what.
type reachBody struct {
	Query    query
	Worlds   []string
	World    string
	Names    []string
	Purposes []string
	// List is the Principals of the world, when none is chosen.
	List []principalRow
	// Chosen is the Principal whose reach is shown.
	Chosen                           string
	Purpose, Actor, Authority, Owner string
	Tree                             []*node
	Places                           int
	Namespaces                       []string
	Unavailable                      string
	Grants                           []grantRow
}

// reach is the page of who can reach what: the Principals of a world, or one of them
// with the tree of what it may touch now.
func (c *console) reach(ctx context.Context, r request) (view, error) {
	principals, err := c.reads.principals(ctx, "")
	if err != nil {
		return view{}, err
	}
	body := reachBody{Query: r.query, Worlds: worlds(principals, nil), World: r.World}
	if body.World == "" && len(body.Worlds) > 0 {
		body.World = body.Worlds[0]
	}
	out := view{template: "reach", Title: "Reach", Nav: "/reach", World: body.World}
	if body.World == "" {
		out.Body = body
		return out, nil
	}
	if !slices.Contains(body.Worlds, body.World) {
		return view{}, noWorld()
	}
	grants, err := c.reads.grants(ctx, body.World)
	if err != nil {
		return view{}, err
	}
	var chosen *v1alpha1.Principal
	for i := range principals {
		p := &principals[i]
		if p.Namespace != body.World {
			continue
		}
		body.Names = append(body.Names, p.Name)
		if p.Name == r.Principal {
			chosen = p
		}
	}
	switch {
	case r.Principal == "":
		body.List = listPrincipals(principals, grants, body.World)
	case chosen == nil:
		return view{}, notFound("There is no Principal of that name in this world.")
	default:
		if err := c.reachOf(ctx, &body, chosen, grants); err != nil {
			return view{}, err
		}
		out.Title = "Reach of " + chosen.Name
	}
	out.Body = body
	return out, nil
}

func listPrincipals(principals []v1alpha1.Principal, grants []v1alpha1.Grant, world string) []principalRow {
	held := map[string]int{}
	for i := range grants {
		held[string(grants[i].Spec.Subject)]++
	}
	var out []principalRow
	for i := range principals {
		p := &principals[i]
		if p.Namespace != world {
			continue
		}
		authority := string(p.Spec.Authority)
		if authority == "" {
			authority = p.Name
		}
		out = append(out, principalRow{
			Name: p.Name, Link: query{World: world, Principal: p.Name}.link("/reach"),
			Address: addressText(translate.Address(p.Spec.Address)), Authority: authority, Grants: held[p.Name],
		})
	}
	return out
}

// reachOf asks the kernel what the Principal may touch now for a purpose.
func (c *console) reachOf(ctx context.Context, body *reachBody, p *v1alpha1.Principal, grants []v1alpha1.Grant) error {
	body.Chosen = p.Name
	for _, purpose := range p.Spec.Purposes {
		body.Purposes = append(body.Purposes, string(purpose))
	}
	for i := range grants {
		if g := &grants[i]; string(g.Spec.Subject) == p.Name {
			body.Grants = append(body.Grants, c.grantRow(g))
		}
	}
	judge := c.newJudge()
	ac, err := judge.context(ctx, body.World, p.Name, body.Query.Purpose)
	if none, ok := errors.AsType[*standing](err); ok {
		body.Unavailable = none.reason
		return nil
	}
	if err != nil {
		return err
	}
	body.Purpose, body.Namespaces = ac.Purpose, ac.EnabledToolNamespaces
	body.Actor, body.Authority, body.Owner = addressText(ac.Actor), addressText(ac.Authority), addressText(ac.Owner)
	reach := c.kernel.Reach(ctx, ac)
	if reach.ReasonCode != "" {
		body.Unavailable = kernel.MessageFor(reach.ReasonCode) + " (" + reach.ReasonCode + ")"
		return nil
	}
	body.Tree, body.Places = tree(reach.Reach), len(reach.Reach)
	return nil
}

func (c *console) grantRow(g *v1alpha1.Grant) grantRow {
	out := grantRow{Name: g.Name, Issuer: string(g.Spec.Issuer), State: "Unknown", Tone: "quiet", Uses: "unbounded"}
	if ready := v1alpha1.FindCondition(g.Status.Conditions, v1alpha1.GrantReady); ready != nil {
		if out.State = ready.Reason; v1alpha1.ConditionIsCurrent(g.Status.Conditions, v1alpha1.GrantReady, g.Generation) {
			out.Tone = "good"
		} else if ready.Status == "False" {
			out.Tone = "bad"
		}
	}
	for i := range g.Spec.Capabilities {
		out.Places = append(out.Places, capabilityText(&g.Spec.Capabilities[i]))
	}
	if limits := g.Spec.Constraints; limits != nil {
		for _, purpose := range limits.Purposes {
			out.Purposes = append(out.Purposes, string(purpose))
		}
		if limits.MaxUses != nil {
			out.Uses = plural(max(*limits.MaxUses-g.Status.Uses, 0), "use left", "uses left")
		}
		if at, err := limits.ExpiresAt.Time(); err == nil {
			out.Expires = moment{at: at, now: c.opts.Clock()}
		}
	}
	return out
}

// capabilityText is a capability in one line.
func capabilityText(c *v1alpha1.Capability) string {
	path := make(contract.Path, len(c.Resource.Path))
	for i, segment := range c.Resource.Path {
		path[i] = string(segment)
	}
	actions := make([]string, len(c.Actions))
	for i, action := range c.Actions {
		actions[i] = string(action)
	}
	out := strings.Join(actions, ", ") + " on " + place(string(c.Resource.Namespace), path)
	if c.Scope == v1alpha1.ScopeDescendants {
		out += " and below"
	}
	if c.Resource.Owner != "" {
		out += ", of " + string(c.Resource.Owner)
	}
	return out
}
