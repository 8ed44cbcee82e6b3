package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// askedPlace is one capability that was asked for.
type askedPlace struct {
	Place, Scope string
	Actions      []string
}

// ask is one escalation.
type ask struct {
	World, Turn, Link, Principal string
	Purpose, Reason, Reviewer    string
	At                           moment
	Places                       []askedPlace
	// Command answers it.
	Command string
	Waits   bool
}

// escalationsBody is the page of escalations.
type escalationsBody struct {
	Query    query
	Worlds   []string
	Waiting  []ask
	Answered []ask
	Pager    pager
}

// WaitingCount is how many wait, on this page and all others.
func (b escalationsBody) WaitingCount() int64 { return int64(b.Pager.Total) }

// ask is what a Turn asked for, or nil.
func (c *console) ask(t *v1alpha1.Turn) *ask {
	e := translate.ContractEscalation(t.Status.Escalation)
	if e == nil {
		return nil
	}
	out := &ask{
		World: t.Namespace, Turn: t.Name, Link: turnLink(t), Principal: string(t.Spec.Principal),
		Reason: e.Reason, Reviewer: addressText(e.Reviewer), At: moment{at: e.RequestedAt.Time, now: c.opts.Clock()},
		Command: approveCommand(t.Namespace, t.Name),
	}
	if r := e.RequestedAuthority; r != nil {
		out.Purpose = r.Purpose
		for _, capability := range r.Capabilities {
			out.Places = append(out.Places, askedPlace{
				Place: place(capability.Resource.Namespace, capability.Resource.Path), Scope: scopeText(capability.Scope),
				Actions: capability.Actions,
			})
		}
	}
	return out
}

// escalations is the page of what agents asked people for.
func (c *console) escalations(ctx context.Context, r request) (view, error) {
	all, names, err := c.selection(ctx, r)
	if err != nil {
		return view{}, err
	}
	body := escalationsBody{Query: r.query, Worlds: names}
	judge := c.newJudge()
	var waiting []ask
	for _, t := range all {
		if r.World != "" && t.Namespace != r.World {
			continue
		}
		asked := c.ask(t)
		if asked == nil {
			continue
		}
		if asked.Waits, err = judge.waits(ctx, t); err != nil {
			return view{}, err
		}
		if asked.Waits {
			waiting = append(waiting, *asked)
		} else {
			body.Answered = append(body.Answered, *asked)
		}
	}
	// Who has waited longest comes first.
	slices.SortStableFunc(waiting, func(a, b ask) int { return cmp.Or(a.At.at.Compare(b.At.at), cmp.Compare(a.Turn, b.Turn)) })
	body.Answered = body.Answered[:min(pageSize, len(body.Answered))]
	if body.Waiting, body.Pager, err = paged(waiting, r.query, "/escalations"); err != nil {
		return view{}, err
	}
	return view{template: "escalations", Title: "Escalations", Nav: "/escalations", World: r.World, Body: body}, nil
}

// approveCommand is the command that answers an escalation. Names come from objects
// and are quoted unless they cannot mean anything to a shell.
func approveCommand(world, turn string) string {
	return "kubectl sharedos approve " + shellWord(turn) + " --namespace " + shellWord(world)
}

// shellWord is a word that every POSIX shell takes as it is.
func shellWord(s string) string {
	if validation.IsDNS1123Subdomain(s) == nil {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// addressText is an address as people write it.
func addressText(a contract.Address) string { return string(a.Kind) + " " + a.ID }

// place is a resource as people write it.
func place(namespace string, path contract.Path) string {
	return namespace + ":/" + strings.Join(path, "/")
}

// scopeText says how far a capability reaches.
func scopeText(s contract.Scope) string {
	if s == contract.ScopeDescendants {
		return "and everything below"
	}
	return "only this"
}
