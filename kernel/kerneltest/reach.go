package kerneltest

import "reflect"

// typeName is the name of a value's type; a pointer to an interface stands for it.
func typeName(v any) string { return handed(v).String() }

func handed(v any) reflect.Type {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Interface {
		return t.Elem()
	}
	return t
}

// wayTo searches everything that code holding a value can get to without unsafe:
// exported fields, elements, and the results of exported methods. It returns the
// first way to one of the targets' types, or nothing.
func wayTo(v any, targets ...any) string {
	forbidden := make(map[reflect.Type]bool, len(targets))
	for _, target := range targets {
		forbidden[reflect.TypeOf(target)] = true
	}
	return search(handed(v), forbidden, make(map[reflect.Type]bool), handed(v).String())
}

func search(t reflect.Type, forbidden, seen map[reflect.Type]bool, path string) string {
	if forbidden[t] {
		return path
	}
	if seen[t] {
		return ""
	}
	seen[t] = true
	for m := range t.Methods() {
		for out := range m.Type.Outs() {
			if way := search(out, forbidden, seen, path+"."+m.Name+"()"); way != "" {
				return way
			}
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan, reflect.Map:
		return search(t.Elem(), forbidden, seen, path+"[]")
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				if way := search(f.Type, forbidden, seen, path+"."+f.Name); way != "" {
					return way
				}
			}
		}
	case reflect.Func:
		for out := range t.Outs() {
			if way := search(out, forbidden, seen, path+"()"); way != "" {
				return way
			}
		}
	default:
	}
	return ""
}
