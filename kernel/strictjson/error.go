package strictjson

import (
	"strconv"
	"strings"
)

// Rules that an [Error] may name.
const (
	RuleSyntax        = "syntax"
	RuleUTF8          = "utf8"
	RuleDuplicateKey  = "duplicate_key"
	RuleTrailingData  = "trailing_data"
	RuleDepth         = "depth"
	RuleTooManyValues = "too_many_values"
	RuleNumber        = "number_range"
	RuleType          = "type"
	RuleUnknownField  = "unknown_field"
	RuleCaseVariant   = "case_variant"
	RuleRequired      = "required"
	RuleNull          = "null"
)

// Error says which rule a document broke and where.
type Error struct {
	// Path leads to the value, as in capabilities[0].resource.path; empty is the
	// document itself.
	Path string
	// Rule is a stable name of the broken rule.
	Rule string
	// Detail explains it; it never repeats a value from the document.
	Detail string
}

// Error implements error.
func (e *Error) Error() string {
	path := e.Path
	if path == "" {
		path = "document"
	}
	return path + ": " + e.Detail + " (" + e.Rule + ")"
}

// In returns e with its path placed below the field or index prefix.
func (e *Error) In(prefix string) *Error {
	return &Error{Path: Join(prefix, e.Path), Rule: e.Rule, Detail: e.Detail}
}

// Join places path below prefix.
func Join(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "" || strings.HasPrefix(path, "["):
		return prefix + path
	default:
		return prefix + "." + path
	}
}

// Index is the path element of a list's entry.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func fault(rule, detail string) *Error { return &Error{Rule: rule, Detail: detail} }
