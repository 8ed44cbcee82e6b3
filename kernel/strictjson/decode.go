package strictjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strconv"
)

// Options adjust [Unmarshal]. The zero value is the strictest.
type Options struct {
	// AllowUnknown accepts fields that the type does not name. A key that differs
	// from a named one only in case is refused all the same.
	AllowUnknown bool
}

// Unmarshal decodes one strict document into v, a non-nil pointer. A struct field
// whose tag has neither omitempty nor omitzero must be present. JSON null is
// refused except in a [json.RawMessage] or an any. Errors are of type [*Error].
func Unmarshal(data []byte, v any, opts Options) error {
	node, err := Parse(data)
	if err != nil {
		return err
	}
	return Decode(node, v, opts)
}

// Decode is [Unmarshal] of a document that was parsed before.
func Decode(node Node, v any, opts Options) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fault(RuleType, "target must be a non-nil pointer")
	}
	if err := (decoder{opts}).decode(node, target.Elem()); err != nil {
		return err
	}
	return nil
}

// Any returns the node as plain Go values: nil, bool, [json.Number], string,
// []any and map[string]any. Nothing of it aliases the document.
func (n Node) Any() any {
	switch n.Kind {
	case Bool:
		return n.Raw[0] == 't'
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case Array:
		out := make([]any, len(n.Children))
		for i := range n.Children {
			out[i] = n.Children[i].Any()
		}
		return out
	case Object:
		out := make(map[string]any, len(n.Children))
		for i := range n.Children {
			out[n.Children[i].Key] = n.Children[i].Any()
		}
		return out
	default:
		return nil
	}
}

// Member returns an object's member and whether it is there.
func (n Node) Member(key string) (Node, bool) {
	for i := range n.Children {
		if n.Kind == Object && n.Children[i].Key == key {
			return n.Children[i], true
		}
	}
	return Node{}, false
}

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	numberType      = reflect.TypeFor[json.Number]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

type decoder struct{ opts Options }

func (d decoder) decode(node Node, v reflect.Value) *Error {
	t := v.Type()
	switch {
	case t == rawType:
		v.SetBytes(bytes.Clone(node.Raw))
		return nil
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		if node.Kind != Null {
			v.Set(reflect.ValueOf(node.Any()))
		}
		return nil
	case node.Kind == Null:
		return fault(RuleNull, "null is not a value here")
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return d.decode(node, v.Elem())
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return d.custom(node, v)
	case t == numberType:
		if node.Kind != Number {
			return fault(RuleType, "must be a number")
		}
		v.SetString(node.Text)
		return nil
	}
	return d.plain(node, v)
}

func (d decoder) custom(node Node, v reflect.Value) *Error {
	u, ok := reflect.TypeAssert[json.Unmarshaler](v.Addr())
	if !ok {
		return fault(RuleType, "cannot be decoded")
	}
	if err := u.UnmarshalJSON(node.Raw); err != nil {
		if inner, ok := errors.AsType[*Error](err); ok {
			return inner
		}
		return fault(RuleType, err.Error())
	}
	return nil
}

func (d decoder) plain(node Node, v reflect.Value) *Error {
	switch v.Kind() {
	case reflect.String:
		if node.Kind != String {
			return fault(RuleType, "must be a string")
		}
		v.SetString(node.Text)
	case reflect.Bool:
		if node.Kind != Bool {
			return fault(RuleType, "must be a boolean")
		}
		v.SetBool(node.Raw[0] == 't')
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt(node, v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return decodeBytes(node, v)
		}
		return d.list(node, v)
	case reflect.Map:
		return d.table(node, v)
	case reflect.Struct:
		return d.record(node, v)
	default:
		return fault(RuleType, "cannot be decoded")
	}
	return nil
}

// decodeBytes reads bytes as encoding/json writes them: padded base64 (RFC 4648).
func decodeBytes(node Node, v reflect.Value) *Error {
	if node.Kind != String {
		return fault(RuleType, "must be a base64 string")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(node.Text)
	if err != nil {
		return fault(RuleType, "must be a base64 string")
	}
	v.SetBytes(raw)
	return nil
}

func decodeInt(node Node, v reflect.Value) *Error {
	if node.Kind != Number {
		return fault(RuleType, "must be an integer")
	}
	n, err := strconv.ParseInt(node.Text, 10, 64)
	if err != nil {
		// 16.0 and 1e3 are integers too, as they are in JSON Schema.
		r, ok := new(big.Rat).SetString(node.Text)
		if !ok || !r.IsInt() || !r.Num().IsInt64() {
			return fault(RuleType, "must be an integer")
		}
		n = r.Num().Int64()
	}
	if v.OverflowInt(n) {
		return fault(RuleNumber, "integer out of range")
	}
	v.SetInt(n)
	return nil
}

func (d decoder) list(node Node, v reflect.Value) *Error {
	if node.Kind != Array {
		return fault(RuleType, "must be an array")
	}
	out := reflect.MakeSlice(v.Type(), len(node.Children), len(node.Children))
	for i := range node.Children {
		if err := d.decode(node.Children[i], out.Index(i)); err != nil {
			return err.In(Index(i))
		}
	}
	v.Set(out)
	return nil
}

func (d decoder) table(node Node, v reflect.Value) *Error {
	if node.Kind != Object || v.Type().Key().Kind() != reflect.String {
		return fault(RuleType, "must be an object")
	}
	out := reflect.MakeMapWithSize(v.Type(), len(node.Children))
	for i := range node.Children {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := d.decode(node.Children[i], value); err != nil {
			return err.In(node.Children[i].Key)
		}
		out.SetMapIndex(reflect.ValueOf(node.Children[i].Key).Convert(v.Type().Key()), value)
	}
	v.Set(out)
	return nil
}
