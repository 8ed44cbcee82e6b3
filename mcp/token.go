package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// MinTokenSecret is the shortest secret that signs or verifies a token, bytes.
const MinTokenSecret = 32

// MaxTokenLength is the longest token that is looked at, bytes. The largest
// claims, every character of them escaped, stay below it.
const MaxTokenLength = 32 << 10

// maxActor bounds the actor claim, code points: a kind, a colon and an identifier.
const maxActor = 512

// ExecutionClaims name the session a token stands for. They carry no authority:
// that is decided per call, from grants.
type ExecutionClaims struct {
	// ExecutionID is the turn, 1 to 256 characters.
	ExecutionID string `json:"executionId"`
	// NamespaceID is the world, 1 to 256 characters.
	NamespaceID string `json:"namespaceId"`
	// Actor is the acting party as [contract.CanonicalActor] renders it, 1 to 512
	// characters. It is compared and never parsed.
	Actor string `json:"actor"`
	// CatalogHash is the hash of the catalogue the turn serves.
	CatalogHash string `json:"catalogHash"`
	// ExpiresAt is the first instant at which the token is no longer accepted.
	ExpiresAt contract.Timestamp `json:"expiresAt"`
}

// Keys are the secrets that may have signed a token. Current is tried first,
// then Previous. A key shorter than [MinTokenSecret] is never used, so the zero
// value accepts nothing.
type Keys struct {
	Current  []byte
	Previous []byte
}

// ExpectedClaims are what a session already knows. A field with its zero value
// is not compared; a claim is never empty.
type ExpectedClaims struct {
	ExecutionID string
	NamespaceID string
	Actor       string
	CatalogHash string
	ExpiresAt   contract.Timestamp
}

// VerifyOptions say against what a token is judged.
type VerifyOptions struct {
	// Now is the instant of the judgement. At the zero instant every token counts
	// as expired.
	Now time.Time
	// Expect are the claims that must be equal.
	Expect ExpectedClaims
}

// TokenReason is why a token was refused.
type TokenReason string

// The reasons, in the order in which they are established.
const (
	TokenMalformed         TokenReason = "malformed"
	TokenSignatureMismatch TokenReason = "signature_mismatch"
	TokenExpired           TokenReason = "expired"
	TokenClaimsMismatch    TokenReason = "claims_mismatch"
)

// TokenError is the refusal of a token. It never repeats any of it.
type TokenError struct{ Reason TokenReason }

// Error implements error.
func (e *TokenError) Error() string { return "execution token refused: " + string(e.Reason) }

// ErrShortSecret says that a signing secret has fewer than [MinTokenSecret] bytes.
var ErrShortSecret = errors.New("the secret of execution tokens needs at least 32 bytes")

// MintExecutionToken signs the claims with HMAC-SHA256. It fails with
// [ErrShortSecret], or when a claim is missing or outside its limit.
func MintExecutionToken(claims ExecutionClaims, secret []byte) (string, error) {
	if len(secret) < MinTokenSecret {
		return "", ErrShortSecret
	}
	if claim := claims.broken(); claim != "" {
		return "", fmt.Errorf("mint execution token: claim %s is missing or outside its limit", claim)
	}
	raw, err := canonical.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("mint execution token: %w", err)
	}
	payload := base64.RawURLEncoding.EncodeToString(raw)
	var mac [signatureLength]byte
	sign(&mac, []byte(payload), secret)
	return payload + "." + string(mac[:]), nil
}

// VerifyExecutionToken checks, in this order, the token's form, its signature in
// constant time, its claims, their expiry, and those that are expected. Its error
// is a [*TokenError].
func VerifyExecutionToken(token string, keys Keys, opts VerifyOptions) (ExecutionClaims, error) {
	if len(token) > MaxTokenLength {
		return refuseToken(TokenMalformed)
	}
	payload, signature, ok := strings.Cut(token, ".")
	if !ok || strings.IndexByte(signature, '.') >= 0 {
		return refuseToken(TokenMalformed)
	}
	text := []byte(payload)
	if !signedBy(text, signature, keys.Current) && !signedBy(text, signature, keys.Previous) {
		return refuseToken(TokenSignatureMismatch)
	}
	claims, ok := parseClaims(text)
	if !ok || claims.broken() != "" {
		return refuseToken(TokenMalformed)
	}
	if opts.Now.IsZero() || !opts.Now.Before(claims.ExpiresAt.Time) {
		return refuseToken(TokenExpired)
	}
	if !opts.Expect.match(&claims) {
		return refuseToken(TokenClaimsMismatch)
	}
	return claims, nil
}

