package strictjson_test

import (
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// many is a list of n entries.
func many(entry string, n int) string { return "[" + strings.Repeat(entry+",", n-1) + entry + "]" }

// hostile are a little text each that would make a large tree.
var hostile = map[string]string{
	"empty lists":   many("[]", 1_300_000),
	"empty objects": many("{}", 1_300_000),
	"numbers":       many("1", 2_000_000),
	"nested":        many("[[[1]]]", 500_000),
	"members":       `{"list":` + many(`{"a":1}`, 500_000) + `}`,
	"unfinished":    strings.TrimSuffix(many("[ ]", 1_000_000), "]"),
	"in a string":   many(`"\\"`, 800_000),
}

func TestValuesAreCounted(t *testing.T) {
	t.Parallel()
	const most = strictjson.MaxValues
	for name, c := range map[string]struct {
		in   string
		rule string
	}{
		"numbers":           {many("1", most-1), ""},
		"one too many":      {many("1", most), "too_many_values"},
		"spread out":        {many(" \n1\t", most), "too_many_values"},
		"empty lists":       {many("[ ]", most-1), ""},
		"one list too many": {many("[ ]", most), "too_many_values"},
		"pairs":             {many("[1]", (most-1)/2), ""},
		"one pair too many": {many("[1]", most/2), "too_many_values"},
		"members":           {many(`{"a":{}}`, (most-1)/2), ""},
		"too many members":  {many(`{"a":{}}`, most/2), "too_many_values"},
		"text of commas":    {`"` + strings.Repeat(`[,{\",\\`, most) + `"`, ""},
		"keys of commas":    {`{"` + strings.Repeat(`[,{`, most) + `":1}`, ""},
		"not JSON":          {strings.Repeat(",", 2*most), "too_many_values"},
	} {
		if got := ruleOf(strictjson.Check([]byte(c.in))); got != c.rule {
			t.Errorf("%s: rule %q, want %q", name, got, c.rule)
		}
	}
	for name, in := range hostile {
		if got := ruleOf(strictjson.Check([]byte(in))); got != "too_many_values" {
			t.Errorf("%s: rule %q", name, got)
		}
	}
}

func TestWhatFitsIntoAnotherDocument(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{strictjson.MaxPayloadValues - 1: true, strictjson.MaxPayloadValues: false} {
		if got := strictjson.Fits([]byte(many("1", n))); got != want {
			t.Errorf("%d entries: %v", n, got)
		}
	}
}

// TestHostileTextTakesNoMemory: it is refused before anything is made of it.
func TestHostileTextTakesNoMemory(t *testing.T) {
	for name, text := range hostile {
		data := []byte(text)
		if n := testing.AllocsPerRun(2, func() { _ = strictjson.Check(data) }); n > 8 {
			t.Errorf("%s: %v allocations for a text that is refused", name, n)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_ = strictjson.Check(data)
			}
		})
	}
}

// FuzzValues: what is parsed holds no more values than were counted, and a document
// that is refused for their number holds more.
func FuzzValues(f *testing.F) {
	for _, s := range []string{`[1,[],{},"a,[",{"b":[{}]}]`, `[ [ ] , { } ]`, `{"\"":[1,2]}`, `[`, `[,,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		node, err := strictjson.Parse(data)
		if err != nil {
			return
		}
		n := count(node)
		if strictjson.TooMany(data, n) || (n > 1 && !strictjson.TooMany(data, n-1)) {
			t.Errorf("%q holds %d values, and was counted otherwise", data, n)
		}
	})
}

func count(n strictjson.Node) int {
	sum := 1
	for i := range n.Children {
		sum += count(n.Children[i])
	}
	return sum
}
