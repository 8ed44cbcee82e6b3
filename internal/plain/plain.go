// Package plain makes text from others safe to print on a terminal.
package plain

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s in one line in which nothing moves the cursor, changes a colour,
// hides, or turns the direction of the text: such characters are written as escapes.
func Text(s string) string { return escape(s, false) }

// Lines is [Text] that keeps line feeds and tabs.
func Lines(s string) string { return escape(s, true) }

// Shown reports whether s prints as what it is.
func Shown(s string) bool { return Text(s) == s }

func escape(s string, lines bool) string {
	if clean(s, lines) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case printable(r, lines):
			b.WriteString(s[i : i+size])
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func clean(s string, lines bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !printable(r, lines) {
			return false
		}
	}
	return true
}

// printable leaves out controls, formats such as direction marks, line and paragraph
// separators, private use, and spaces other than the usual one.
func printable(r rune, lines bool) bool {
	return unicode.IsPrint(r) || (lines && (r == '\n' || r == '\t'))
}

// Writer writes through [Lines]. A character that two writes split is written as
// escapes.
type Writer struct{ Out io.Writer }

// Write implements [io.Writer].
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Out, Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
