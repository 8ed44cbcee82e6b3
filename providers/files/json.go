package files

import (
	"encoding/binary"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendJSONText appends valid UTF-8 as a JSON string. It copies the runs between
// characters that need an escape.
func appendJSONText(dst, text []byte) []byte {
	dst = append(dst, '"')
	for len(text) > 0 {
		n := plainPrefix(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			break
		}
		dst = appendEscape(dst, text[n])
		text = text[n+1:]
	}
	return append(dst, '"')
}

// plainPrefix counts the leading bytes that need no escape, eight at a time.
func plainPrefix(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for len(b)-n >= 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// A byte's high bit is set where it is below 0x20, a quote or a backslash;
		// bytes of 0x80 and above are left out by &^ w.
		special := ((w - ones*0x20) | (quote - ones) | (slash - ones)) &^ w & highs
		if special != 0 {
			break
		}
		n += 8
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
	}
}

// isText reports whether content is shown as text: UTF-8 without a zero byte.
func isText(content []byte) bool {
	return utf8.Valid(content) && !hasZero(content)
}
