package strictjson

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNumeral bounds a numeral's length; longer ones only serve to exhaust
// arithmetic on exact numbers.
const maxNumeral = 1024

// maxExponent bounds a written exponent for the same reason.
const maxExponent = 1024

// str reads a string that begins at the current quote.
func (p *parser) str() (string, *Error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			s := string(p.data[start:p.pos])
			p.pos++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", fault(RuleSyntax, "control character in a string")
		default:
			p.pos++
		}
	}
	return "", fault(RuleSyntax, "unterminated string")
}

// escaped finishes a string whose first escape is at the current position.
func (p *parser) escaped(start int) (string, *Error) {
	out := append(make([]byte, 0, 2*(p.pos-start)+16), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(out), nil
		case c < 0x20:
			return "", fault(RuleSyntax, "control character in a string")
		case c != '\\':
			out = append(out, c)
			p.pos++
		default:
			var err *Error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		}
	}
	return "", fault(RuleSyntax, "unterminated string")
}

// escape appends what the escape sequence at the current position stands for.
func (p *parser) escape(out []byte) ([]byte, *Error) {
	if p.pos+1 >= len(p.data) {
		return nil, fault(RuleSyntax, "unterminated string")
	}
	c := p.data[p.pos+1]
	p.pos += 2
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		r, err := p.unicodeEscape()
		if err != nil {
			return nil, err
		}
		return utf8.AppendRune(out, r), nil
	default:
		return nil, fault(RuleSyntax, "unknown escape")
	}
}

// unicodeEscape reads the digits after \u, and the second half of a pair.
func (p *parser) unicodeEscape() (rune, *Error) {
	first, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if !utf16.IsSurrogate(first) {
		return first, nil
	}
	if p.pos+1 < len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		p.pos += 2
		second, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, fault(RuleUTF8, "lone surrogate")
}

func (p *parser) hex4() (rune, *Error) {
	if p.pos+4 > len(p.data) {
		return 0, fault(RuleSyntax, "short unicode escape")
	}
	var r rune
	for _, c := range p.data[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, fault(RuleSyntax, "bad unicode escape")
		}
	}
	p.pos += 4
	return r, nil
}

// number reads a numeral. Its digits are kept; only its size is judged.
func (p *parser) number() (string, *Error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	switch c := p.peek(); {
	case c == '0':
		p.pos++
	case c >= '1' && c <= '9':
		p.digits()
	default:
		return "", fault(RuleSyntax, "bad number")
	}
	if p.peek() == '.' {
		p.pos++
		if p.digits() == 0 {
			return "", fault(RuleSyntax, "bad fraction")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		if err := p.exponent(); err != nil {
			return "", err
		}
	}
	text := string(p.data[start:p.pos])
	if len(text) > maxNumeral {
		return "", fault(RuleNumber, "numeral too long")
	}
	// Few digits and no exponent cannot leave the range.
	if len(text) > 300 || p.hasExponent(start) {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return "", fault(RuleNumber, "number is not finite")
		}
	}
	return text, nil
}

func (p *parser) hasExponent(start int) bool {
	for _, c := range p.data[start:p.pos] {
		if c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

func (p *parser) exponent() *Error {
	p.pos++
	if c := p.peek(); c == '+' || c == '-' {
		p.pos++
	}
	start := p.pos
	if p.digits() == 0 {
		return fault(RuleSyntax, "bad exponent")
	}
	if p.pos-start > 4 {
		return fault(RuleNumber, "exponent too large")
	}
	if e, err := strconv.Atoi(string(p.data[start:p.pos])); err != nil || e > maxExponent {
		return fault(RuleNumber, "exponent too large")
	}
	return nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] >= '0' && p.data[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}
