package canonical_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/canonical-json.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Input, Canonical, SHA256 string }
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 12 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		got, err := canonical.Transform([]byte(v.Input))
		if err != nil {
			t.Errorf("%s: %v", v.Input, err)
			continue
		}
		if string(got) != v.Canonical {
			t.Errorf("Transform(%s)\n got %s\nwant %s", v.Input, got, v.Canonical)
		}
		if hash := canonical.HashBytes(got); hash != v.SHA256 {
			t.Errorf("hash of %s = %s, want %s", v.Input, hash, v.SHA256)
		}
	}
}

func TestNumbersPrintAsECMAScriptDoes(t *testing.T) {
	t.Parallel()
	tests := map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1: "1", -1: "-1", 0.1: "0.1", 1e-6: "0.000001", 1e-7: "1e-7", 1.5e-7: "1.5e-7",
		1e20: "100000000000000000000", 1e21: "1e+21", 123456789012345680000: "123456789012345680000",
		5e-324: "5e-324", math.MaxFloat64: "1.7976931348623157e+308", 9007199254740993: "9007199254740992", 1e100: "1e+100", -1e-10: "-1e-10",
	}
	for f, want := range tests {
		if got := string(canonical.AppendFloat(nil, f)); got != want {
			t.Errorf("AppendFloat(%g) = %s, want %s", f, got, want)
		}
	}
}

func TestKeysSortByCodeUnits(t *testing.T) {
	t.Parallel()
	// U+1F600 is D83D DE00 in UTF-16 and so sorts before U+FB33, after it in UTF-8.
	for in, want := range map[string]string{
		`{"\ufb33":1,"\ud83d\ude00":2}`:                     "{\"\U0001F600\":2,\"\ufb33\":1}",
		`{"\ue000":1,"\ud800\udc00":2,"\ud7ff":3}`:          "{\"\ud7ff\":3,\"\U00010000\":2,\"\ue000\":1}",
		`{"ab":1,"a":2,"":3}`:                               `{"":3,"a":2,"ab":1}`,
		`{"a\ud83d\ude01":1,"a\ud83d\ude00":2,"a\uffff":3}`: "{\"a😀\":2,\"a😁\":1,\"a\uffff\":3}",
	} {
		got, err := canonical.Transform([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Transform(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	in := `{"a":["\u0000\u0001\b\t\n\u000b\f\r\u001f\"\\\/\u007f\u2028<>&"],"b":[1,{"c":null}]}`
	want := "{\"a\":[\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u007f\u2028<>&\"],\"b\":[1,{\"c\":null}]}"
	if got, err := canonical.Transform([]byte(in)); err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestRefusesWhatTwoParsersCouldReadDifferently(t *testing.T) {
	t.Parallel()
	for _, in := range []string{``, `{"a":1,"a":2}`, `"\ud800"`, `1e400`, `[1,]`, "\"\xff\"", `{} {}`} {
		if got, err := canonical.Transform([]byte(in)); err == nil {
			t.Errorf("Transform(%q) = %s, want an error", in, got)
		}
	}
}

func TestHashIsOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	a, err := canonical.Hash(map[string]any{"b": 1, "a": "<&>\u2028"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := canonical.Transform([]byte(`{"b":1.0,"a":"<&>\u2028"}`))
	if err != nil {
		t.Fatal(err)
	}
	if b := canonical.HashBytes(want); a != b {
		t.Errorf("Hash = %s, want %s", a, b)
	}
	if _, err := canonical.Hash(make(chan int)); err == nil {
		t.Error("a channel was hashed")
	}
}

func ExampleTransform() {
	out, err := canonical.Transform([]byte(`{ "b": 4.50, "a": [1E2, "\u20ac"] }`))
	fmt.Println(string(out), err)
	// Output: {"a":[100,"€"],"b":4.5} <nil>
}

func FuzzTransform(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50,-0],"a":"\u20ac\n"}`, `[1e21,1e-7,{"😀":null,"דּ":true}]`, `"\ud83d\ude00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := canonical.Transform(data)
		if err != nil {
			return
		}
		twice, err := canonical.Transform(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("not a fixed point: %q then %q, %v", once, twice, err)
		}
		var a, b any
		if json.Unmarshal(data, &a) != nil || json.Unmarshal(once, &b) != nil {
			t.Fatalf("accepted what encoding/json refuses: %q", data)
		}
		if !reflect.DeepEqual(a, b) { // 0 equals -0, which the canonical form does not keep
			t.Fatalf("changed the value: %q became %q", data, once)
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, n := range []float64{0, 1, 0.1, 1e21, 1e-7, math.MaxFloat64, 5e-324} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n float64) {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return
		}
		text := canonical.AppendFloat(nil, n)
		if back, err := strconv.ParseFloat(string(text), 64); err != nil || back != n {
			t.Fatalf("%g printed as %s", n, text)
		}
		if err := strictjson.Check(text); err != nil {
			t.Fatalf("%s is not JSON: %v", text, err)
		}
	})
}

func BenchmarkTransform(b *testing.B) {
	in := []byte(`{"name":"files.read","description":"Read a file below a path.","inputSchema":{"type":"object","required":["path"],"properties":{"path":{"type":"array","items":{"type":"string","maxLength":256,"minLength":1},"maxItems":64}},"additionalProperties":false},"annotations":{"readOnlyHint":true},"metadata":{"namespace":"files","source":"sharedos"}}`)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonical.Transform(in); err != nil {
			b.Fatal(err)
		}
	}
}
