package contract

import (
	"fmt"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// FieldError is the error of every strict parse and every Validate: the path of
// the field and the rule it broke. It never repeats a value.
type FieldError = strictjson.Error

// Rules that Validate adds to those of [strictjson].
const (
	RuleLength  = "length"
	RuleTrimmed = "trimmed"
	RulePattern = "pattern"
	RuleValue   = "value"
	RuleItems   = "items"
	RuleUnique  = "unique"
	RuleOrder   = "order"
)

// Validator is implemented by every protocol object.
type Validator interface{ Validate() error }

// Unmarshal parses one protocol object strictly and validates it: unknown,
// duplicate and case-variant keys, invalid UTF-8, trailing data, missing required
// fields and broken limits are refused. Errors are of type [*FieldError].
func Unmarshal[T any](data []byte) (T, error) {
	var v T
	if err := strictjson.Unmarshal(data, &v, strictjson.Options{}); err != nil {
		var zero T
		return zero, err
	}
	validator, ok := any(v).(Validator)
	if !ok {
		validator, ok = any(&v).(Validator)
	}
	if !ok {
		return v, nil
	}
	if err := validator.Validate(); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// UnmarshalList parses a strict JSON array of protocol objects of at most limit entries.
func UnmarshalList[T Validator](data []byte, limit int) ([]T, error) {
	var list []T
	if err := strictjson.Unmarshal(data, &list, strictjson.Options{}); err != nil {
		return nil, err
	}
	if len(list) > limit {
		return nil, &FieldError{Rule: RuleItems, Detail: fmt.Sprintf("must have at most %d entries", limit)}
	}
	for i := range list {
		if err := list[i].Validate(); err != nil {
			return nil, within(strictjson.Index(i), err)
		}
	}
	return list, nil
}

// within places err's path below prefix.
func within(prefix string, err error) error {
	if fe, ok := err.(*FieldError); ok { //nolint:errorlint // produced unwrapped by this package
		return fe.In(prefix)
	}
	return fmt.Errorf("%s: %w", prefix, err)
}
