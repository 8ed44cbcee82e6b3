// Package canonical writes JSON in the one form that is hashed (RFC 8785) and
// computes the only thing this system calls a hash: lower-case hexadecimal
// SHA-256 over that form.
package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Marshal returns the canonical JSON of v.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return Transform(buf.Bytes())
}

// Hash returns the hash of v's canonical JSON.
func Hash(v any) (string, error) {
	data, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return HashBytes(data), nil
}

// HashBytes returns the hash of bytes that are canonical JSON already.
func HashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
