package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one YAML document with the lines of its values.
type Document struct {
	Position
	APIVersion string
	Kind       string
	// JSON is the document as JSON, with its exact digits.
	JSON []byte
	root *yaml.Node
}

// Group is the API group; empty for the core group.
func (d *Document) Group() string {
	group, _, found := strings.Cut(d.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// At returns the place of the value that a path leads to, or of the nearest value
// above it that exists. A path is written as in spec.capabilities[0].actions.
func (d *Document) At(path string) Position { return d.at(split(path)) }

func (d *Document) at(path []string) Position {
	node := resolve(d.root)
	line := node.Line
	for _, token := range path {
		key, next := child(node, token)
		if next == nil {
			break
		}
		line = key.Line
		node = resolve(next)
	}
	return Position{File: d.File, Line: line}
}

// child returns the node that names the member, and the member.
func child(node *yaml.Node, token string) (key, value *yaml.Node) {
	switch node.Kind { //nolint:exhaustive // the others hold nothing
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == token {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

// resolve follows a document to its content and an alias to what it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	for {
		switch {
		case node.Kind == yaml.DocumentNode && len(node.Content) > 0:
			node = node.Content[0]
		case node.Kind == yaml.AliasNode:
			node = node.Alias
		default:
			return node
		}
	}
}

// split turns a.b[0] into its tokens.
func split(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	var tokens []string
	for token := range strings.SplitSeq(path, ".") {
		if token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
