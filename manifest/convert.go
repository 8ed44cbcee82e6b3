package manifest

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds a document, so that aliases of aliases cannot fill memory.
const maxNodes = 1 << 20

// maxDepth bounds how deep a document nests.
const maxDepth = 256

// converter writes a YAML document as JSON. Unlike the usual way over Go values it
// notices keys that are given twice and changes no digit of a number.
type converter struct {
	file  string
	nodes int
}

func (c *converter) fault(n *yaml.Node, format string, args ...any) error {
	return Fault{Position{c.file, n.Line}, fmt.Sprintf(format, args...)}
}

func (c *converter) append(dst []byte, node *yaml.Node, depth int) ([]byte, error) {
	node = resolve(node)
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		return nil, c.fault(node, "the document is too large")
	}
	switch node.Kind {
	case yaml.MappingNode:
		return c.appendMap(dst, node, depth)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range node.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = c.append(dst, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	default:
		return c.appendScalar(dst, node)
	}
}

func (c *converter) appendMap(dst []byte, node *yaml.Node, depth int) ([]byte, error) {
	dst = append(dst, '{')
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolve(node.Content[i])
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return nil, c.fault(key, "the key of a mapping must be plain text; write merged and complex keys out")
		}
		if line, twice := seen[key.Value]; twice {
			return nil, c.fault(key, "the key %q is given twice, first in line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		if i > 0 {
			dst = append(dst, ',')
		}
		name, err := json.Marshal(key.Value)
		if err != nil {
			return nil, c.fault(key, "the key cannot be written as JSON: %v", err)
		}
		dst = append(append(dst, name...), ':')
		if dst, err = c.append(dst, node.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (c *converter) appendScalar(dst []byte, node *yaml.Node) ([]byte, error) {
	switch node.ShortTag() {
	case "!!null":
		return append(dst, "null"...), nil
	case "!!bool":
		var b bool
		if err := node.Decode(&b); err != nil {
			return nil, c.fault(node, "%q is no boolean: write true or false", node.Value)
		}
		return fmt.Append(dst, b), nil
	case "!!int", "!!float":
		if json.Valid([]byte(node.Value)) {
			return append(dst, node.Value...), nil
		}
		var i int64
		if node.Decode(&i) == nil {
			return fmt.Append(dst, i), nil // 0x10, 0o7, 1_000
		}
		return nil, c.fault(node, "%q is no number that JSON can hold; quote it if it is text", node.Value)
	case "!!str", "!!timestamp":
		text, err := json.Marshal(node.Value)
		if err != nil {
			return nil, c.fault(node, "the text cannot be written as JSON: %v", err)
		}
		return append(dst, text...), nil
	default:
		return nil, c.fault(node, "the tag %s is not understood", node.Tag)
	}
}
