package files

import (
	"bytes"
	"regexp"
	"strings"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// matcher finds lines. find returns an offset inside the first line of b that
// matches, or -1. It takes time linear in b and keeps
// no state.
type matcher interface {
	find(b []byte) int
	// overlap is how much of a line that is cut in pieces the next piece repeats.
	overlap() int
}

// newMatcher reads the pattern. A literal is searched by its rarest byte; a
// regular expression, and a literal whose letters have case beyond ASCII, by RE2.
func newMatcher(in *plane.GrepInput) (matcher, error) {
	switch in.Mode {
	case "", plane.ModeLiteral:
		if strings.ContainsAny(in.Pattern, "\n") {
			return nil, fail(plane.CodeInvalidPattern, "A pattern is looked for inside a line and cannot hold a line break.")
		}
		if in.CaseSensitive || isASCII(in.Pattern) {
			return newLiteral(in.Pattern, !in.CaseSensitive)
		}
		return newExpression(regexp.QuoteMeta(in.Pattern), true)
	case plane.ModeRegex:
		return newExpression(in.Pattern, !in.CaseSensitive)
	default:
		return nil, fail(plane.CodeInvalidInput, "mode must be literal or regex.")
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// rarity orders bytes from the most to the least frequent in text and source; what
// is not in it is rarer still.
const rarity = " etaoinsrlhdcum\np,gfy.wbv_()0k-\"/1x:=2T;SAI'CE3><j45z*RD86q79NMPOL{}BF"

// literal finds a literal text. Without case it folds ASCII letters.
type literal struct {
	text   []byte // lower case when fold
	fold   bool
	rare   int  // index of the byte that is looked for
	lo, up byte // its two forms; equal when it has one
	slow   matcher
}

func newLiteral(text string, fold bool) (matcher, error) {
	l := &literal{text: []byte(text), fold: fold}
	best := -1
	for i := range len(text) {
		b := text[i]
		if fold {
			b = lower(b)
			l.text[i] = b
		}
		rank := strings.IndexByte(rarity, b)
		if rank < 0 {
			rank = len(rarity)
		}
		if rank > best {
			best, l.rare = rank, i
		}
	}
	l.lo = l.text[l.rare]
	l.up = l.lo
	if fold && l.lo >= 'a' && l.lo <= 'z' {
		l.up = l.lo - ('a' - 'A')
	}
	quoted := regexp.QuoteMeta(string(l.text))
	if fold {
		// The same folding as here, so that both ways find the same.
		quoted = foldASCII(l.text)
	}
	slow, err := newExpression(quoted, false)
	l.slow = slow
	return l, err
}

// foldASCII is an expression for text with either case of its ASCII letters.
func foldASCII(text []byte) string {
	var b strings.Builder
	for _, c := range text {
		if c >= 'a' && c <= 'z' {
			b.WriteByte('[')
			b.WriteByte(c)
			b.WriteByte(c - ('a' - 'A'))
			b.WriteByte(']')
			continue
		}
		b.WriteString(regexp.QuoteMeta(string(rune(c))))
	}
	return b.String()
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + ('a' - 'A')
	}
	return b
}

func (l *literal) overlap() int { return len(l.text) - 1 }

// find looks at the places of the rarest byte. When that turns out to be more
// comparing than reading, the linear way takes over.
func (l *literal) find(b []byte) int {
	n := len(l.text)
	budget := 4*len(b) + 4096
	low, up := -1, -1 // the next places of both forms at or after i
	for i := l.rare; ; {
		if low < i {
			low = indexFrom(b, l.lo, i)
		}
		if l.up == l.lo {
			up = low
		} else if up < i {
			up = indexFrom(b, l.up, i)
		}
		at := min(low, up)
		start := at - l.rare
		if at == len(b) || start+n > len(b) {
			return -1
		}
		compared, same := l.compare(b[start : start+n])
		if same {
			return start
		}
		if budget -= compared + 1; budget < 0 {
			if more := l.slow.find(b[start+1:]); more >= 0 {
				return start + 1 + more
			}
			return -1
		}
		i = at + 1
	}
}

// indexFrom is the place of c in b at or after i, or len(b).
func indexFrom(b []byte, c byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	if at := bytes.IndexByte(b[i:], c); at >= 0 {
		return i + at
	}
	return len(b)
}

func (l *literal) compare(b []byte) (compared int, same bool) {
	for i, c := range l.text {
		got := b[i]
		if l.fold {
			got = lower(got)
		}
		if got != c {
			return i, false
		}
	}
	return len(l.text), true
}
