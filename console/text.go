package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// visible replaces characters that act instead of being seen. It is applied to a
// whole page, so that no text of an object can be forgotten: control characters
// become their pictures, so that what is copied into a terminal does nothing there;
// characters that turn the direction of text or hide become their number.
func visible(page []byte) []byte {
	clean := true
	for _, b := range page {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f || b >= 0x80 {
			clean = false
			break
		}
	}
	if clean {
		return page
	}
	out := make([]byte, 0, len(page)+64)
	for i := 0; i < len(page); {
		r, size := utf8.DecodeRune(page[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = utf8.AppendRune(out, unicode.ReplacementChar)
		case r == '\n' || r == '\t':
			out = append(out, byte(r))
		case r < ' ':
			out = utf8.AppendRune(out, 0x2400+r)
		case r == 0x7f:
			out = utf8.AppendRune(out, 0x2421)
		case misleads(r):
			out = fmt.Appendf(out, "[U+%04X]", r)
		default:
			out = append(out, page[i:i+size]...)
		}
		i += size
	}
	return out
}

// misleads reports whether a character has an effect and no shape. Joiners stay:
// scripts and emoji need them.
func misleads(r rune) bool {
	switch {
	case r < 0x80 || r == 0x200c || r == 0x200d:
		return false
	case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Co, r):
		return true
	default:
		return r == 0x2028 || r == 0x2029 || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0
	}
}

// cut shortens a text to n characters.
func cut(s string, n int) (text string, shortened bool) {
	if len(s) <= n {
		return s, false
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i], true
		}
		count++
	}
	return s, false
}

// moment is an instant as a page shows it.
type moment struct{ at, now time.Time }

func (m moment) IsZero() bool { return m.at.IsZero() }

// ISO is for machines.
func (m moment) ISO() string { return m.at.UTC().Format(time.RFC3339Nano) }

// Text is for people, to the second.
func (m moment) Text() string { return m.at.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// Clock is the time of the day, to the millisecond.
func (m moment) Clock() string { return m.at.UTC().Format("15:04:05.000") }

// Ago is how long ago it was, or how long it will take.
func (m moment) Ago() string {
	d := m.now.Sub(m.at)
	switch {
	case d < -time.Second:
		return "in " + lasting(-d)
	case d < time.Second:
		return "now"
	default:
		return lasting(d) + " ago"
	}
}

// lasting is a duration in the unit a person would choose.
func lasting(d time.Duration) string {
	switch {
	case d < 0:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// plural is a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
