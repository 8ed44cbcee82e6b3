package contract

import (
	"encoding/json"
	"fmt"
	"time"
)

// Value is any JSON value with its exact digits; it is never routed through float64.
type Value = json.RawMessage

// Object is a JSON object with its exact digits.
type Object = json.RawMessage

// Timestamp is an RFC 3339 instant with an offset.
type Timestamp struct{ time.Time }

// At makes a Timestamp in UTC.
func At(t time.Time) Timestamp { return Timestamp{t.UTC()} }

// timestampLayout always shows at least the milliseconds that other SharedOS
// implementations write; a finer fraction is kept by RFC 3339 nano digits.
const timestampLayout = "2006-01-02T15:04:05.000Z07:00"

// strictInstant refuses what the time package accepts beyond RFC 3339: an hour of
// one digit, a comma before the fraction, an offset that is no time of day.
func strictInstant(s string) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || s[len("2006-01-02T15")] != ':' || s[seconds] == ',' {
		return false
	}
	if s[len(s)-1] == 'Z' {
		return true
	}
	offset := s[len(s)-len("00:00"):]
	return offset[:2] < "24" && offset[3:] < "60"
}

// String returns the wire form.
func (t Timestamp) String() string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.Format(time.RFC3339Nano)
	}
	return t.Format(timestampLayout)
}

// MarshalJSON implements [json.Marshaler].
func (t Timestamp) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("timestamp must be a string: %w", err)
	}
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil || !strictInstant(s) {
		return fmt.Errorf("timestamp %q is not RFC 3339 with an offset", s)
	}
	t.Time = parsed
	return nil
}
