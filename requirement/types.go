package requirement

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// provider tells the checker which members the objects of a schema have. The
// values themselves are maps, so it makes none.
type provider struct {
	types.Provider
	objects map[string]*shape
}

// FindStructType implements the type provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if s, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(s.typ), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements the type provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	s, ok := p.objects[name]
	if !ok {
		return p.Provider.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(s.fields))
	for field := range s.fields {
		names = append(names, field)
	}
	return names, true
}

// FindStructFieldType implements the type provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s, ok := p.objects[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, field)
	}
	if f := s.fields[field]; f != nil {
		return &types.FieldType{Type: f.typ}, true
	}
	return nil, false
}

// NewValue implements the type provider.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.objects[name]; ok {
		return types.NewErr("arguments cannot be constructed")
	}
	return p.Provider.NewValue(name, fields)
}

// withArguments declares args.
func withArguments(args *shape, objects map[string]*shape) cel.EnvOption {
	return func(e *cel.Env) (*cel.Env, error) {
		e, err := cel.CustomTypeProvider(&provider{Provider: e.CELTypeProvider(), objects: objects})(e)
		if err != nil {
			return nil, err
		}
		return cel.Variable("args", args.typ)(e)
	}
}
