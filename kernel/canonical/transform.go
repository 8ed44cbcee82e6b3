package canonical

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Transform returns the canonical form of a JSON document. Documents that two
// parsers could read differently (duplicate keys, lone surrogates) are refused.
func Transform(raw []byte) ([]byte, error) {
	node, err := strictjson.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("parse document: %w", err)
	}
	return Append(make([]byte, 0, len(raw)), node)
}

// Append appends the canonical form of a parsed value to dst.
func Append(dst []byte, node strictjson.Node) ([]byte, error) {
	switch node.Kind {
	case strictjson.Object:
		return appendObject(dst, node.Children)
	case strictjson.Array:
		return appendArray(dst, node.Children)
	case strictjson.String:
		return AppendString(dst, node.Text), nil
	case strictjson.Number:
		return appendNumber(dst, node.Text)
	default:
		return append(dst, node.Raw...), nil
	}
}

func appendArray(dst []byte, items []strictjson.Node) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = Append(dst, items[i]); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, members []strictjson.Node) ([]byte, error) {
	if !slices.IsSortedFunc(members, compareKeys) {
		members = slices.Clone(members)
		slices.SortFunc(members, compareKeys)
	}
	var err error
	dst = append(dst, '{')
	for i := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, members[i].Key), ':')
		if dst, err = Append(dst, members[i]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// compareKeys orders member names by UTF-16 code units. That is the order of
// their bytes unless a code point outside the basic plane meets one from the end
// of it, so only then are the units compared.
func compareKeys(a, b strictjson.Node) int {
	x, y := a.Key, b.Key
	n := min(len(x), len(y))
	i := 0
	for i < n && x[i] == y[i] {
		i++
	}
	if i == n {
		return len(x) - len(y)
	}
	if x[i] < 0xEE || y[i] < 0xEE {
		return int(x[i]) - int(y[i])
	}
	return slices.Compare(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)))
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a canonical JSON string.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		dst = appendEscape(dst, c)
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}

// appendNumber writes a numeral the way ECMAScript prints the double it denotes.
func appendNumber(dst []byte, text string) ([]byte, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("number is not finite: %w", err)
	}
	return AppendFloat(dst, f), nil
}

// AppendFloat appends a finite number the way ECMAScript prints it.
func AppendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also -0
	}
	abs := f
	if abs < 0 {
		abs = -abs
	}
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits; ECMAScript does not.
	if n := len(dst); n-start >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
