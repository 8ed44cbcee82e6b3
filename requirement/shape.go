package requirement

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// shape is what a schema says about a value, as far as a type checker can use it.
// Whatever a schema leaves open is dynamic: its faults show when it is evaluated.
type shape struct {
	typ    *cel.Type
	fields map[string]*shape // of an object with known members
	elem   *shape            // of a list, or of a map's values
}

// maxShapeDepth bounds how deep types are followed; what is below is dynamic.
const maxShapeDepth = 16

var dynamic = &shape{typ: cel.DynType}

// shapes makes shapes out of one schema document and remembers its object types.
type shapes struct {
	root    strictjson.Node
	objects map[string]*shape // by CEL type name
}

// arguments is the shape of the whole: arguments are an object, whatever the schema
// leaves out.
func (s *shapes) arguments() *shape {
	out := s.of(s.root, 0, true)
	if out.typ.Kind() == cel.StructKind || out.typ.Kind() == cel.MapKind {
		return out
	}
	return &shape{typ: cel.MapType(cel.StringType, cel.DynType), elem: dynamic}
}

// branching are keywords by which a schema says more than one thing about a value.
var branching = []string{
	"anyOf", "oneOf", "allOf", "if", "not", "dependentSchemas", "$dynamicRef", "$recursiveRef", "unevaluatedProperties",
}

// describing are keywords that say nothing about a value.
var describing = []string{"title", "description", "default", "examples", "deprecated", "$comment", "readOnly", "writeOnly"}

func (s *shapes) of(schema strictjson.Node, depth int, isObject bool) *shape {
	if schema.Kind != strictjson.Object || depth > maxShapeDepth {
		return dynamic
	}
	if slices.ContainsFunc(branching, func(k string) bool { _, ok := schema.Member(k); return ok }) || truth(schema, "nullable") {
		return dynamic
	}
	if ref, ok := schema.Member("$ref"); ok {
		target, found := s.resolve(ref.Text)
		if !found || !alone(schema, "$ref") {
			return dynamic
		}
		return s.of(target, depth+1, isObject)
	}
	switch s.typeName(schema, isObject) {
	case "string":
		return &shape{typ: cel.StringType}
	case "integer":
		return &shape{typ: cel.IntType}
	case "number":
		return &shape{typ: cel.DoubleType}
	case "boolean":
		return &shape{typ: cel.BoolType}
	case "array":
		return s.list(schema, depth)
	case "object":
		return s.object(schema, depth)
	default:
		return dynamic
	}
}

// typeName is the one JSON type that a value of the schema has, or nothing.
func (*shapes) typeName(schema strictjson.Node, isObject bool) string {
	t, ok := schema.Member("type")
	switch {
	case ok && t.Kind == strictjson.String:
		return t.Text
	case ok && t.Kind == strictjson.Array && len(t.Children) == 1:
		return t.Children[0].Text
	case ok:
		return ""
	case isObject:
		return "object"
	}
	values, _ := schema.Member("enum")
	if c, ok := schema.Member("const"); ok {
		values.Children = []strictjson.Node{c}
	}
	if len(values.Children) > 0 && !slices.ContainsFunc(values.Children, func(n strictjson.Node) bool { return n.Kind != strictjson.String }) {
		return "string"
	}
	return ""
}

func (s *shapes) list(schema strictjson.Node, depth int) *shape {
	elem := dynamic
	_, tuple := schema.Member("prefixItems")
	if items, ok := schema.Member("items"); ok && !tuple {
		elem = s.of(items, depth+1, false)
	}
	return &shape{typ: cel.ListType(elem.typ), elem: elem}
}

func (s *shapes) object(schema strictjson.Node, depth int) *shape {
	properties, has := schema.Member("properties")
	_, patterns := schema.Member("patternProperties")
	if has && properties.Kind == strictjson.Object && !patterns {
		name := "args"
		if len(s.objects) > 0 {
			name += "." + strconv.Itoa(len(s.objects))
		}
		out := &shape{typ: cel.ObjectType(name), fields: map[string]*shape{}}
		s.objects[name] = out
		for i := range properties.Children {
			out.fields[properties.Children[i].Key] = s.of(properties.Children[i], depth+1, false)
		}
		return out
	}
	elem := dynamic
	if more, ok := schema.Member("additionalProperties"); ok && !has && !patterns {
		elem = s.of(more, depth+1, false)
	}
	return &shape{typ: cel.MapType(cel.StringType, elem.typ), elem: elem}
}

// resolve follows a reference within the document.
func (s *shapes) resolve(ref string) (strictjson.Node, bool) {
	if ref == "#" {
		return s.root, true
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return strictjson.Node{}, false
	}
	at := s.root
	for token := range strings.SplitSeq(pointer, "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if at, ok = at.Member(token); !ok {
			return strictjson.Node{}, false
		}
	}
	return at, true
}

// alone reports whether a schema says nothing but the keyword.
func alone(schema strictjson.Node, keyword string) bool {
	for i := range schema.Children {
		key := schema.Children[i].Key
		if key != keyword && key != "$defs" && key != "definitions" && key != "$schema" && !slices.Contains(describing, key) {
			return false
		}
	}
	return true
}

func truth(schema strictjson.Node, key string) bool {
	n, ok := schema.Member(key)
	return ok && n.Kind == strictjson.Bool && n.Raw[0] == 't'
}
