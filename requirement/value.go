package requirement

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
)

// activation is the one variable that an expression sees.
type activation struct{ args any }

// ResolveName implements the activation.
func (a activation) ResolveName(name string) (any, bool) { return a.args, name == "args" }

// Parent implements the activation.
func (activation) Parent() cel.Activation { return nil }

// value turns a decoded JSON value into what an expression works on. A number is
// what the schema calls it; where the schema says nothing it is an int when it is
// written as one, else a double.
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

func (s *shape) number(text string) (any, error) {
	if s.typ.Kind() == cel.DoubleKind {
		return double(text)
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if s.typ.Kind() == cel.IntKind || !strings.ContainsAny(text, ".eE") {
		// 1.0 and 1e3 are integers too, as JSON Schema sees it.
		f, err := double(text)
		if err != nil {
			return nil, err
		}
		i := int64(f)
		if float64(i) != f || f >= 1<<63 || f < -(1<<63) {
			return nil, fmt.Errorf("%s is no integer of 64 bits", text)
		}
		return i, nil
	}
	return double(text)
}

func double(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number of 64 bits", text)
	}
	return f, nil
}
