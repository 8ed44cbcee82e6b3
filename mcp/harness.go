package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The harnesses a connection file can be made for.
const (
	HarnessCodex      = "codex"
	HarnessClaudeCode = "claude-code"
	HarnessDeepSeek   = "deepseek"
	HarnessPi         = "pi"
)

// DefaultTimeoutSec is the per-call timeout of a connection file, seconds.
const DefaultTimeoutSec = 120

// Connection is all that a harness's file declares: where to connect and how. It
// names no tool.
type Connection struct {
	// URL is the Streamable HTTP endpoint, http or https.
	URL string
	// Name is the server's name inside the harness, 1 to 32 of A-Z a-z 0-9 _ -; the
	// default is [DefaultServerName].
	Name string
	// TimeoutSec is the per-call timeout, seconds; the default is [DefaultTimeoutSec].
	TimeoutSec int
	// Token is the bearer token, if there is one.
	Token string
}

// ConfigFile is the connection file of one harness.
type ConfigFile struct {
	Harness  string
	Filename string
	Contents string
}

// ErrUnknownHarness says that no connection file is known for a harness.
var ErrUnknownHarness = errors.New("unknown harness")

// HarnessConfigFile returns the connection file that a harness expects. It holds the
// token: write it where only the harness can read it.
func HarnessConfigFile(harness string, c Connection) (ConfigFile, error) {
	var contents string
	var err error
	filename := ".mcp.json"
	switch harness {
	case HarnessCodex:
		filename = "config.toml"
		contents, err = CodexConfig(c)
	case HarnessClaudeCode:
		contents, err = ClaudeCodeConfig(c)
	case HarnessDeepSeek:
		filename = "cordis.patch.yml"
		contents, err = DeepSeekConfig(c)
	case HarnessPi:
		contents, err = PiConfig(c)
	default:
		return ConfigFile{}, fmt.Errorf("%w: %q", ErrUnknownHarness, harness)
	}
	if err != nil {
		return ConfigFile{}, err
	}
	return ConfigFile{Harness: harness, Filename: filename, Contents: contents}, nil
}

// CodexConfig is the server's table in Codex's config.toml. Without the approval
// mode Codex itself refuses tools that are not marked read-only; with required it
// does not start without the server.
func CodexConfig(c Connection) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", c.Name)
	fmt.Fprintf(&b, "url = %s\n", quoted(c.URL))
	b.WriteString("required = true\n")
	fmt.Fprintf(&b, "tool_timeout_sec = %d\n", c.TimeoutSec)
	b.WriteString("default_tools_approval_mode = \"approve\"\n")
	if c.Token != "" {
		fmt.Fprintf(&b, "http_headers = { Authorization = %s }\n", quoted("Bearer "+c.Token))
	}
	return b.String(), nil
}

// ClaudeServer is Claude Code's block for one server.
type ClaudeServer struct {
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// AlwaysLoad keeps the tools from being hidden behind a search tool: the
	// catalogue is filtered already.
	AlwaysLoad bool `json:"alwaysLoad"`
}

// ClaudeCodeConfig is Claude Code's .mcp.json.
func ClaudeCodeConfig(c Connection) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	return indented(map[string]any{"mcpServers": map[string]any{c.Name: c.claude()}})
}

// SDKOptions are the options of the Claude Agent SDK that concern MCP.
type SDKOptions struct {
	MCPServers   map[string]ClaudeServer `json:"mcpServers"`
	AllowedTools []string                `json:"allowedTools"`
}

// AgentSDKOptions allows every tool of the server, and only those: what they may do
// is decided per call by the kernel.
func AgentSDKOptions(c Connection) (SDKOptions, error) {
	if err := c.complete(); err != nil {
		return SDKOptions{}, err
	}
	return SDKOptions{
		MCPServers:   map[string]ClaudeServer{c.Name: c.claude()},
		AllowedTools: []string{"mcp__" + c.Name + "__*"},
	}, nil
}

// DeepSeekConfig is a patch of DeepSeek Harness's plugin tree that inserts its MCP
// client.
func DeepSeekConfig(c Connection) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("- insert:\n")
	fmt.Fprintf(&b, "    - id: %s\n", quoted("mcp-"+c.Name))
	b.WriteString("      name: \"@deepseek-ai/dsh-mcp-client\"\n")
	b.WriteString("      config:\n")
	fmt.Fprintf(&b, "        serverName: %s\n", quoted(c.Name))
	b.WriteString("        transport: streamable-http\n")
	fmt.Fprintf(&b, "        url: %s\n", quoted(c.URL))
	b.WriteString("        failOnStartupError: true\n")
	fmt.Fprintf(&b, "        toolCallTimeoutMs: %d\n", c.timeoutMs())
	if c.Token != "" {
		b.WriteString("        headers:\n")
		fmt.Fprintf(&b, "          Authorization: %s\n", quoted("Bearer "+c.Token))
	}
	return b.String(), nil
}

// PiConfig is the .mcp.json that pi-mcp-adapter reads; Pi has no MCP client itself.
func PiConfig(c Connection) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	type server struct {
		URL              string `json:"url"`
		Lifecycle        string `json:"lifecycle"`
		RequestTimeoutMs int64  `json:"requestTimeoutMs"`
		Auth             string `json:"auth,omitempty"`
		BearerToken      string `json:"bearerToken,omitempty"`
	}
	s := server{URL: c.URL, Lifecycle: "eager", RequestTimeoutMs: c.timeoutMs()}
	if c.Token != "" {
		s.Auth, s.BearerToken = "bearer", c.Token
	}
	return indented(map[string]any{"mcpServers": map[string]any{c.Name: s}})
}

func (c *Connection) claude() ClaudeServer {
	s := ClaudeServer{Type: "http", URL: c.URL, AlwaysLoad: true}
	if c.Token != "" {
		s.Headers = map[string]string{"Authorization": "Bearer " + c.Token}
	}
	return s
}

func (c *Connection) timeoutMs() int64 {
	return (time.Duration(c.TimeoutSec) * time.Second).Milliseconds()
}

// maxTimeoutSec bounds the timeout so that no harness overflows on it: a day.
const maxTimeoutSec = 24 * 60 * 60

// complete fills in the defaults and refuses what could break out of a file. Its
// errors never repeat the token.
func (c *Connection) complete() error {
	if c.Name == "" {
		c.Name = DefaultServerName
	}
	if c.TimeoutSec == 0 {
		c.TimeoutSec = DefaultTimeoutSec
	}
	switch u, err := url.Parse(c.URL); {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || !printable(c.URL):
		return errors.New("connection: the URL is not an absolute http or https URL")
	case !serverName(c.Name):
		return errors.New("connection: the name must be 1 to 32 of A-Z a-z 0-9 _ -")
	case c.TimeoutSec < 0 || c.TimeoutSec > maxTimeoutSec:
		return errors.New("connection: the timeout must be 1 to " + strconv.Itoa(maxTimeoutSec) + " seconds")
	case !printable(c.Token):
		return errors.New("connection: the token holds a character that no header may hold")
	}
	return nil
}

// maxServerName is the tightest limit among the harnesses, DeepSeek's.
const maxServerName = 32

func serverName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxServerName
}

// printable allows visible ASCII.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// quoted writes printable ASCII as a string of TOML, of YAML and of JSON alike.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func indented(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("encode connection file: %w", err)
	}
	return buf.String(), nil
}
