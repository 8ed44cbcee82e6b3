package peers_test

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

// withToken adds the bearer token to every request.
type withToken struct{}

func (withToken) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(req)
}

// seen is what a client made of one call.
type seen struct {
	Text       string
	IsError    bool
	Status     string
	Code       string
	Structured bool
}

// denied is a refusal: its text alone says that it is one.
func denied(code, more string) seen {
	return seen{
		Text:    `{"status":"denied","code":"` + code + `","message":"` + kernel.MessageFor(code) + `"` + more + `}`,
		IsError: true, Status: "denied", Code: code,
	}
}

// script is the calls that every peer makes, and what it must see of them.
var script = []struct {
	tool      string
	arguments map[string]any
	want      seen
}{
	{"files.read", map[string]any{"path": []string{"Work", "plan.md"}}, seen{Text: "Atlas ships on Friday. (plan.md)"}},
	{"files.read", map[string]any{"path": []string{"Home"}}, denied(contract.CodeNoMatchingGrant, "")},
	{"files.list", map[string]any{"path": []string{"Work"}}, seen{Text: `{"entries":["atlas","plan.md"]}`, Structured: true}},
	{"files.delete", map[string]any{"path": []string{"Work"}}, denied(contract.CodeToolUnavailable, "")},
	{"sharedos.escalate", map[string]any{"reason": "Home is needed."}, seen{
		Text: `{"escalated":true,"note":"A human will decide. This turn has ended by asking: no further call runs on it, and nothing was granted.","reason":"Home is needed."}`,
	}},
	{"files.read", map[string]any{"path": []string{"Work"}}, denied(contract.CodeEscalationPending, `,"retryable":false`)},
}

func driveGoSDK(t *testing.T, transport mcp.Transport) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	info := session.InitializeResult()
	if info.ProtocolVersion != "2025-06-18" || info.ServerInfo.Name != "sharedos" {
		t.Errorf("initialized with %+v", info)
	}
	if info.Capabilities.Tools == nil || info.Capabilities.Tools.ListChanged || info.Capabilities.Resources != nil || info.Capabilities.Prompts != nil {
		t.Errorf("capabilities %+v", info.Capabilities)
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Errorf("ping: %v", err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || tool.Meta["sharedos/namespace"] == "" {
			t.Errorf("tool %+v", tool)
		}
	}
	if diff := cmp.Diff([]string{"files.list", "files.read", "sharedos.escalate"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if list.Meta["sharedos/executionId"] != "execution-1" || list.NextCursor != "" {
		t.Errorf("list meta %v, cursor %q", list.Meta, list.NextCursor)
	}
	for i, call := range script {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		got := seen{IsError: result.IsError, Structured: result.StructuredContent != nil}
		got.Status, _ = result.Meta["sharedos/status"].(string)
		got.Code, _ = result.Meta["sharedos/code"].(string)
		if text, ok := result.Content[0].(*mcp.TextContent); ok && len(result.Content) == 1 {
			got.Text = text.Text
		}
		if diff := cmp.Diff(call.want, got); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
	}
	if err := session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestGoSDKStreamable(t *testing.T) {
	t.Parallel()
	turn, bridge := open(t, turn.Options{}, true)
	driveGoSDK(t, &mcp.StreamableClientTransport{Endpoint: bridge.URL(), HTTPClient: &http.Client{Transport: withToken{}}})
	if aliases := turn.Bridge.Aliases(); len(aliases) != 0 {
		t.Errorf("aliases %v", aliases)
	}
}

func TestGoSDKCommand(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(slices.Clone(os.Environ()), asServer+"=1")
	cmd.Stderr = os.Stderr
	driveGoSDK(t, &mcp.CommandTransport{Command: cmd})
}

// TestGoSDKRefused: without the token a client does not even connect.
func TestGoSDKRefused(t *testing.T) {
	t.Parallel()
	turn, bridge := open(t, turn.Options{}, true)
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	if _, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: bridge.URL(), MaxRetries: -1}, nil); err == nil {
		t.Error("connected without a token")
	}
	if turn.Server.Initialized() {
		t.Error("initialized without a token")
	}
}
