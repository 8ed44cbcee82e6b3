package kernel

import "github.com/sharedos-dev/operator/kernel/contract"

// index finds the grants that could cover a requirement without looking at those
// that cannot: by namespace and action, then down the path. Only grants that can
// apply in this turn are in it, and only capabilities on the context's own resources.
type index map[string]*plane

// plane holds the buckets of one namespace. Either may be nil.
type plane struct {
	byAction map[string]*bucket
	any      *bucket // of capabilities for every action
}

// buckets returns those that may hold a capability for the action: by its name, and
// for every action. Asking for every action asks for that name alone.
func (ix index) buckets(namespace, action string) (literal, wild *bucket) {
	p := ix[namespace]
	switch {
	case p == nil:
		return nil, nil
	case action == contract.ActionAny:
		return p.any, nil
	default:
		return p.byAction[action], p.any
	}
}

// bucket returns the bucket of an action, making it if need be.
func (ix index) bucket(namespace, action string) *bucket {
	p := ix[namespace]
	if p == nil {
		p = &plane{byAction: make(map[string]*bucket, 1)}
		ix[namespace] = p
	}
	if action == contract.ActionAny {
		if p.any == nil {
			p.any = &bucket{}
		}
		return p.any
	}
	b := p.byAction[action]
	if b == nil {
		b = &bucket{}
		p.byAction[action] = b
	}
	return b
}

// bucket holds the capabilities of one namespace and action.
type bucket struct {
	root node
	// all is for the overlap test of discovery, in grant order.
	all []place
}

// places lists the capabilities in grant order.
func (b *bucket) places() []place {
	if b == nil {
		return nil
	}
	return b.all
}

// node is one path. Both lists hold positions of grants, ascending and unique.
type node struct {
	children map[string]*node
	exact    []int32 // scope exact, here
	below    []int32 // scope descendants, from here down
}

// place is one capability's subtree.
type place struct {
	grant int32
	path  contract.Path
	scope contract.Scope
}

func newIndex(grants []grant, ac *contract.AccessContext) index {
	ix := make(index)
	for i := range grants {
		if grants[i].standing != 0 {
			continue
		}
		for c := range grants[i].Capabilities {
			capability := &grants[i].Capabilities[c]
			if owner := capability.Resource.Owner; owner != nil && *owner != ac.Owner {
				continue
			}
			for _, action := range capability.Actions {
				ix.add(int32(i), action, capability)
			}
		}
	}
	return ix
}

func (ix index) add(position int32, action string, c *contract.Capability) {
	b := ix.bucket(c.Resource.Namespace, action)
	b.all = append(b.all, place{position, c.Resource.Path, c.Scope})
	n := &b.root
	for _, segment := range c.Resource.Path {
		child := n.children[segment]
		if child == nil {
			child = &node{}
			if n.children == nil {
				n.children = make(map[string]*node, 1)
			}
			n.children[segment] = child
		}
		n = child
	}
	if c.Scope == contract.ScopeExact {
		n.exact = appendUnique(n.exact, position)
	} else {
		n.below = appendUnique(n.below, position)
	}
}

// appendUnique relies on positions arriving in ascending order.
func appendUnique(list []int32, position int32) []int32 {
	if len(list) > 0 && list[len(list)-1] == position {
		return list
	}
	return append(list, position)
}

// covering appends the grant lists of every capability that covers the path.
func (b *bucket) covering(lists [][]int32, path contract.Path) [][]int32 {
	if b == nil {
		return lists
	}
	n := &b.root
	for _, segment := range path {
		if len(n.below) > 0 {
			lists = append(lists, n.below)
		}
		if n = n.children[segment]; n == nil {
			return lists
		}
	}
	if len(n.below) > 0 {
		lists = append(lists, n.below)
	}
	if len(n.exact) > 0 {
		lists = append(lists, n.exact)
	}
	return lists
}

// overlaps reports whether the place's subtree and the one below path meet.
func (p *place) overlaps(path contract.Path) bool {
	n := min(len(p.path), len(path))
	for i := range n {
		if p.path[i] != path[i] {
			return false
		}
	}
	return len(p.path) >= len(path) || p.scope == contract.ScopeDescendants
}

// next takes the smallest head off the lists, skipping what equals it. It returns
// -1 when all lists are used up.
func next(lists [][]int32) int32 {
	best := int32(-1)
	for _, list := range lists {
		if len(list) > 0 && (best < 0 || list[0] < best) {
			best = list[0]
		}
	}
	if best < 0 {
		return best
	}
	for i, list := range lists {
		if len(list) > 0 && list[0] == best {
			lists[i] = list[1:]
		}
	}
	return best
}
