package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"sigs.k8s.io/yaml"

	"github.com/sharedos-dev/operator/config/crd"
)

// schemas are what the resource definitions say about each kind.
type schemas struct {
	byKind map[string]definition
	rules  *compiler
}

type definition struct {
	schema *jsonschema.Schema
	rules  *ruled
}

// newSchemas compiles the definitions that this program was built with.
func newSchemas() (*schemas, error) {
	rules, err := newCompiler()
	if err != nil {
		return nil, err
	}
	s := &schemas{byKind: map[string]definition{}, rules: rules}
	err = fs.WalkDir(crd.Files(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(crd.Files(), path)
		if err != nil {
			return err
		}
		return s.add(path, data)
	})
	if err != nil {
		return nil, fmt.Errorf("read resource definitions: %w", err)
	}
	return s, nil
}

func (s *schemas) add(path string, data []byte) error {
	var file struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, version := range file.Spec.Versions {
		raw := version.Schema.OpenAPIV3Schema
		closeObjects(raw)
		compiler := jsonschema.NewCompiler()
		name := "mem:///" + file.Spec.Names.Kind
		if err := compiler.AddResource(name, raw); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		compiled, err := compiler.Compile(name)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.byKind[file.Spec.Names.Kind+"/"+version.Name] = definition{compiled, s.rules.compile(raw)}
	}
	return nil
}

// closeObjects refuses members that a schema does not list, which the API server
// warns of and drops.
func closeObjects(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		_, lists := schema["properties"].(map[string]any)
		_, more := schema["additionalProperties"]
		if open, _ := schema["x-kubernetes-preserve-unknown-fields"].(bool); lists && !more && !open {
			schema["additionalProperties"] = false
		}
		for _, inner := range schema {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range schema {
			closeObjects(inner)
		}
	}
}

// check says where a document differs from its kind's schema.
func (s *schemas) check(d *Document) Faults {
	_, version, _ := strings.Cut(d.APIVersion, "/")
	definition, known := s.byKind[d.Kind+"/"+version]
	if !known {
		return Faults{{d.At("kind"), fmt.Sprintf("%s has no kind %q", d.APIVersion, d.Kind)}}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(d.JSON)))
	if err != nil {
		return Faults{{d.Position, err.Error()}}
	}
	if err = definition.schema.Validate(value); err == nil {
		return definition.rules.check(d)
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return Faults{{d.Position, err.Error()}}
	}
	return leaves(d, invalid, nil)
}

// leaves are the causes that have no cause themselves.
func leaves(d *Document, e *jsonschema.ValidationError, found Faults) Faults {
	for _, cause := range e.Causes {
		found = leaves(d, cause, found)
	}
	if len(e.Causes) > 0 {
		return found
	}
	path := e.InstanceLocation
	if unknown, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range unknown.Properties {
			at := append(slices.Clone(path), name)
			found = append(found, Fault{d.at(at), dotted(at) + ": there is no such field"})
		}
		return found
	}
	text := "the value is not valid"
	if said := e.BasicOutput().Error; said != nil {
		text = said.String()
	}
	if len(path) > 0 {
		text = dotted(path) + ": " + text
	}
	return append(found, Fault{d.at(path), text})
}

// dotted writes a path as Kubernetes does.
func dotted(path []string) string {
	var b strings.Builder
	for _, token := range path {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() == 0:
			b.WriteString(token)
		default:
			b.WriteString("." + token)
		}
	}
	return b.String()
}
