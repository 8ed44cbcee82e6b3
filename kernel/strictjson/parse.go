package strictjson

import (
	"strconv"
	"unicode/utf8"
)

// Kind is the JSON type of a [Node].
type Kind uint8

// The kinds. The zero kind is no value at all.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// Node is one value of a parsed document. It aliases the parsed bytes.
type Node struct {
	Kind Kind
	// Key is the member's name, decoded, when the node sits in an object.
	Key string
	// Text is the decoded string of a String and the numeral of a Number.
	Text string
	// Raw is the value exactly as it was written.
	Raw []byte
	// Children are the members of an Object or the entries of an Array, in order.
	Children []Node
}

// MaxDepth is how deep arrays and objects may nest.
const MaxDepth = 128

// Parse reads one document of at most [MaxValues] values. Errors are of type [*Error].
func Parse(data []byte) (Node, error) {
	if !utf8.Valid(data) {
		return Node{}, fault(RuleUTF8, "not valid UTF-8")
	}
	if tooManyValues(data, MaxValues) {
		return Node{}, fault(RuleTooManyValues, "holds more than "+strconv.Itoa(MaxValues)+" values")
	}
	p := parser{data: data}
	p.space()
	node, err := p.value(0)
	if err != nil {
		return Node{}, err
	}
	p.space()
	if p.pos != len(p.data) {
		return Node{}, fault(RuleTrailingData, "data after the value")
	}
	return node, nil
}

// Check reports whether data is one strict document.
func Check(data []byte) error {
	_, err := Parse(data)
	return err
}

type parser struct {
	data []byte
	pos  int
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; a literal NUL is never valid JSON.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (Node, *Error) {
	start := p.pos
	var node Node
	var err *Error
	switch c := p.peek(); {
	case c == '{':
		node, err = p.object(depth)
	case c == '[':
		node, err = p.array(depth)
	case c == '"':
		node.Kind = String
		node.Text, err = p.str()
	case c == '-' || (c >= '0' && c <= '9'):
		node.Kind = Number
		node.Text, err = p.number()
	case c == 't':
		node.Kind, err = Bool, p.literal("true")
	case c == 'f':
		node.Kind, err = Bool, p.literal("false")
	case c == 'n':
		node.Kind, err = Null, p.literal("null")
	case p.pos == len(p.data):
		err = fault(RuleSyntax, "unexpected end")
	default:
		err = fault(RuleSyntax, "unexpected character")
	}
	if err != nil {
		return Node{}, err
	}
	node.Raw = p.data[start:p.pos:p.pos]
	return node, nil
}

func (p *parser) literal(word string) *Error {
	if len(p.data)-p.pos < len(word) || string(p.data[p.pos:p.pos+len(word)]) != word {
		return fault(RuleSyntax, "unknown literal")
	}
	p.pos += len(word)
	return nil
}

func (p *parser) array(depth int) (Node, *Error) {
	if depth >= MaxDepth {
		return Node{}, fault(RuleDepth, "nested too deeply")
	}
	node := Node{Kind: Array}
	p.pos++
	p.space()
	if p.peek() == ']' {
		p.pos++
		return node, nil
	}
	for {
		p.space()
		item, err := p.value(depth + 1)
		if err != nil {
			return Node{}, err.In(Index(len(node.Children)))
		}
		node.Children = append(node.Children, item)
		done, err := p.separator(']')
		if err != nil {
			return Node{}, err
		}
		if done {
			return node, nil
		}
	}
}

func (p *parser) object(depth int) (Node, *Error) {
	if depth >= MaxDepth {
		return Node{}, fault(RuleDepth, "nested too deeply")
	}
	node := Node{Kind: Object}
	var keys keySet
	p.pos++
	p.space()
	if p.peek() == '}' {
		p.pos++
		return node, nil
	}
	for {
		p.space()
		if p.peek() != '"' {
			return Node{}, fault(RuleSyntax, "expected a member name")
		}
		key, err := p.str()
		if err != nil {
			return Node{}, err
		}
		if !keys.add(node.Children, key) {
			return Node{}, fault(RuleDuplicateKey, "duplicate member name")
		}
		p.space()
		if p.peek() != ':' {
			return Node{}, fault(RuleSyntax, "expected a colon")
		}
		p.pos++
		p.space()
		member, err := p.value(depth + 1)
		if err != nil {
			return Node{}, err.In(key)
		}
		member.Key = key
		node.Children = append(node.Children, member)
		done, err := p.separator('}')
		if err != nil {
			return Node{}, err
		}
		if done {
			return node, nil
		}
	}
}

// separator consumes a comma, or the closing byte and reports true.
func (p *parser) separator(closing byte) (bool, *Error) {
	p.space()
	switch p.peek() {
	case ',':
		p.pos++
		return false, nil
	case closing:
		p.pos++
		return true, nil
	default:
		return false, fault(RuleSyntax, "expected a comma or the end")
	}
}

// keySet notices duplicate member names: by looking back while an object is
// small, by a map once that would cost more.
type keySet struct{ seen map[string]struct{} }

const keySetLinear = 12

func (k *keySet) add(members []Node, key string) bool {
	if k.seen == nil && len(members) < keySetLinear {
		for i := range members {
			if members[i].Key == key {
				return false
			}
		}
		return true
	}
	if k.seen == nil {
		k.seen = make(map[string]struct{}, 2*keySetLinear)
		for i := range members {
			k.seen[members[i].Key] = struct{}{}
		}
	}
	if _, dup := k.seen[key]; dup {
		return false
	}
	k.seen[key] = struct{}{}
	return true
}
