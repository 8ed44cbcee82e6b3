package mcp

import (
	"errors"
	"strings"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// MaxBatch is the most entries of a batch.
const MaxBatch = 1024

// parseDocument reads one strict JSON document, a message or a batch.
func parseDocument(data []byte) (strictjson.Node, *RPCError) {
	node, err := strictjson.Parse(data)
	if err == nil {
		return node, nil
	}
	rule := strictjson.RuleSyntax
	if broken, ok := errors.AsType[*strictjson.Error](err); ok {
		rule = broken.Rule
	}
	return strictjson.Node{}, unreadable(rule)
}

// shape says what a value is to JSON-RPC.
type shape int

const (
	// shapeNone is no message, and has no id to answer to.
	shapeNone shape = iota
	// shapeInvalid has an id and is no request.
	shapeInvalid
	shapeNotification
	shapeRequest
)

// message is one JSON-RPC message. Its id is as it was written.
type message struct {
	shape  shape
	id     []byte
	idKey  string
	method string
	params strictjson.Node
}

// classify reads a value as a message.
func classify(node *strictjson.Node) message {
	var m message
	if node.Kind != strictjson.Object || hasCaseVariant(node, isMessageKey, messageKeys) {
		return m
	}
	version, named, unusableID := false, false, false
	for i := range node.Children {
		member := &node.Children[i]
		switch member.Key {
		case "jsonrpc":
			version = member.Kind == strictjson.String && member.Text == "2.0"
		case "id":
			unusableID = !usableID(member)
			if !unusableID {
				m.id, m.idKey = member.Raw, idKey(member)
			}
		case "method":
			m.method, named = member.Text, member.Kind == strictjson.String
		case "params":
			m.params = *member
		}
	}
	if !unusableID {
		m.shape = shapeOf(m.id != nil, version && named)
	}
	return m
}

func shapeOf(id, call bool) shape {
	switch {
	case id && call:
		return shapeRequest
	case id:
		return shapeInvalid
	case call:
		return shapeNotification
	default:
		return shapeNone
	}
}

func usableID(node *strictjson.Node) bool {
	return node.Kind == strictjson.String || node.Kind == strictjson.Number
}

// idKey tells ids apart whose text is equal but whose type is not.
func idKey(node *strictjson.Node) string {
	if node.Kind == strictjson.Number {
		return "#" + node.Text
	}
	return "$" + node.Text
}

var (
	messageKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramKeys   = []string{
		"name", "arguments", "_meta", "protocolVersion", "capabilities", "clientInfo", "cursor", "requestId", "reason",
	}
)

func isMessageKey(key string) bool {
	switch key {
	case "jsonrpc", "id", "method", "params", "result", "error":
		return true
	}
	return false
}

func isParamKey(key string) bool {
	switch key {
	case "name", "arguments", "_meta", "protocolVersion", "capabilities", "clientInfo", "cursor", "requestId", "reason":
		return true
	}
	return false
}

// hasCaseVariant reports whether a member's name differs from a known one only in
// case: another parser could take the one for the other.
func hasCaseVariant(node *strictjson.Node, known func(string) bool, keys []string) bool {
	for i := range node.Children {
		key := node.Children[i].Key
		if known(key) {
			continue
		}
		for _, k := range keys {
			if strings.EqualFold(k, key) {
				return true
			}
		}
	}
	return false
}
