package kernel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Arguments are the parsed, frozen arguments of one call: every later step of the
// call sees exactly these. Accessors hand out copies.
type Arguments struct {
	raw  []byte
	node strictjson.Node
}

// ParseArguments reads a JSON object strictly: duplicate member names at any
// depth are refused, numbers keep their digits.
func ParseArguments(raw contract.Object) (Arguments, error) {
	own := bytes.Clone(raw)
	node, err := strictjson.Parse(own)
	if err != nil {
		return Arguments{}, fmt.Errorf("parse arguments: %w", err)
	}
	if node.Kind != strictjson.Object {
		return Arguments{}, &strictjson.Error{Rule: strictjson.RuleType, Detail: "arguments must be an object"}
	}
	return Arguments{raw: own, node: node}, nil
}

// Raw returns a copy of the object with its exact digits.
func (a Arguments) Raw() contract.Object { return bytes.Clone(a.raw) }

// Size is the length of the object as it was written, bytes. No text, list or object in
// it has more characters or entries.
func (a Arguments) Size() int { return len(a.raw) }

// Value returns the object as plain Go values with [json.Number] for numbers. Each
// call returns a fresh copy.
func (a Arguments) Value() map[string]any {
	m, ok := a.node.Any().(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return m
}

// Has reports whether the object has the member.
func (a Arguments) Has(name string) bool {
	_, ok := a.node.Member(name)
	return ok
}

// Member returns a copy of one member's exact JSON, or nil.
func (a Arguments) Member(name string) contract.Value {
	node, ok := a.node.Member(name)
	if !ok {
		return nil
	}
	return bytes.Clone(node.Raw)
}

// String returns a member that is a string.
func (a Arguments) String(name string) (string, bool) {
	node, ok := a.node.Member(name)
	return node.Text, ok && node.Kind == strictjson.String
}

// Path returns a member that is an array of strings. Its segments are validated
// with the requirement they become part of.
func (a Arguments) Path(name string) (contract.Path, error) {
	node, ok := a.node.Member(name)
	if !ok || node.Kind != strictjson.Array {
		return nil, fmt.Errorf("argument %s must be an array of segments", name)
	}
	path := make(contract.Path, len(node.Children))
	for i := range node.Children {
		if node.Children[i].Kind != strictjson.String {
			return nil, fmt.Errorf("argument %s must be an array of strings", name)
		}
		path[i] = node.Children[i].Text
	}
	return path, nil
}

// Decode decodes the arguments into v, a pointer to a struct, as [encoding/json]
// would; unknown members are ignored because the schema has judged them already.
func (a Arguments) Decode(v any) error {
	if err := strictjson.Decode(a.node, v, strictjson.Options{AllowUnknown: true}); err != nil {
		return fmt.Errorf("decode arguments: %w", err)
	}
	return nil
}

// Without returns the object without the named members, the rest in their order
// and with their exact digits.
func (a Arguments) Without(names ...string) contract.Object {
	var out bytes.Buffer
	out.Grow(len(a.raw))
	out.WriteByte('{')
	for i := range a.node.Children {
		member := &a.node.Children[i]
		if contains(names, member.Key) {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(member.Key)
		if err != nil {
			continue // a string always encodes
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(member.Raw)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}
