package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// compiled is a registered tool with everything worked out that does not depend
// on a call.
type compiled struct {
	Tool
	form *form
}

// form is what a definition compiles to; it is shared by equal definitions.
type form struct {
	input, output *jsonschema.Schema // output may be nil
	published     contract.PublishedTool
	canonical     []byte // of published
}

// maxForms bounds the cache of compiled definitions.
const maxForms = 4 * contract.MaxCatalogueTools

// forms caches compiled definitions by their content, because a per-context
// provider yields equal ones every turn.
type forms struct {
	mu     sync.Mutex
	byHash map[string]*form
}

// compile validates a tool and works out its form.
func (f *forms) compile(tool Tool) (*compiled, error) {
	if tool.Requirement == nil {
		return nil, errors.New("tool declares no requirement: there is no default authority")
	}
	if tool.Handle == nil {
		return nil, errors.New("tool has no handler")
	}
	tool.Definition = cloneDefinition(&tool.Definition)
	if err := tool.Definition.Validate(); err != nil {
		return nil, fmt.Errorf("validate definition: %w", err)
	}
	key := formKey(&tool.Definition)
	if cached := f.get(key); cached != nil {
		// The schemas are the same to the last byte: one copy will do for all turns.
		tool.Definition.InputSchema, tool.Definition.OutputSchema = cached.published.InputSchema, cached.published.OutputSchema
		return &compiled{tool, cached}, nil
	}
	fresh, err := newForm(&tool.Definition)
	if err != nil {
		return nil, err
	}
	f.put(key, fresh)
	return &compiled{tool, fresh}, nil
}

func (f *forms) get(key string) *form {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byHash[key]
}

func (f *forms) put(key string, fresh *form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byHash == nil || len(f.byHash) >= maxForms {
		f.byHash = make(map[string]*form)
	}
	f.byHash[key] = fresh
}

// formKey identifies what a form is made from: the published projection, before
// it is put into canonical form.
func formKey(d *contract.ToolDefinition) string {
	var b []byte
	for _, part := range []string{
		d.Name, d.Description, d.Namespace, d.Source, string(d.ReadWrite),
		string(d.InputSchema), string(d.OutputSchema), hints(d.Annotations),
	} {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(append(b, ':'), part...)
	}
	return canonical.HashBytes(b)
}

func hints(a *contract.ToolAnnotations) string {
	if a == nil {
		return ""
	}
	var text strings.Builder
	for _, hint := range []*bool{a.ReadOnly, a.Destructive, a.Idempotent} {
		if hint == nil {
			text.WriteString("-")
		} else {
			text.WriteString(strconv.FormatBool(*hint))
		}
	}
	return text.String()
}

func newForm(d *contract.ToolDefinition) (*form, error) {
	input, err := compileSchema(d.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("compile input schema: %w", err)
	}
	out := &form{input: input, published: contract.PublishTool(*d)}
	if len(d.OutputSchema) > 0 {
		if out.output, err = compileSchema(d.OutputSchema); err != nil {
			return nil, fmt.Errorf("compile output schema: %w", err)
		}
	}
	if out.canonical, err = canonical.Marshal(out.published); err != nil {
		return nil, fmt.Errorf("write canonical form: %w", err)
	}
	return out, nil
}

// schemaURL names the one document a schema may refer to: itself.
const schemaURL = "sharedos:schema"

// compileSchema compiles a JSON Schema (2020-12 unless it names another draft).
// References outside the schema are refused, never fetched.
func compileSchema(raw contract.Object) (*jsonschema.Schema, error) {
	node, err := strictjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	if path, ok := inexactNumber(node); ok {
		return nil, fmt.Errorf("number at %q does not survive as a 64-bit float, so its hash would be ambiguous", path)
	}
	return guarded(func() (*jsonschema.Schema, error) {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseLoader(noLoader{})
		if err := c.AddResource(schemaURL, node.Any()); err != nil {
			return nil, err
		}
		return c.Compile(schemaURL)
	})
}

// noLoader refuses to fetch.
type noLoader struct{}

// Load implements the schema compiler's loader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may refer only to itself")
}

// conforms validates a parsed value against a schema.
func conforms(schema *jsonschema.Schema, node strictjson.Node) bool {
	_, err := guarded(func() (struct{}, error) { return struct{}{}, schema.Validate(node.Any()) })
	return err == nil
}

// inexactNumber finds a number whose value a 64-bit float does not bring back.
func inexactNumber(n strictjson.Node) (string, bool) {
	if n.Kind == strictjson.Number {
		return "", !survives(n.Text)
	}
	for i := range n.Children {
		if path, found := inexactNumber(n.Children[i]); found {
			name := n.Children[i].Key
			if n.Kind == strictjson.Array {
				name = strictjson.Index(i)
			}
			return strictjson.Join(name, path), true
		}
	}
	return "", false
}

// survives reports whether printing the nearest double gives the same number back.
func survives(text string) bool {
	if len(text) <= 15 && !bytes.ContainsAny([]byte(text), "eE") {
		return true // fifteen significant digits always do
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	exact, ok := new(big.Rat).SetString(text)
	printed, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && ok2 && exact.Cmp(printed) == 0
}

// cloneDefinition copies what a provider could still change.
func cloneDefinition(d *contract.ToolDefinition) contract.ToolDefinition {
	out := *d
	out.InputSchema = bytes.Clone(d.InputSchema)
	out.OutputSchema = bytes.Clone(d.OutputSchema)
	out.Metadata = bytes.Clone(d.Metadata)
	out.RequiredCapability.Resource = cloneResource(d.RequiredCapability.Resource)
	if a := d.Annotations; a != nil {
		out.Annotations = &contract.ToolAnnotations{
			ReadOnly: clonePointer(a.ReadOnly), Destructive: clonePointer(a.Destructive), Idempotent: clonePointer(a.Idempotent),
		}
	}
	return out
}
