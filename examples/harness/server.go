package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The environment of serve.
const (
	envAddress     = "ADDRESS"
	envCredential  = "CREDENTIAL"
	envCertificate = "TLS_CERTIFICATE"
	envKey         = "TLS_KEY"
)

// page is what get-page takes.
type page struct {
	Page string `json:"page" jsonschema:"the page's name"`
}

// serve is the other side of a brokered tool, for tests: an MCP server with one tool,
// which answers only those who show a credential. It says of every call that it came.
func serve(ctx context.Context, getenv func(string) string, out io.Writer) error {
	if getenv(envCredential) == "" {
		return errors.New(envCredential + " is not set")
	}
	certificate, err := tls.X509KeyPair([]byte(getenv(envCertificate)), []byte(getenv(envKey)))
	if err != nil {
		return fmt.Errorf("read %s and %s: %w", envCertificate, envKey, err)
	}
	s := &http.Server{Addr: getenv(envAddress), Handler: pages("Bearer "+getenv(envCredential), out), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = s.Close()
	}()
	err = s.ListenAndServeTLS("", "")
	if ctx.Err() != nil {
		<-stopped
		return nil //nolint:nilerr // closed because it was to end
	}
	return fmt.Errorf("serve: %w", err)
}

// pages is the server's handler.
func pages(authorization string, out io.Writer) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "pages", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get-page", Description: "Gets a page."},
		func(_ context.Context, _ *mcp.CallToolRequest, in page) (*mcp.CallToolResult, any, error) {
			fmt.Fprintln(out, "authorized call for", in.Page)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the text of " + in.Page}}}, nil, nil
		})
	next := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(authorization)) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
