package console

import (
	"fmt"
	"strings"
	"time"
)

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
