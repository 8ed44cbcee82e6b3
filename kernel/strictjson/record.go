package strictjson

import (
	"reflect"
	"strings"
	"sync"
)

// field is one JSON field of a struct type.
type field struct {
	name     string
	index    int
	required bool
}

// fieldCache remembers the fields of every struct type seen; it only memoizes.
var fieldCache sync.Map // reflect.Type -> []field

func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		if fields, ok := cached.([]field); ok {
			return fields
		}
	}
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || (name == "-" && options == "") {
			continue
		}
		if name == "" {
			name = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		fields = append(fields, field{name: name, index: i, required: !optional})
	}
	fieldCache.Store(t, fields)
	return fields
}

func (d decoder) record(node Node, v reflect.Value) *Error {
	if node.Kind != Object {
		return fault(RuleType, "must be an object")
	}
	fields := fieldsOf(v.Type())
	for i := range node.Children {
		member := &node.Children[i]
		f := find(fields, member.Key)
		if f == nil {
			if err := d.unknown(fields, member.Key); err != nil {
				return err
			}
			continue
		}
		if err := d.decode(*member, v.Field(f.index)); err != nil {
			return err.In(member.Key)
		}
	}
	for i := range fields {
		if !fields[i].required {
			continue
		}
		if _, present := node.Member(fields[i].name); !present {
			return fault(RuleRequired, "is required").In(fields[i].name)
		}
	}
	return nil
}

func (d decoder) unknown(fields []field, key string) *Error {
	for i := range fields {
		if strings.EqualFold(fields[i].name, key) {
			return fault(RuleCaseVariant, "differs only in case from a known field").In(key)
		}
	}
	if d.opts.AllowUnknown {
		return nil
	}
	return fault(RuleUnknownField, "unknown field").In(key)
}

func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}
