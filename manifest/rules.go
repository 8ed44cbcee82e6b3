package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// ruled is a schema's rules and those of what it holds.
type ruled struct {
	rules      []rule
	properties map[string]*ruled
	items      *ruled
	additional *ruled
}

// rule is one x-kubernetes-validations entry.
type rule struct {
	program cel.Program
	message string
	field   []string
}

// compiler compiles rules. Expressions that use what only the API server has, such
// as isCIDR, and those about a change, are left to it.
type compiler struct {
	env   *cel.Env
	known map[string]cel.Program
}

func newCompiler() (*compiler, error) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), ext.Strings(), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, fmt.Errorf("set up rules: %w", err)
	}
	return &compiler{env: env, known: map[string]cel.Program{}}, nil
}

// compile collects the rules of a schema; nil when it has none.
func (c *compiler) compile(schema map[string]any) *ruled {
	out := &ruled{rules: c.rulesOf(schema)}
	properties, _ := schema["properties"].(map[string]any)
	for name, inner := range properties {
		if compiled := c.inner(inner); compiled != nil {
			if out.properties == nil {
				out.properties = map[string]*ruled{}
			}
			out.properties[name] = compiled
		}
	}
	out.items, out.additional = c.inner(schema["items"]), c.inner(schema["additionalProperties"])
	if len(out.rules) == 0 && out.properties == nil && out.items == nil && out.additional == nil {
		return nil
	}
	return out
}

func (c *compiler) inner(schema any) *ruled {
	if object, ok := schema.(map[string]any); ok {
		return c.compile(object)
	}
	return nil
}

func (c *compiler) rulesOf(schema map[string]any) []rule {
	entries, _ := schema["x-kubernetes-validations"].([]any)
	var out []rule
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		expression, _ := fields["rule"].(string)
		program := c.program(expression)
		if program == nil {
			continue
		}
		message, _ := fields["message"].(string)
		if message == "" {
			message = "does not hold: " + expression
		}
		path, _ := fields["fieldPath"].(string)
		out = append(out, rule{program, message, split(path)})
	}
	return out
}

// program compiles an expression once; nil when it cannot be evaluated here.
func (c *compiler) program(expression string) cel.Program {
	if program, ok := c.known[expression]; ok {
		return program
	}
	var program cel.Program
	if !strings.Contains(expression, "oldSelf") {
		if ast, issues := c.env.Compile(expression); issues.Err() == nil {
			if p, err := c.env.Program(ast, cel.CostLimit(1_000_000)); err == nil {
				program = p
			}
		}
	}
	c.known[expression] = program
	return program
}

// check evaluates all rules on a document that fits its schema.
func (r *ruled) check(d *Document) Faults {
	var value map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(d.JSON)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return Faults{{d.Position, err.Error()}}
	}
	return r.walk(d, plain(value), nil, nil)
}

func (r *ruled) walk(d *Document, value any, path []string, found Faults) Faults {
	if r == nil || value == nil {
		return found
	}
	for i := range r.rules {
		rule := &r.rules[i]
		result, _, err := rule.program.Eval(map[string]any{"self": value})
		if err == nil && result.Value() == true {
			continue
		}
		at := slices.Concat(path, rule.field)
		text := rule.message
		if len(at) > 0 {
			text = dotted(at) + ": " + text
		}
		found = append(found, Fault{d.at(at), text})
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			inner := r.additional
			if named, ok := r.properties[name]; ok {
				inner = named
			}
			found = inner.walk(d, member, append(slices.Clone(path), name), found)
		}
	case []any:
		for i, item := range value {
			found = r.items.walk(d, item, append(slices.Clone(path), strconv.Itoa(i)), found)
		}
	}
	return found
}

// plain turns numbers into those that expressions know.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if i, err := value.Int64(); err == nil {
			return i
		}
		f, err := value.Float64()
		if err != nil {
			return math.NaN()
		}
		return f
	case map[string]any:
		for name, member := range value {
			value[name] = plain(member)
		}
	case []any:
		for i, item := range value {
			value[i] = plain(item)
		}
	}
	return value
}
