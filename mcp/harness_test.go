package mcp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/mcp"
)

func TestHarnessConfigFile(t *testing.T) {
	t.Parallel()
	full := mcp.Connection{URL: "http://127.0.0.1:53124/mcp", Token: "e.t", TimeoutSec: 30, Name: "atlas"}
	bare := mcp.Connection{URL: "http://127.0.0.1:53124/mcp"}
	tests := map[string]struct {
		harness    string
		connection mcp.Connection
		filename   string
		want       string
	}{
		"codex": {"codex", full, "config.toml", `[mcp_servers.atlas]
url = "http://127.0.0.1:53124/mcp"
required = true
tool_timeout_sec = 30
default_tools_approval_mode = "approve"
http_headers = { Authorization = "Bearer e.t" }
`},
		"codex without a token": {"codex", bare, "config.toml", `[mcp_servers.sharedos]
url = "http://127.0.0.1:53124/mcp"
required = true
tool_timeout_sec = 120
default_tools_approval_mode = "approve"
`},
		"claude-code": {"claude-code", full, ".mcp.json", `{
  "mcpServers": {
    "atlas": {
      "type": "http",
      "url": "http://127.0.0.1:53124/mcp",
      "headers": {
        "Authorization": "Bearer e.t"
      },
      "alwaysLoad": true
    }
  }
}
`},
		"claude-code without a token": {"claude-code", bare, ".mcp.json", `{
  "mcpServers": {
    "sharedos": {
      "type": "http",
      "url": "http://127.0.0.1:53124/mcp",
      "alwaysLoad": true
    }
  }
}
`},
		"deepseek": {"deepseek", full, "cordis.patch.yml", `- insert:
    - id: "mcp-atlas"
      name: "@deepseek-ai/dsh-mcp-client"
      config:
        serverName: "atlas"
        transport: streamable-http
        url: "http://127.0.0.1:53124/mcp"
        failOnStartupError: true
        toolCallTimeoutMs: 30000
        headers:
          Authorization: "Bearer e.t"
`},
		"pi": {"pi", full, ".mcp.json", `{
  "mcpServers": {
    "atlas": {
      "url": "http://127.0.0.1:53124/mcp",
      "lifecycle": "eager",
      "requestTimeoutMs": 30000,
      "auth": "bearer",
      "bearerToken": "e.t"
    }
  }
}
`},
		"pi without a token": {"pi", bare, ".mcp.json", `{
  "mcpServers": {
    "sharedos": {
      "url": "http://127.0.0.1:53124/mcp",
      "lifecycle": "eager",
      "requestTimeoutMs": 120000
    }
  }
}
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mcp.HarnessConfigFile(tt.harness, tt.connection)
			if err != nil {
				t.Fatal(err)
			}
			want := mcp.ConfigFile{Harness: tt.harness, Filename: tt.filename, Contents: tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := mcp.HarnessConfigFile("gemini", full); !errors.Is(err, mcp.ErrUnknownHarness) {
		t.Errorf("unknown harness: %v", err)
	}
}

// TestConnectionCannotBreakOut: nothing of a connection can add a line, a key or a
// header to a file, and the token stays out of errors.
func TestConnectionCannotBreakOut(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1/mcp"
	bad := map[string]mcp.Connection{
		"no url":              {},
		"relative url":        {URL: "/mcp"},
		"other scheme":        {URL: "file:///etc/passwd"},
		"newline in the url":  {URL: url + "\nx = 1"},
		"name with a dot":     {URL: url, Name: "a.b"},
		"name with a bracket": {URL: url, Name: "a]\n[b"},
		"long name":           {URL: url, Name: strings.Repeat("n", 33)},
		"negative timeout":    {URL: url, TimeoutSec: -1},
		"token with newline":  {URL: url, Token: "secret\r\nX: y"},
		"token with space":    {URL: url, Token: "secret x"},
	}
	for name, c := range bad {
		for _, harness := range []string{"codex", "claude-code", "deepseek", "pi"} {
			_, err := mcp.HarnessConfigFile(harness, c)
			if err == nil {
				t.Errorf("%s: %s accepted it", name, harness)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the error %q repeats the token", name, err)
			}
		}
		if _, err := mcp.AgentSDKOptions(c); err == nil {
			t.Errorf("%s: the SDK options accepted it", name)
		}
	}
	quoted, err := mcp.CodexConfig(mcp.Connection{URL: url, Token: `a"b\c`})
	if err != nil {
		t.Fatal(err)
	}
	if want := `http_headers = { Authorization = "Bearer a\"b\\c" }`; !strings.Contains(quoted, want) {
		t.Errorf("quotes in a token: %s", quoted)
	}
}

func TestAgentSDKOptions(t *testing.T) {
	t.Parallel()
	got, err := mcp.AgentSDKOptions(mcp.Connection{URL: "http://127.0.0.1:1/mcp", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"mcpServers":{"sharedos":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer t"},` +
		`"alwaysLoad":true}},"allowedTools":["mcp__sharedos__*"]}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestAliasVectors(t *testing.T) {
	t.Parallel()
	cases := vector[[]struct{ Tool, Portable, Alias string }](t, "aliases.json")
	if len(cases) < 5 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if got := mcp.PortableName(c.Tool); got != c.Portable {
			t.Errorf("portable %q is %q, want %q", c.Tool, got, c.Portable)
		}
		if got := mcp.HarnessToolAlias("sharedos", c.Tool); got != c.Alias {
			t.Errorf("alias of %q is %q, want %q", c.Tool, got, c.Alias)
		}
	}
	if got := mcp.HarnessToolAlias("s", "é.x"); got != "mcp__s____x" {
		t.Errorf("alias with a letter that is no ASCII: %q", got)
	}
}

func TestToolPolicy(t *testing.T) {
	t.Parallel()
	complete := func(mode mcp.PolicyMode, managed, local, external []string) mcp.ToolPolicy {
		return mcp.ToolPolicy{Mode: mode, ManagedMCP: managed, HarnessLocal: local, ExternalDirect: external}
	}
	none := []string{}
	tests := map[string]struct {
		in      mcp.ToolPolicy
		want    mcp.ToolPolicy
		invalid bool
	}{
		"empty":                    {want: complete("strict", []string{"sharedos"}, none, none)},
		"external makes it hybrid": {in: complete("", nil, nil, []string{"x"}), want: complete("hybrid", []string{"sharedos"}, none, []string{"x"})},
		"hybrid without external":  {in: complete("hybrid", nil, nil, nil), want: complete("hybrid", []string{"sharedos"}, none, none)},
		"own managed":              {in: complete("", []string{"a", "b"}, []string{"Bash"}, nil), want: complete("strict", []string{"a", "b"}, []string{"Bash"}, none)},
		"strict with external":     {in: complete("strict", nil, nil, []string{"x"}), invalid: true},
		"unknown mode":             {in: complete("open", nil, nil, nil), invalid: true},
		"repeated entry":           {in: complete("", nil, []string{"a", "a"}, nil), invalid: true},
		"empty entry":              {in: complete("", nil, []string{""}, nil), invalid: true},
		"managed and external":     {in: complete("", nil, nil, []string{"sharedos"}), invalid: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mcp.NewToolPolicy(tt.in)
			if errors.Is(err, mcp.ErrInvalidPolicy) != tt.invalid {
				t.Fatalf("error %v, want invalid %v", err, tt.invalid)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyHash(t *testing.T) {
	t.Parallel()
	strict, err := mcp.NewToolPolicy(mcp.ToolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := mcp.PolicyHash(strict)
	if err != nil {
		t.Fatal(err)
	}
	// sha256 of {"externalDirect":[],"harnessLocal":[],"managedMcp":["sharedos"],"mode":"strict"}
	const want = "76d26b075ba7d0d72c4f56cbdd8dca6e49635b14d0c69811a15f4c6dc9f30592"
	if hash != want {
		t.Errorf("hash %s, want %s", hash, want)
	}
	hybrid, err := mcp.NewToolPolicy(mcp.ToolPolicy{Mode: mcp.ModeHybrid})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := mcp.PolicyHash(hybrid); err != nil || other == hash {
		t.Errorf("another policy has the hash %s (%v)", other, err)
	}
}

func TestClassifyTool(t *testing.T) {
	t.Parallel()
	policy, err := mcp.NewToolPolicy(mcp.ToolPolicy{HarnessLocal: []string{"Bash"}, ExternalDirect: []string{"github"}})
	if err != nil {
		t.Fatal(err)
	}
	published := []string{"files.read", "github.list-issues"}
	want := map[string]mcp.ToolClass{
		"files.read":                        "managed",
		"files_read":                        "managed",
		"mcp__sharedos__files_read":         "managed",
		"mcp__sharedos__github_list_issues": "managed",
		"mcp__sharedos__files_delete":       "unknown",
		"files.delete":                      "unknown",
		"Bash":                              "harness_local",
		"bash":                              "unknown",
		"mcp__github__list_issues":          "external_direct",
		"mcp__github__":                     "unknown",
		"mcp__other__x":                     "unknown",
		"":                                  "unknown",
	}
	for tool, class := range want {
		if got := mcp.ClassifyTool(policy, published, tool); got != class {
			t.Errorf("%q is %s, want %s", tool, got, class)
		}
	}
}
