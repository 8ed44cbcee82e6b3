// Package strictjson reads JSON that crosses a trust boundary, in the one way two
// parsers cannot disagree about: valid UTF-8, no duplicate keys, no lone
// surrogates, no trailing data, numbers kept as their exact digits and finite,
// nesting and the number of values bounded.
//
// [Unmarshal] also refuses unknown fields and keys that differ from a known one
// only in case. Inside a [encoding/json.RawMessage] field only duplicates are
// refused: raw data has no known keys.
package strictjson
