package files

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	plane "github.com/sharedos-dev/operator/planes/files"
)

// expression finds lines by RE2. It is made so that it cannot match a line break,
// which lets it search many lines at once and find what it would find in each.
type expression struct {
	re *regexp.Regexp
	// lines makes it search line by line: the expression looks at the ends of the text.
	lines bool
}

func newExpression(pattern string, fold bool) (matcher, error) {
	// Alone first: the flags in front must not mend a broken pattern.
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
		return nil, invalidPattern(err)
	}
	flags := "(?m)"
	if fold {
		flags = "(?im)"
	}
	parsed, err := syntax.Parse(flags+pattern, syntax.Perl)
	if err != nil {
		return nil, invalidPattern(err)
	}
	withoutBreaks(parsed)
	// Every flag is part of the parsed form and of what it prints as.
	re, err := regexp.Compile(parsed.String())
	if err != nil {
		return nil, fmt.Errorf("compile pattern: %w", err)
	}
	return &expression{re: re, lines: looksAtEnds(parsed)}, nil
}

// invalidPattern names the kind of a syntax error, without the pattern in it.
func invalidPattern(err error) error {
	kind := "it cannot be compiled"
	if e, ok := err.(*syntax.Error); ok { //nolint:errorlint // the parser returns it bare
		kind = e.Code.String()
	}
	return fail(plane.CodeInvalidPattern, "The pattern is not a regular expression (RE2): %s.", kind)
}

// withoutBreaks takes the line break out of everything that could match it.
func withoutBreaks(re *syntax.Regexp) {
	switch re.Op { //nolint:exhaustive // the others match no character
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			never(re)
		}
	case syntax.OpCharClass:
		var kept []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			low, high := re.Rune[i], re.Rune[i+1]
			if low > '\n' || high < '\n' {
				kept = append(kept, low, high)
				continue
			}
			if low < '\n' {
				kept = append(kept, low, '\n'-1)
			}
			if high > '\n' {
				kept = append(kept, '\n'+1, high)
			}
		}
		if re.Rune = kept; len(kept) == 0 {
			never(re)
		}
	}
	for _, sub := range re.Sub {
		withoutBreaks(sub)
	}
}

func never(re *syntax.Regexp) { *re = syntax.Regexp{Op: syntax.OpNoMatch} }

func looksAtEnds(re *syntax.Regexp) bool {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return true
	}
	return slices.ContainsFunc(re.Sub, looksAtEnds)
}

func (e *expression) overlap() int { return 0 }

func (e *expression) find(b []byte) int {
	if !e.lines {
		m := e.re.FindIndex(b)
		if m == nil || (m[0] == len(b) && m[0] > 0 && b[m[0]-1] == '\n') {
			return -1 // behind the last line break there is no line
		}
		return m[0]
	}
	for at := 0; at < len(b); {
		end := indexFrom(b, '\n', at)
		if e.re.Match(b[at:end]) {
			return at
		}
		at = end + 1
	}
	return -1
}
