package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

func ruleOf(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return e.Rule
	}
	return ""
}

func pathOf(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return e.Path
	}
	return ""
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, rule, path string }{
		{`{}`, "", ""}, {` [ 1 , 2 ] `, "", ""}, {`"\u00e9\ud83d\ude00\n"`, "", ""}, {`-0.5e-3`, "", ""}, {`null`, "", ""},
		{`"` + "\u2028" + `"`, "", ""}, {`{"a":{"a":1}}`, "", ""}, {`1234567890123456789012345`, "", ""}, {`1e-400`, "", ""},
		{``, "syntax", ""}, {`{`, "syntax", ""}, {`[1,]`, "syntax", "[1]"}, {`{"a":1,}`, "syntax", ""}, {`{a:1}`, "syntax", ""}, {`{"a" 1}`, "syntax", ""},
		{`[1 2]`, "syntax", ""}, {`01`, "trailing_data", ""}, {`-`, "syntax", ""}, {`1.`, "syntax", ""}, {`1e`, "syntax", ""}, {`+1`, "syntax", ""}, {`.5`, "syntax", ""},
		{`tru`, "syntax", ""}, {`nul`, "syntax", ""}, {`falsy`, "syntax", ""}, {`NaN`, "syntax", ""}, {`'a'`, "syntax", ""}, {`"a`, "syntax", ""}, {`"\`, "syntax", ""},
		{`"\x"`, "syntax", ""}, {`"\u12"`, "syntax", ""}, {`"\u12g4"`, "syntax", ""}, {"\"a\nb\"", "syntax", ""}, {"\"\\n\n\"", "syntax", ""}, {`"\na`, "syntax", ""}, {"\ufeff{}", "syntax", ""},
		{`{} {}`, "trailing_data", ""}, {`1 x`, "trailing_data", ""},
		{`{"a":1,"a":2}`, "duplicate_key", ""}, {`{"a":1,"\u0061":2}`, "duplicate_key", ""}, {`{"x":[{"b":1,"b":1}]}`, "duplicate_key", "x[0]"},
		{"\"\xff\"", "utf8", ""}, {`"\ud800"`, "utf8", ""}, {`"\udc00\ud800"`, "utf8", ""}, {`"\ud800\u0041"`, "utf8", ""}, {`{"\ud800":1}`, "utf8", ""}, {`"\ud800\uzz"`, "syntax", ""},
		{`1e400`, "number_range", ""}, {`-1e309`, "number_range", ""}, {`1e99999`, "number_range", ""}, {`1e-1025`, "number_range", ""}, {strings.Repeat("9", 400), "number_range", ""}, {"0." + strings.Repeat("1", 2000), "number_range", ""},
		{strings.Repeat("[", 129) + strings.Repeat("]", 129), "depth", strings.Repeat("[0]", 128)},
		{strings.Repeat(`{"a":`, 129), "depth", strings.TrimSuffix(strings.Repeat("a.", 128), ".")},
		{strings.Repeat("[", 128) + strings.Repeat("]", 128), "", ""},
	}
	for _, tt := range tests {
		err := strictjson.Check([]byte(tt.in))
		if got := ruleOf(err); got != tt.rule || pathOf(err) != tt.path {
			t.Errorf("Check(%.40q) = %v, want rule %q at %q", tt.in, err, tt.rule, tt.path)
		}
		if tt.rule == "" && !json.Valid([]byte(tt.in)) {
			t.Errorf("accepted %.40q, which is not JSON", tt.in)
		}
	}
}

func TestManyKeysAreCheckedForDuplicatesToo(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{`)
	for i := range 40 {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	if err := strictjson.Check([]byte(b.String() + `"last":1}`)); err != nil {
		t.Errorf("distinct keys: %v", err)
	}
	for _, key := range []string{"k", "kxxxxx", "k" + strings.Repeat("x", 39)} {
		if got := ruleOf(strictjson.Check([]byte(b.String() + `"` + key + `":1}`))); got != "duplicate_key" {
			t.Errorf("repeated %q: rule %q", key, got)
		}
	}
}

type inner struct {
	Path  []string         `json:"path"`
	Count int              `json:"count,omitempty"`
	Small int8             `json:"small,omitempty"`
	Table map[string]int64 `json:"table,omitempty"`
}

type outer struct {
	ID      string          `json:"id"`
	Inner   *inner          `json:"inner,omitempty"`
	List    []inner         `json:"list,omitzero"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Any     any             `json:"any,omitempty"`
	Number  json.Number     `json:"number,omitempty"`
	Flag    bool            `json:"flag,omitempty"`
	Custom  *custom         `json:"custom,omitempty"`
	Plain   string          `json:",omitempty"`
	Ignored string          `json:"-"`
	Bytes   []byte          `json:"bytes,omitempty"`
	hidden  string
	Float   float64 `json:"float,omitempty"`
}

type custom struct{ text string }

