package identity

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// maxClaims is the longest encoded payload of a token that is looked at, in bytes.
const maxClaims = 16 << 10

// expiryOf reads the exp claim of a JSON Web Token (RFC 7519, 4.1.4) without
// verifying anything; the zero time if there is none to be read. It may only shorten
// what somebody who did verify has said.
func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(parts[1]) > maxClaims {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Exp < 1 || claims.Exp > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
