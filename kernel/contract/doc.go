// Package contract holds the protocol v1 objects: the JSON that crosses a trust
// boundary, its limits, and the strict parsing that every boundary uses.
//
// A value that came out of [Unmarshal] is complete and within its limits; code
// behind the boundary never checks its shape again. Unknown fields, duplicate
// keys and keys that differ from a known one only in case are refused.
package contract

// Version is the literal protocol version of every versioned object.
const Version = "1"