func (c *custom) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"bad"`:
		return errors.New("bad word")
	case `"typed"`:
		return &strictjson.Error{Path: "deep", Rule: "value", Detail: "typed"}
	}
	c.text = string(data)
	return nil
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	var got outer
	in := `{"id":"x","inner":{"path":["a"],"count":16.0,"table":{"k":9007199254740993}},"list":[],"raw":{ "A":1,"a":12345678901234567890 },` +
		`"any":[1.50,"s",null,true,{"k":[]}],"number":1e3,"flag":true,"custom":"ok","Plain":"p","bytes":"AP8="}`
	if err := strictjson.Unmarshal([]byte(in), &got, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	want := outer{
		ID: "x", Inner: &inner{Path: []string{"a"}, Count: 16, Table: map[string]int64{"k": 9007199254740993}}, List: []inner{},
		Raw: json.RawMessage(`{ "A":1,"a":12345678901234567890 }`),
		Any: []any{json.Number("1.50"), "s", nil, true, map[string]any{"k": []any{}}}, Number: "1e3", Flag: true, Custom: &custom{`"ok"`}, Plain: "p", Bytes: []byte{0, 255},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outer{}, custom{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, rule, path string }{
		{`[]`, "type", ""}, {`{}`, "required", "id"}, {`{"id":null}`, "null", "id"}, {`{"id":1}`, "type", "id"}, {`{"id":"x","nope":1}`, "unknown_field", "nope"},
		{`{"ID":"x"}`, "case_variant", "ID"}, {`{"id":"x","Raw":1}`, "case_variant", "Raw"}, {`{"id":"x","id":"y"}`, "duplicate_key", ""},
		{`{"id":"x","inner":{"path":[],"\u212aount":1}}`, "unknown_field", "inner.\u212aount"}, {`{"id":"x","in\u017fer":1}`, "unknown_field", "inſer"}, {`{"id":"x","li\u017ft":[]}`, "case_variant", "liſt"},
		{`{"id":"x","inner":{}}`, "required", "inner.path"}, {`{"id":"x","inner":null}`, "null", "inner"}, {`{"id":"x","inner":{"path":null}}`, "null", "inner.path"},
		{`{"id":"x","inner":{"path":[1]}}`, "type", "inner.path[0]"}, {`{"id":"x","inner":{"path":"a"}}`, "type", "inner.path"}, {`{"id":"x","list":[{"path":[],"count":1.5}]}`, "type", "list[0].count"},
		{`{"id":"x","inner":{"path":[],"count":"1"}}`, "type", "inner.count"}, {`{"id":"x","inner":{"path":[],"count":1e30}}`, "type", "inner.count"}, {`{"id":"x","inner":{"path":[],"small":300}}`, "number_range", "inner.small"},
		{`{"id":"x","inner":{"path":[],"table":[]}}`, "type", "inner.table"}, {`{"id":"x","inner":{"path":[],"table":{"k":"v"}}}`, "type", "inner.table.k"},
		{`{"id":"x","raw":{"a":1,"a":2}}`, "duplicate_key", "raw"}, {`{"id":"x","flag":"true"}`, "type", "flag"}, {`{"id":"x","number":"1"}`, "type", "number"},
		{`{"id":"x","custom":"bad"}`, "type", "custom"}, {`{"id":"x","custom":"typed"}`, "value", "custom.deep"}, {`{"id":"x","Ignored":"y"}`, "unknown_field", "Ignored"},
		{`{"id":"x","bytes":"AP8"}`, "type", "bytes"}, {`{"id":"x","bytes":"AP9="}`, "type", "bytes"}, {`{"id":"x","bytes":[0]}`, "type", "bytes"},
		{`{"id":"x","hidden":"y"}`, "unknown_field", "hidden"}, {`{"id":"x","float":1}`, "type", "float"}, {`nope`, "syntax", ""},
	}
	for _, tt := range tests {
		var v outer
		_ = v.hidden
		err := strictjson.Unmarshal([]byte(tt.in), &v, strictjson.Options{})
		if ruleOf(err) != tt.rule || pathOf(err) != tt.path {
			t.Errorf("Unmarshal(%s) = %v, want rule %s at %q", tt.in, err, tt.rule, tt.path)
		}
	}
}

func TestAllowUnknownStillRefusesCaseVariants(t *testing.T) {
	t.Parallel()
	var v outer
	if err := strictjson.Unmarshal([]byte(`{"id":"x","extra":{"deep":1}}`), &v, strictjson.Options{AllowUnknown: true}); err != nil {
		t.Error(err)
	}
	if err := strictjson.Unmarshal([]byte(`{"id":"x","Id":"y"}`), &v, strictjson.Options{AllowUnknown: true}); ruleOf(err) != "case_variant" {
		t.Errorf("case variant: %v", err)
	}
}

func TestTargetMustBeAPointer(t *testing.T) {
	t.Parallel()
	for _, v := range []any{outer{}, (*outer)(nil), nil} {
		if err := strictjson.Unmarshal([]byte(`{}`), v, strictjson.Options{}); err == nil {
			t.Errorf("decoded into %T", v)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := (&strictjson.Error{Path: "[1].x", Rule: "type", Detail: "must be a string"}).In("list")
	if got, want := err.Error(), "list[1].x: must be a string (type)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := (&strictjson.Error{Rule: "syntax", Detail: "d"}).Error(); got != "document: d (syntax)" {
		t.Errorf("Error() = %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\u00e9\ud83d\ude00",null,true]}`, `{"a":1,"A":2}`, `"\ud800"`, `[[[[]]]]`, `1e308`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		node, err := strictjson.Parse(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q, which is not JSON", data)
		}
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		if diff := cmp.Diff(want, node.Any()); diff != "" {
			t.Fatalf("read %q differently\n%s", data, diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	in := []byte(`{"path":["Work","Projects","atlas","status.md"],"query":"ship date","limit":20}`)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Parse(in); err != nil {
			b.Fatal(err)
		}
	}
}
