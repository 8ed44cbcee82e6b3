package files

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"regexp"
	"strings"
)

// rarity orders bytes from the most to the least frequent in text and source; what
// is not in it is rarer still.
const rarity = " etaoinsrlhdcum\np,gfy.wbv_()0k-\"/1x:=2T;SAI'CE3><j45z*RD86q79NMPOL{}BF"

func rank(b byte) int {
	if at := strings.IndexByte(rarity, b); at >= 0 {
		return at
	}
	return len(rarity)
}

// literal finds a literal text. Without case it folds ASCII letters.
type literal struct {
	text []byte // lower case when fold
	fold bool
	// rare and second are the places of the two rarest bytes in text.
	rare, second int
	lo, up       byte // the two forms of the rarest; equal when it has one
	slow         matcher
}

func newLiteral(text string, fold bool) (matcher, error) {
	l := &literal{text: []byte(text), fold: fold}
	for i, b := range l.text {
		if fold {
			l.text[i] = lower(b)
		}
		if rank(l.text[i]) > rank(l.text[l.rare]) {
			l.rare = i
		}
	}
	l.second = len(l.text) - 1 - l.rare // some other place, if there is one
	for i := range l.text {
		if i != l.rare && (l.second == l.rare || rank(l.text[i]) > rank(l.text[l.second])) {
			l.second = i
		}
	}
	l.lo = l.text[l.rare]
	l.up = l.lo
	if fold && isLower(l.lo) {
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
		if isLower(c) {
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

func isLower(b byte) bool { return b >= 'a' && b <= 'z' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + ('a' - 'A')
	}
	return b
}

func (l *literal) overlap() int { return len(l.text) - 1 }

// The rarest byte is not rare in this text when it comes up more often than once
// in sparse bytes over a run of trial places.
const (
	trial  = 32
	sparse = 64
)

// find jumps from one place of the rarest byte to the next. Where that byte turns
// out to be frequent it looks for two bytes at once.
func (l *literal) find(b []byte) int {
	n := len(l.text)
	seek := seeker{literal: l, b: b, budget: 4*len(b) + 4096}
	low, up := -1, -1 // the next places of both forms at or after i
	for i, tried := l.rare, 0; ; tried++ {
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
		if hit, done := seek.try(start); done {
			return hit
		}
		i = at + 1
		if tried == trial {
			if n > 1 && i < trial*sparse {
				return seek.pairs(start + 1)
			}
			tried = -len(b) // it is rare enough
		}
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

// seeker compares at places that may match. When that turns out to be more
// comparing than reading, the way that is linear in any case takes over.
type seeker struct {
	*literal
	b      []byte
	budget int
}

// try compares at start; when done, hit is the answer.
func (s *seeker) try(start int) (hit int, done bool) {
	at := 0
	for ; at < len(s.text); at++ {
		got := s.b[start+at]
		if s.fold {
			got = lower(got)
		}
		if got != s.text[at] {
			break
		}
	}
	if at == len(s.text) {
		return start, true
	}
	if s.budget -= at + 1; s.budget >= 0 {
		return 0, false
	}
	if more := s.slow.find(s.b[start+1:]); more >= 0 {
		return start + 1 + more, true
	}
	return -1, true
}

// pairs looks for the two rarest bytes at their distance, at eight places at once,
// from start on.
func (s *seeker) pairs(start int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	c1, f1 := s.spread(s.rare)
	c2, f2 := s.spread(s.second)
	n := len(s.text)
	for ; start+n+7 <= len(s.b); start += 8 {
		w1 := binary.LittleEndian.Uint64(s.b[start+s.rare:]) | f1
		w2 := binary.LittleEndian.Uint64(s.b[start+s.second:]) | f2
		x := (w1 ^ c1) | (w2 ^ c2)
		// Bits above the lowest true one may be false; comparing tells.
		for m := (x - ones) &^ x & highs; m != 0; m &= m - 1 {
			if hit, done := s.try(start + bits.TrailingZeros64(m)/8); done {
				return hit
			}
		}
	}
	for ; start+n <= len(s.b); start++ {
		if hit, done := s.try(start); done {
			return hit
		}
	}
	return -1
}

// spread repeats a byte of the text eight times, with the bit that makes its two
// forms one.
func (l *literal) spread(at int) (c, fold uint64) {
	const ones = 0x0101010101010101
	if l.fold && isLower(l.text[at]) {
		fold = ones * 0x20
	}
	return ones * uint64(l.text[at]), fold
}
