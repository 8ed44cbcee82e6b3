package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const token = "secret-of-the-bridge"

// bridgeServer is another MCP server with what a bridge adds to its answers.
func bridgeServer(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "sharedos", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "files.read", InputSchema: schema},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if strings.Contains(string(r.Params.Arguments), "salaries") {
				return &mcp.CallToolResult{
					IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: `{"status":"denied"}`}},
					Meta: mcp.Meta{metaStatus: "denied", metaCode: "no_matching_grant"},
				}, nil
			}
			return &mcp.CallToolResult{
				Content:           []mcp.Content{&mcp.TextContent{Text: "hello"}},
				StructuredContent: map[string]any{"content": "hello"},
			}, nil
		})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			if list, ok := result.(*mcp.ListToolsResult); ok {
				list.Meta = mcp.Meta{metaCatalogHash: "hash", metaExecutionID: "turn"}
			}
			return result, err
		}
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// pod writes the two files and returns the environment.
func pod(t *testing.T, url, bearer, payload string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, ".mcp.json")
	message := filepath.Join(dir, "message.json")
	for path, content := range map[string]string{
		config:  `{"mcpServers":{"sharedos":{"type":"http","url":"` + url + `","headers":{"Authorization":"Bearer ` + bearer + `"}}}}`,
		message: `{"id":"m","payload":` + payload + `}`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) string { return map[string]string{envConfig: config, envMessage: message}[name] }
}

func runIn(ctx context.Context, t *testing.T, env func(string) string) (int, report) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(ctx, env, &stdout, &stderr)
	if strings.Contains(stdout.String()+stderr.String(), token) {
		t.Error("the token was printed")
	}
	decoder := json.NewDecoder(&stdout)
	var r report
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if decoder.More() {
		t.Error("there is more on standard output than one report")
	}
	return code, r
}

func TestAPlainMessageGetsTheCallsOfTheSamples(t *testing.T) {
	code, r := runIn(t.Context(), t, pod(t, bridgeServer(t), token, `{"text":"When does Atlas ship?"}`))
	if code != 0 || r.Error != "" || r.CatalogHash != "hash" || r.ExecutionID != "turn" || !slices.Equal(r.Tools, []string{"files.read"}) {
		t.Errorf("exit %d, report %+v", code, r)
	}
	if len(r.Calls) != len(defaultTask().Calls) {
		t.Fatalf("%d calls", len(r.Calls))
	}
	if c := r.Calls[1]; c.IsError || c.Status != "succeeded" || c.Text != "hello" || c.Structured == nil {
		t.Errorf("allowed call = %+v", c)
	}
	if c := r.Calls[2]; !c.IsError || c.Status != "denied" || c.Code != "no_matching_grant" {
		t.Errorf("denied call = %+v", c)
	}
	if c := r.Calls[3]; !c.IsError || c.Status != "error" || c.Code == "" {
		t.Errorf("call of an unknown tool = %+v", c)
	}
}

func TestATaskSaysWhatToDo(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	payload := `{"calls":[{"tool":"files.read"}],"exitCode":7,"probe":["` + secret + `","` + secret + `-absent"]}`
	code, r := runIn(t.Context(), t, pod(t, bridgeServer(t), token, payload))
	if code != 7 || len(r.Calls) != 1 || r.Calls[0].Status != "succeeded" {
		t.Errorf("exit %d, report %+v", code, r)
	}
	if len(r.Probe) != 2 || !r.Probe[0].Readable || r.Probe[0].Result != "5 bytes" ||
		r.Probe[1].Readable || !strings.Contains(r.Probe[1].Result, "no such file") {
		t.Errorf("probe = %+v", r.Probe)
	}
}

func TestFailuresAreReported(t *testing.T) {
	url := bridgeServer(t)
	for name, tt := range map[string]struct {
		env  func(string) string
		want string
	}{
		"wrong token": {pod(t, url, "wrong", `"x"`), "connect to the bridge"},
		"no bridge":   {pod(t, "http://127.0.0.1:1/mcp", token, `"x"`), "connect to the bridge"},
		"no message":  {func(string) string { return "" }, "is not set"},
		"bad task":    {pod(t, url, token, `{"callls":[]}`), "callls"},
	} {
		t.Run(name, func(t *testing.T) {
			code, r := runIn(t.Context(), t, tt.env)
			if code != exitFailed || !strings.Contains(r.Error, tt.want) {
				t.Errorf("exit %d, error %q", code, r.Error)
			}
		})
	}
}

func TestTermination(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, r := runIn(ctx, t, pod(t, bridgeServer(t), token, `{"sleepSeconds":600}`))
	if code != exitTerminated || r.Error != "terminated" {
		t.Errorf("exit %d, report %+v", code, r)
	}
}

func TestParseTask(t *testing.T) {
	for payload, want := range map[string]int{ // calls, -1 for an error
		`"hello"`: len(defaultTask().Calls), `{"text":"hello"}`: len(defaultTask().Calls), `{"text":"{\"calls\":[]}"}`: 0,
		`{}`: 0, `{"calls":[{"tool":"a"}]}`: 1, `{"exitCode":256}`: -1, `{"sleepSeconds":-1}`: -1, `[]`: -1, `7`: -1, `{"text":7}`: -1,
	} {
		got, err := parseTask(json.RawMessage(payload))
		if (err != nil) != (want < 0) || (err == nil && len(got.Calls) != want) {
			t.Errorf("%s: %d calls, %v; want %d", payload, len(got.Calls), err, want)
		}
	}
}

func TestReadConnection(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": `"` + token, "none": `{"mcpServers":{}}`, "two": `{"mcpServers":{"a":{"url":"x"},"b":{"url":"y"}}}`, "no url": `{"mcpServers":{"a":{}}}`,
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readConnection(path); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
