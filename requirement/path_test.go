package requirement_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/requirement"
)

const schema = `{
	"type": "object",
	"properties": {
		"page": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "on": {"type": "boolean"},
		"list": {"type": "array", "items": {"type": "string"}}, "nested": {"type": "object", "properties": {"id": {"type": "string"}}},
		"map": {"type": "object", "additionalProperties": {"type": "string"}}, "free": {},
		"maybe": {"type": ["string", "null"]}, "ref": {"$ref": "#/$defs/name"}, "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
		"kind": {"enum": ["a", "b"]}, "page-id": {"type": "string"}, "namespace": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"},
		"nullable": {"type": "string", "nullable": true}, "pair": {"prefixItems": [{"type": "string"}], "type": "array"}
	},
	"$defs": {"name": {"type": "string"}, "loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/loop"}}}}
}`

func arguments(tb testing.TB, raw string) kernel.Arguments {
	tb.Helper()
	args, err := kernel.ParseArguments(contract.Object(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return args
}

func TestPathOfACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, args, want string }{
		{`['pages', args.page]`, `{"page":"p1"}`, "pages/p1"},
		{`[]`, `{}`, ""},
		{`args.list`, `{"list":["a","b"]}`, "a/b"},
		{`['a'] + args.list`, `{"list":["b"]}`, "a/b"},
		{`args.page.split('/').filter(s, s != '')`, `{"page":"/data/x/"}`, "data/x"},
		{`['fs'] + args.page.segments()`, `{"page":"//data//x/"}`, "fs/data/x"},
		{`[args.page.lowerAscii()]`, `{"page":"ÄBc"}`, "Äbc"},
		{`['n', string(args.n)]`, `{"n":7}`, "n/7"},
		{`['n', string(args.n)]`, `{"n":7.0}`, "n/7"},
		{`['n', string(args.n + 1)]`, `{"n":9007199254740993}`, "n/9007199254740994"},
		{`[args.x + 0.5 > 1.0 ? 'big' : 'small']`, `{"x":1}`, "big"},
		{`[args.nested.id, args.map['k'], args.map.k]`, `{"nested":{"id":"i"},"map":{"k":"v"}}`, "i/v/v"},
		{`has(args.page) ? ['p', args.page] : ['none']`, `{}`, "none"},
		{`['m', args.maybe]`, `{"maybe":"x"}`, "m/x"},
		{`[args.maybe == null ? 'nothing' : args.maybe]`, `{"maybe":null}`, "nothing"},
		{`[args.ref, args.kind, args.free]`, `{"ref":"r","kind":"a","free":"f"}`, "r/a/f"},
		{"[args.`page-id`, args.namespace]", `{"page-id":"p","namespace":"n"}`, "p/n"},
		{`args.free`, `{"free":["a"]}`, "a"},
		{`[args.either, args.loop.next.next.next == null ? 'x' : 'y']`, `{"either":"e","loop":{"next":{"next":{"next":{}}}}}`, "e/y"},
		{`[string(args.free)]`, `{"free":2}`, "2"},
		{`[string(args.free)]`, `{"free":2.5}`, "2.5"},
	} {
		path, err := requirement.Compile(c.expression, contract.Object(schema))
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		got, err := path.Of(arguments(t, c.args))
		if err != nil || strings.Join(got, "/") != c.want {
			t.Errorf("%s of %s = %q, %v; want %q", c.expression, c.args, got, err, c.want)
		}
	}
}

func TestWrongExpressionsAreFoundWhenCompiled(t *testing.T) {
	t.Parallel()
	for expression, says := range map[string]string{
		`['pages', args.pageId]`:                        "undefined field 'pageId'",
		`['pages', args.nested.no]`:                     "undefined field 'no'",
		`['pages', args.n]`:                             "the one at 1:15 is of type int",
		`args.on ? ['a'] : ['b'] + [args.free, args.x]`: "is of type double",
		`args.page`:          "it yields string",
		`args.map`:           "it yields map",
		`[args.n]`:           "it yields list(int)",
		`args.page + args.n`: "no matching overload",
		`['a', `:             "Syntax error",
		`['a', args.page.replace('a', args.page)]`: "undeclared reference",
		`['a', other]`:                    "undeclared reference to 'other'",
		`['a'] + args.list.map(x, args.{`: "Syntax error",
		strings.Repeat("[", 60):           "",
		"'" + strings.Repeat("x", requirement.MaxExpression) + "'": "longer than",
		``: "",
	} {
		_, err := requirement.Compile(expression, contract.Object(schema))
		if !errors.Is(err, requirement.ErrExpression) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v; want ErrExpression that says %q", expression, err, says)
		}
	}
	if _, err := requirement.Compile(`['a']`, contract.Object(`{"type":`)); !errors.Is(err, requirement.ErrExpression) {
		t.Errorf("a schema that is no JSON: %v", err)
	}
}

