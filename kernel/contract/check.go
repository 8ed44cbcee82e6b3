package contract

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Limits, in Unicode code points for strings and in entries for lists.
const (
	MaxIdentifier   = 256
	MaxSegment      = 256
	MaxPathSegments = 64
	MaxAction       = 128
	MaxPurpose      = 512
	MaxToolName     = 128
	MaxDescription  = 8192
	MaxMessage      = 8192
	MaxCode         = 128
	MaxListEntries  = 64
	MaxNamespaces   = 256
	MaxReach        = 16384
	MaxReason       = 512
	MaxSafeInteger  = 1<<53 - 1
)

// checks collects the first broken rule of one object.
type checks struct{ err *FieldError }

func (c *checks) fail(field, rule, format string, args ...any) {
	if c.err == nil {
		c.err = &FieldError{Path: field, Rule: rule, Detail: fmt.Sprintf(format, args...)}
	}
}

func (c *checks) result() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// nested takes over the error of a part.
func (c *checks) nested(field string, err error) {
	if c.err != nil || err == nil {
		return
	}
	if fe, ok := err.(*FieldError); ok { //nolint:errorlint // produced unwrapped by this package
		c.err = fe.In(field)
		return
	}
	c.fail(field, RuleValue, "%v", err)
}

// text checks a trimmed string of 1 to limit code points.
func (c *checks) text(field, s string, limit int) {
	if c.err != nil || plainText(s, limit) {
		return
	}
	if !trimmed(s) {
		c.fail(field, RuleTrimmed, "must not begin or end with white space")
		return
	}
	c.length(field, s, limit)
}

// plainText recognises in one pass what nearly every text is: ASCII within the
// limit, without white space at its ends.
func plainText(s string, limit int) bool {
	if s == "" || len(s) > limit || s[0] <= ' ' || s[len(s)-1] <= ' ' {
		return false
	}
	return isASCII(s)
}

func (c *checks) length(field, s string, high int) {
	if c.err != nil {
		return
	}
	if n, ok := codePoints(s, high); !ok {
		c.fail(field, strictjson.RuleUTF8, "not valid UTF-8")
	} else if n < 1 || n > high {
		c.fail(field, RuleLength, "must have 1 to %d characters", high)
	}
}

func (c *checks) identifier(field, s string) { c.text(field, s, MaxIdentifier) }

func (c *checks) optionalIdentifier(field, s string) {
	if s != "" {
		c.identifier(field, s)
	}
}

func (c *checks) version(v string) {
	if v != Version {
		c.fail("version", RuleValue, "must be %q", Version)
	}
}

func (c *checks) items(field string, n, low, high int) {
	if n < low || n > high {
		c.fail(field, RuleItems, "must have %d to %d entries", low, high)
	}
}

func (c *checks) instant(field string, t Timestamp) {
	if t.IsZero() {
		c.fail(field, strictjson.RuleRequired, "is required")
	}
}

// object checks a raw value that must be a JSON object when it is present.
func (c *checks) object(field string, raw Object, required bool) {
	if c.err != nil || c.absent(field, raw, required) {
		return
	}
	node, err := strictjson.Parse(raw)
	if err != nil {
		c.nested(field, err)
		return
	}
	if node.Kind != strictjson.Object {
		c.fail(field, strictjson.RuleType, "must be an object")
	}
}

// value checks a raw JSON value.
func (c *checks) value(field string, raw Value, required bool) {
	if c.err != nil || c.absent(field, raw, required) {
		return
	}
	c.nested(field, strictjson.Check(raw))
}

func (c *checks) absent(field string, raw Value, required bool) bool {
	if len(raw) == 0 && required {
		c.fail(field, strictjson.RuleRequired, "is required")
	}
	return len(raw) == 0
}

// uniqueTexts checks a list of unique identifiers.
func (c *checks) uniqueTexts(field string, list []string, low, high int) {
	c.texts(field, list, low, high, MaxIdentifier)
	if c.err == nil && hasDuplicate(list) {
		c.fail(field, RuleUnique, "must not repeat an entry")
	}
}

func (c *checks) texts(field string, list []string, low, high, limit int) {
	c.items(field, len(list), low, high)
	for i, s := range list {
		if c.err != nil {
			return
		}
		if err := checkText(s, limit); err != nil {
			c.nested(field+strictjson.Index(i), err)
		}
	}
}

func checkText(s string, limit int) error {
	var c checks
	c.text("", s, limit)
	return c.result()
}

func hasDuplicate(list []string) bool {
	if len(list) < 2 {
		return false
	}
	seen := make(map[string]struct{}, len(list))
	for _, s := range list {
		if _, dup := seen[s]; dup {
			return true
		}
		seen[s] = struct{}{}
	}
	return false
}

// trimmed reports whether s neither begins nor ends with white space; the byte
// order mark counts, as it does where these ids are compared elsewhere.
func trimmed(s string) bool {
	if s == "" {
		return true
	}
	if a, b := s[0], s[len(s)-1]; a > ' ' && a < utf8.RuneSelf && b > ' ' && b < utf8.RuneSelf {
		return true
	}
	return strings.TrimFunc(s, isSpace) == s
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }

// codePoints counts s's code points and reports whether s is valid UTF-8. Longer
// strings than limit bytes are counted, shorter ASCII ones by their length.
func codePoints(s string, limit int) (int, bool) {
	if len(s) <= limit && isASCII(s) {
		return len(s), true
	}
	return utf8.RuneCountInString(s), utf8.ValidString(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
