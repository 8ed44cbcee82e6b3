package plain_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/sharedos-dev/operator/internal/plain"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"Grüße, 世界 🚀": "Grüße, 世界 🚀", "a\x1b[31mred\x1b[0m": `a\u001b[31mred\u001b[0m`, "a\nb\tc\rd": `a\u000ab\u0009c\u000dd`,
		"x\u202egpj.exe": `x\u202egpj.exe`, "zero\u200bwidth": `zero\u200bwidth`, "\xff\xfe": `\xff\xfe`, "\u2028": `\u2028`,
		"\U000e0041": `\U000e0041`, "\u009b31m": `\u009b31m`, "": "",
	} {
		if got := plain.Text(in); got != want {
			t.Errorf("Text(%q) = %s, want %s", in, got, want)
		}
		if plain.Shown(in) != (in == want) {
			t.Errorf("Shown(%q) = %t", in, plain.Shown(in))
		}
	}
	if got := plain.Lines("a\n\tb\x1b\r"); got != "a\n\tb\\u001b\\u000d" {
		t.Errorf("Lines: %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b]0;title\x07\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := plain.Text(s)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Text(%q) = %q, which a terminal would interpret", s, got)
		}
		if plain.Text(got) != got {
			t.Errorf("Text(%q) is not stable", s)
		}
	})
}
