package files

import (
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
