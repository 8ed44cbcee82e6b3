package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

var epoch = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// fake is an invoker whose calls the test answers.
type fake struct {
	catalogue contract.Catalogue
	// answer, when set, replaces succeed.
	answer func(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error)
	fault  error // of Catalog

	mu    sync.Mutex
	calls []mcp.Invocation
}

func (f *fake) Catalog(context.Context) (contract.Catalogue, error) { return f.catalogue, f.fault }

func (f *fake) Invoke(ctx context.Context, call mcp.Invocation) (contract.ToolResult, error) {
	call.Arguments = bytes.Clone(call.Arguments)
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(ctx, call)
	}
	for i := range f.catalogue.Tools {
		if f.catalogue.Tools[i].Name == call.Tool {
			return succeed(call, `{"hits":[]}`), nil
		}
	}
	return refuse(call, contract.StatusDenied, contract.CodeToolUnavailable, "The tool is not available.", nil), nil
}

func (f *fake) seen() []mcp.Invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]mcp.Invocation(nil), f.calls...)
}

func succeed(call mcp.Invocation, output string) contract.ToolResult {
	return contract.ToolResult{
		CallID: call.CallID, Tool: call.Tool, Status: contract.StatusSucceeded,
		Output: contract.Value(output), CompletedAt: contract.At(epoch),
	}
}

func refuse(call mcp.Invocation, status contract.Status, code, message string, retryable *bool) contract.ToolResult {
	return contract.ToolResult{
		CallID: call.CallID, Tool: call.Tool, Status: status, CompletedAt: contract.At(epoch),
		Error: &contract.ProtocolError{Code: code, Message: message, Retryable: retryable},
	}
}

// searchTool is the tool of the reference's examples.
func searchTool() contract.PublishedTool {
	return contract.PublishedTool{
		Name: "files.search", Description: "Semantically search files inside an explicitly granted path.",
		InputSchema:  contract.Object(`{ "type": "object", "required": ["path", "query"], "properties": {} }`),
		OutputSchema: contract.Object(`{ "type": "object", "properties": {} }`),
		Annotations:  &contract.PublishedAnnotations{ReadOnlyHint: new(true)},
		Metadata:     &contract.PublishedMetadata{Namespace: "files", Source: "sharedos"},
	}
}

// plainTool declares no output schema.
func plainTool(name string) contract.PublishedTool {
	return contract.PublishedTool{
		Name: name, Description: "The " + name + " tool.", InputSchema: contract.Object(`{"type":"object"}`),
		Annotations: &contract.PublishedAnnotations{ReadOnlyHint: new(true)},
		Metadata:    &contract.PublishedMetadata{Namespace: "files", Source: "sharedos"},
	}
}

func catalogueOf(tb testing.TB, tools ...contract.PublishedTool) contract.Catalogue {
	tb.Helper()
	hash, err := contract.CatalogHash(tools)
	if err != nil {
		tb.Fatal(err)
	}
	return contract.Catalogue{Version: contract.Version, ExecutionID: "execution-1", CatalogHash: hash, Tools: tools}
}

// newFake publishes files.search and files.read.
func newFake(tb testing.TB) *fake {
	tb.Helper()
	return &fake{catalogue: catalogueOf(tb, plainTool("files.read"), searchTool())}
}

func newServer(tb testing.TB, opts mcp.ServerOptions) *mcp.Server {
	tb.Helper()
	if opts.ServerInfo.Version == "" {
		opts.ServerInfo = mcp.ServerInfo{Name: "sharedos", Version: "1"}
	}
	s, err := mcp.NewServer(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// serveHTTP starts a listener that ends with the test.
func serveHTTP(tb testing.TB, opts mcp.HTTPOptions) *mcp.HTTPServer {
	tb.Helper()
	s, err := mcp.NewHTTPServer(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// answer is an HTTP answer, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// send makes one request with header lines "name: value".
func send(tb testing.TB, method, url, body string, headers ...string) answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(raw)}
}

const jsonType = "content-type: application/json"

var errBroken = errors.New("broken inside")

// noDeadline lifts a deadline.
var noDeadline time.Time
