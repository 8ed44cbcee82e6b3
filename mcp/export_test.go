package mcp

import "encoding/base64"

// SignForTest makes a token with a good signature over any payload.
func SignForTest(raw, secret []byte) string {
	payload := base64.RawURLEncoding.EncodeToString(raw)
	var mac [signatureLength]byte
	sign(&mac, []byte(payload), secret)
	return payload + "." + string(mac[:])
}
