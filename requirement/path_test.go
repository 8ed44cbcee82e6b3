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
		{`[string(args.free)]`, `{"free":-0.10e1}`, "-1"},
		{`['n', string(args.n)]`, `{"n":9007199254740993.0}`, "n/9007199254740993"},
		{`['n', string(args.n)]`, `{"n":-922337203685477580800e-2}`, "n/-9223372036854775808"},
		{`['n', string(args.n)]`, `{"n":-0.0}`, "n/0"},
		{`['n', string(args.n)]`, `{"n":0e300}`, "n/0"},
		{`args.page.matches('^[a-z]+$') ? ['lower', args.page] : ['other']`, `{"page":"abc"}`, "lower/abc"},
		{`matches(args.page, '^[a-z]+$') ? ['lower'] : ['other']`, `{"page":"Abc"}`, "other"},
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
		`['pages', args.pageId]`:                                        "undefined field 'pageId'",
		`['pages', args.nested.no]`:                                     "undefined field 'no'",
		`['pages', args.n]`:                                             "the one at 1:15 is of type int",
		`args.on ? ['a'] : ['b'] + [args.free, args.x]`:                 "is of type double",
		`args.page.matches(args.page) ? ['a'] : ['b']`:                  "must be written as a literal",
		`matches(args.page, 'a' + args.page) ? ['a'] : ['b']`:           "must be written as a literal",
		`args.list.filter(x, x.matches(x))`:                             "the pattern of matches at 1:31",
		`args.page.matches('(') ? ['a'] : ['b']`:                        "missing closing )",
		`args.page.matches('(((a{0,10}){0,10}){0,9})') ? ['a'] : ['b']`: "it is too large",
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
		"rounded as double":  {`[string(args.x)]`, `{"x":9007199254740993}`},
		"rounded":            {`[string(args.free)]`, `{"free":0.10000000000000000001}`},
		"nearly an integer":  {`[string(args.n)]`, `{"n":0.99999999999999999999}`},
		"beyond 64 bits":     {`[string(args.n)]`, `{"n":9223372036854775808.0}`},
		"a tiny number":      {`[string(args.n)]`, `{"n":1e-300}`},
		"matches too much":   {`args.page.matches('a$') ? ['a'] : ['b']`, `{"page":"` + strings.Repeat("x", requirement.MaxMatchedText+1) + `"}`},
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

// TestTheLimitHoldsForAllSizes: where arguments are so small that nothing needs to be
// counted, the outcome is the same as where it is, and larger ones are counted.
func TestTheLimitHoldsForAllSizes(t *testing.T) {
	t.Parallel()
	const loop = `['n'] + (args.list.all(x, args.list.exists(y, x + y == 'zz')) ? ['all'] : args.page.segments().filter(s, s != 'x'))`
	for _, expression := range []string{loop, `args.list.filter(x, x != '')`, `args.list.map(x, x.split('b')).all(l, l.size() < 9) ? ['few'] : ['many']`} {
		path, err := requirement.Compile(expression, contract.Object(schema))
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		failed := 0
		for size := 1; size < 1<<15; size *= 2 {
			raw, err := json.Marshal(map[string]any{"page": "a/x", "list": slices.Repeat([]string{"zab"}, size)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = path.Of(arguments(t, string(raw)))
			switch {
			case err == nil && failed > 0:
				t.Errorf("%s: passes with %d after failing with fewer", expression, size)
			case err != nil && (strings.Contains(err.Error(), "cost limit") || strings.Contains(err.Error(), "segments")):
				failed++
			case err != nil:
				t.Errorf("%s with %d: %v", expression, size, err)
			}
		}
		if failed == 0 {
			t.Errorf("%s: no size is too much", expression)
		}
	}
}

// FuzzPath: whatever expression and arguments, the outcome is an error or a valid path.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{`['pages', args.page]`, `args.list`, `args.page.split('/').filter(s, s != '')`, `[string(args.n)]`, `[args.free.a.b]`,
		`args.list.filter(x, x.matches('^a+$'))`, `args.list.map(x, args.list.exists(y, y == x) ? x : 'c')`, `args.page.split('/').map(s, s + s + s)`} {
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
		if counted, failed := path.Counted().Of(args); !slices.Equal(got, counted) || (err == nil) != (failed == nil) {
			t.Errorf("%s of %s is %q, %v; and when it is counted %q, %v", expression, raw, got, err, counted, failed)
		}
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
