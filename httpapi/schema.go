package httpapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// schema is one JSON Schema, whose members are written in the order of their names.
type schema = map[string]any

// schemas collects the named schemas that the routes need. Structure comes from the
// contract's types, limits from the rules beside it; a field that has neither a rule
// nor a type of its own is an error, so that a new field is not documented as less
// than it is.
type schemas struct {
	named map[string]schema
	used  map[string]bool
	err   error
}

func newSchemas() *schemas {
	return &schemas{named: make(map[string]schema), used: make(map[string]bool)}
}

var (
	timestampType = reflect.TypeFor[contract.Timestamp]()
	addressType   = reflect.TypeFor[contract.Address]()
	pathType      = reflect.TypeFor[contract.Path]()
	rawType       = reflect.TypeFor[contract.Value]()
)

// of returns the schema of a type; where is the field it belongs to.
func (s *schemas) of(t reflect.Type, where string) schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case timestampType:
		return schema{"type": "string", "format": "date-time"}
	case addressType:
		return s.refer("Address", addressSchema)
	case pathType:
		return s.refer("Path", pathSchema)
	case rawType:
		return s.raw(where)
	}
	if t.Kind() == reflect.Struct {
		return s.refer(title(t.Name()), func() schema { return s.record(t) })
	}
	rule, ok := fieldRules()[where]
	if !ok {
		s.fail("%s has no rule", where)
		return schema{}
	}
	s.used[where] = true
	out := rule()
	if t.Kind() == reflect.Slice && out["items"] == nil {
		out["type"], out["items"] = "array", s.of(t.Elem(), where+"[]")
	}
	return out
}

// raw is a field of raw JSON: an object, unless the rules say any value.
func (s *schemas) raw(where string) schema {
	if anyValue(where) {
		s.used[where] = true
		return schema{}
	}
	return schema{"type": "object", "additionalProperties": true}
}

// refer returns a reference to a named schema, which make builds the first time.
func (s *schemas) refer(name string, build func() schema) schema {
	if _, known := s.named[name]; !known {
		s.named[name] = nil // a type that refers to itself finds its name
		s.named[name] = build()
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) record(t reflect.Type) schema {
	properties := schema{}
	required := []string{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		properties[name] = s.of(field.Type, t.Name()+"."+name)
		if options != "omitempty" && options != "omitzero" {
			required = append(required, name)
		}
	}
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	maps.Copy(out, recordRules()[t.Name()])
	return out
}

func (s *schemas) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// unused returns the rules that no field used.
func (s *schemas) unused() []string {
	var out []string
	for where := range fieldRules() {
		if !s.used[where] {
			out = append(out, where)
		}
	}
	slices.Sort(out)
	return out
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// addressSchema is the tagged union of the four kinds.
func addressSchema() schema {
	variant := func(kind contract.AddressKind, id string) schema {
		return schema{
			"type": "object", "additionalProperties": false, "required": []string{"kind", id},
			"properties": schema{"kind": schema{"type": "string", "const": string(kind)}, id: identifier()},
		}
	}
	return schema{"oneOf": []schema{
		variant(contract.KindHuman, "userId"), variant(contract.KindAgent, "agentId"),
		variant(contract.KindGroup, "conversationId"), variant(contract.KindService, "serviceId"),
	}}
}

func pathSchema() schema {
	return schema{
		"type": "array", "maxItems": contract.MaxPathSegments,
		"items": schema{
			"type": "string", "minLength": 1, "maxLength": contract.MaxSegment,
			"pattern": `^[^/\\\x00-\x1f\x7f]+$`, "not": schema{"enum": []string{".", ".."}},
			"description": "One segment: no separator, no control character, no white space at either end, not . or ..",
		},
		"description": "Segment by segment; an empty path is the root.",
	}
}

func text(limit int) schema {
	return schema{"type": "string", "minLength": 1, "maxLength": limit}
}

func identifier() schema { return text(contract.MaxIdentifier) }