func refuseToken(reason TokenReason) (ExecutionClaims, error) {
	return ExecutionClaims{}, &TokenError{Reason: reason}
}

// signatureLength is 32 bytes in unpadded base64.
const signatureLength = 43

func sign(dst *[signatureLength]byte, payload, secret []byte) {
	mac := hmac.New(sha256.New, secret)
	mac.Write(payload)
	var sum [sha256.Size]byte
	base64.RawURLEncoding.Encode(dst[:], mac.Sum(sum[:0]))
}

// signedBy compares the encoded forms, so that a signature has one spelling.
func signedBy(payload []byte, signature string, secret []byte) bool {
	if len(secret) < MinTokenSecret {
		return false
	}
	var want [signatureLength]byte
	sign(&want, payload, secret)
	return subtle.ConstantTimeCompare(want[:], []byte(signature)) == 1
}

// parseClaims accepts exactly the five claims, each once.
func parseClaims(payload []byte) (ExecutionClaims, bool) {
	raw, err := base64.RawURLEncoding.AppendDecode(nil, payload)
	if err != nil {
		return ExecutionClaims{}, false
	}
	if claims, ok := plainClaims(string(raw)); ok {
		return claims, true
	}
	return anyClaims(raw)
}

// plainClaims reads claims in their canonical form whose values need no escaping,
// which is what [MintExecutionToken] nearly always writes. What it does not
// recognise is left to anyClaims.
func plainClaims(s string) (claims ExecutionClaims, ok bool) {
	var expiresAt string
	for _, member := range [...]struct {
		before string
		value  *string
	}{
		{`{"actor":"`, &claims.Actor},
		{`","catalogHash":"`, &claims.CatalogHash},
		{`","executionId":"`, &claims.ExecutionID},
		{`","expiresAt":"`, &expiresAt},
		{`","namespaceId":"`, &claims.NamespaceID},
	} {
		if s, ok = strings.CutPrefix(s, member.before); !ok {
			return claims, false
		}
		end := 0
		for end < len(s) && s[end] != '"' {
			if s[end] < ' ' || s[end] == '\\' {
				return claims, false
			}
			end++
		}
		*member.value, s = s[:end], s[end:]
	}
	if s != `"}` {
		return claims, false
	}
	at, err := time.Parse(time.RFC3339, expiresAt)
	claims.ExpiresAt = contract.Timestamp{Time: at}
	return claims, err == nil
}

func anyClaims(raw []byte) (claims ExecutionClaims, ok bool) {
	node, err := strictjson.Parse(raw)
	if err != nil || node.Kind != strictjson.Object {
		return claims, false
	}
	for i := range node.Children {
		member := &node.Children[i]
		if member.Kind != strictjson.String {
			return claims, false
		}
		switch member.Key {
		case "executionId":
			claims.ExecutionID = member.Text
		case "namespaceId":
			claims.NamespaceID = member.Text
		case "actor":
			claims.Actor = member.Text
		case "catalogHash":
			claims.CatalogHash = member.Text
		case "expiresAt":
			at, err := time.Parse(time.RFC3339, member.Text)
			if err != nil {
				return claims, false
			}
			claims.ExpiresAt = contract.Timestamp{Time: at}
		default:
			return claims, false
		}
	}
	return claims, true
}

// broken names the first claim that is missing or outside its limit.
func (c *ExecutionClaims) broken() string {
	switch {
	case !identifier(c.ExecutionID):
		return "executionId"
	case !identifier(c.NamespaceID):
		return "namespaceId"
	case !sized(c.Actor, maxActor):
		return "actor"
	case !lowerHex64(c.CatalogHash):
		return "catalogHash"
	case c.ExpiresAt.IsZero():
		return "expiresAt"
	default:
		return ""
	}
}

func (e *ExpectedClaims) match(c *ExecutionClaims) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(e.ExecutionID, c.ExecutionID) && same(e.NamespaceID, c.NamespaceID) &&
		same(e.Actor, c.Actor) && same(e.CatalogHash, c.CatalogHash) &&
		(e.ExpiresAt.IsZero() || e.ExpiresAt.Equal(c.ExpiresAt.Time))
}

func identifier(s string) bool {
	return sized(s, contract.MaxIdentifier) && strings.TrimFunc(s, outerSpace) == s
}

// outerSpace is what an identifier may neither begin nor end with; the byte order
// mark counts, as it does for every identifier.
func outerSpace(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }

// sized reports whether s is valid UTF-8 of 1 to limit code points.
func sized(s string, limit int) bool {
	n := utf8.RuneCountInString(s)
	return n >= 1 && n <= limit && utf8.ValidString(s)
}

func lowerHex64(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
