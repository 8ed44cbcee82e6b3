package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestPagesAskForTheCredential(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	web := httptest.NewServer(pages("Bearer right", &said))
	t.Cleanup(web.Close)
	for authorization, want := range map[string]bool{"Bearer right": true, "Bearer wrong": false, "": false} {
		said.Reset()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: web.URL, HTTPClient: &http.Client{Transport: withHeaders{map[string]string{"Authorization": authorization}, http.DefaultTransport}},
		}, nil)
		if got := err == nil; got != want {
			t.Fatalf("%q: %v", authorization, err)
		}
		if !want {
			continue
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "get-page", Arguments: map[string]any{"page": "atlas"}})
		if err != nil || result.IsError || !strings.Contains(said.String(), "call for atlas") {
			t.Errorf("%+v %v; it said %q", result, err, said.String())
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}
