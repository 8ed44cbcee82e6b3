package console

import "github.com/sharedos-dev/operator/kernel/contract"

// rights is what may be done at a place.
type rights struct {
	Actions []string
	Scope   string
}

// node is a plane or a path segment in the tree of a reach.
type node struct {
	Name   string
	Rights []rights
	Nodes  []*node
}

// tree arranges a reach, which is sorted, by plane and segment. Actions of one place
// stay together per scope, as the kernel gave them.
func tree(entries []contract.ReachEntry) []*node {
	root := &node{}
	for i := range entries {
		e := &entries[i]
		at := root.child(e.Namespace)
		for _, segment := range e.Path {
			at = at.child(segment)
		}
		actions := e.Actions
		if len(actions) == 1 && actions[0] == contract.ActionAny {
			actions = []string{"every action"}
		}
		at.Rights = append(at.Rights, rights{Actions: actions, Scope: scopeText(e.Scope)})
	}
	return root.Nodes
}

// child is the child of that name, which is the last one if it exists, because what
// is arranged is sorted.
func (n *node) child(name string) *node {
	if last := len(n.Nodes) - 1; last >= 0 && n.Nodes[last].Name == name {
		return n.Nodes[last]
	}
	out := &node{Name: name}
	n.Nodes = append(n.Nodes, out)
	return out
}