func TestSchemasThatSayLittle(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`{}`, `{"type":"object"}`, `{"properties":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		`{"anyOf":[{"properties":{"a":{}}}]}`, `{"$ref":"#"}`, `{"$ref":"#/nowhere"}`, `{"$ref":"https://example.com/s"}`, `{"type":"object","patternProperties":{"^a":{"type":"string"}}}`,
		`{"type":["object"],"additionalProperties":{"type":"string"}}`, `{"type":"object","nullable":true,"properties":{"a":{"type":"string"}}}`,
	} {
		path, err := requirement.Compile(`['x', args.a]`, contract.Object(s))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got, err := path.Of(arguments(t, `{"a":"b"}`)); err != nil || !slices.Equal(got, []string{"x", "b"}) {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
}

func TestWhatAnArgumentCannotDo(t *testing.T) {
	t.Parallel()
	many, err := json.Marshal(map[string]any{"list": slices.Repeat([]string{"a"}, 3000)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ expression, args string }{
		"missing":            {`['a', args.page]`, `{}`},
		"climbs by segments": {`args.page.segments()`, `{"page":"a/../b"}`},
		"climbs":             {`['a'] + args.page.split('/')`, `{"page":"../b"}`},
		"separator":          {`['a', args.page]`, `{"page":"b/c"}`},
		"empty segment":      {`['a', args.page]`, `{"page":""}`},
		"no string":          {`['a', args.free]`, `{"free":1}`},
		"no list":            {`args.free`, `{"free":{"a":1}}`},
		"null":               {`args.free`, `{"free":null}`},
		"too many segments":  {`args.list`, string(many)},
		"costs too much":     {`args.list.map(x, args.list.exists(y, y == 'b') ? x : 'c')`, string(many)},
		"too long a segment": {`[args.page]`, `{"page":"` + strings.Repeat("x", 300) + `"}`},
		"no integer":         {`[string(args.n)]`, `{"n":1e300}`},
		"a fraction":         {`[string(args.n)]`, `{"n":1.5}`},
		"by zero":            {`[string(1 / args.n)]`, `{"n":0}`},
		"splits by nothing":  {`args.page.split(args.page)`, `{"page":""}`},
	} {
		path, err := requirement.Compile(c.expression, contract.Object(schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := path.Of(arguments(t, c.args)); err == nil {
			t.Errorf("%s: %q, want an error", name, got)
		}
	}
}

// FuzzPath: whatever expression and arguments, the outcome is an error or a valid path.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{`['pages', args.page]`, `args.list`, `args.page.split('/').filter(s, s != '')`, `[string(args.n)]`, `[args.free.a.b]`} {
		f.Add(seed, `{"page":"a/../b","list":["x"],"n":1e2,"free":{"a":{"b":"c"}}}`)
	}
	f.Fuzz(func(t *testing.T, expression, raw string) {
		path, err := requirement.Compile(expression, contract.Object(schema))
		if err != nil {
			return
		}
		args, err := kernel.ParseArguments(contract.Object(raw))
		if err != nil {
			return
		}
		got, err := path.Of(args)
		if err != nil {
			return
		}
		ref := contract.ResourceRef{Namespace: "n", Path: got}
		if err := ref.Validate(); err != nil {
			t.Errorf("%s of %s is no path: %v", expression, raw, err)
		}
	})
}

func BenchmarkPath(b *testing.B) {
	for name, c := range map[string]struct{ expression, args string }{
		"constant": {`['pages']`, `{"page":"p"}`},
		"member":   {`['pages', args.page]`, `{"page":"p1","n":3}`},
		"segments": {`args.page.segments()`, `{"page":"/data/work/atlas/status.md"}`},
	} {
		b.Run(name, func(b *testing.B) {
			path, err := requirement.Compile(c.expression, contract.Object(schema))
			if err != nil {
				b.Fatal(err)
			}
			args := arguments(b, c.args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := path.Of(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
