package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// connection is the one server of an .mcp.json file.
type connection struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

func readConnection(path string) (connection, error) {
	if path == "" {
		return connection{}, errors.New(envConfig + " is not set")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return connection{}, fmt.Errorf("read connection file: %w", err)
	}
	var file struct {
		Servers map[string]connection `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		// The file holds a token, which a decoder's error could quote.
		return connection{}, errors.New("read connection file: it is not JSON of the expected form")
	}
	if len(file.Servers) != 1 {
		return connection{}, fmt.Errorf("read connection file: it names %d servers, want 1", len(file.Servers))
	}
	for _, c := range file.Servers {
		if c.URL == "" {
			break
		}
		return c, nil
	}
	return connection{}, errors.New("read connection file: the server has no url")
}

// httpClient adds the connection's headers to every request.
func (c connection) httpClient() *http.Client {
	return &http.Client{Transport: withHeaders{c.Headers, http.DefaultTransport}}
}

type withHeaders struct {
	headers map[string]string
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	return w.next.RoundTrip(r)
}

// tokenClaims are the claims of an execution token that a reader may compare. They
// are not secret; the signature is left alone.
type tokenClaims struct {
	ExecutionID string `json:"executionId"`
	CatalogHash string `json:"catalogHash"`
}

// claims reads the bearer's claims, or nothing when it has none.
func (c connection) claims() *tokenClaims {
	payload, _, _ := strings.Cut(strings.TrimPrefix(c.Headers["Authorization"], "Bearer "), ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil
	}
	var claims tokenClaims
	if json.Unmarshal(raw, &claims) != nil || claims.CatalogHash == "" {
		return nil
	}
	return &claims
}
