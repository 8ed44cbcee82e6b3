package requirement

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
)

// activation is the one variable that an expression sees.
type activation struct{ args any }

// ResolveName implements the activation.
func (a activation) ResolveName(name string) (any, bool) { return a.args, name == "args" }

// Parent implements the activation.
func (activation) Parent() cel.Activation { return nil }

// value turns a decoded JSON value into what an expression works on.
func (s *shape) value(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return s.number(string(v))
	case []any:
		elem := dynamic
		if s.elem != nil {
			elem = s.elem
		}
		for i := range v {
			var err error
			if v[i], err = elem.value(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		for key, member := range v {
			if _, done := member.(string); done {
				continue
			}
			converted, err := s.member(key).value(member)
			if err != nil {
				return nil, err
			}
			v[key] = converted
		}
		return v, nil
	default:
		return v, nil
	}
}

func (s *shape) member(name string) *shape {
	if field := s.fields[name]; field != nil {
		return field
	}
	if s.elem != nil {
		return s.elem
	}
	return dynamic
}
