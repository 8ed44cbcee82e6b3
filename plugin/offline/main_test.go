package offline_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/plugin/offline"
)

const policies = "../../examples/policies"

// envAgent makes this test binary the agent, which ends with that exit code.
const envAgent = "SHAREDOS_LOCAL_TEST_AGENT"

func TestMain(m *testing.M) {
	switch os.Getenv(envAgent) {
	case "":
		os.Exit(m.Run())
	case "works":
		if err := agent(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(7)
	}
}

// agent says which tools it finds on the bridge.
func agent(ctx context.Context) error {
	transport := &mcp.StreamableClientTransport{
		Endpoint: os.Getenv("SHAREDOS_MCP_URL"), HTTPClient: &http.Client{Transport: bearer(os.Getenv("SHAREDOS_MCP_TOKEN"))}, DisableStandaloneSSE: true,
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range tools.Tools {
		fmt.Println("found", tool.Name)
	}
	return session.Close()
}

// bearer is a token that every request carries.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// call runs sharedos-local and returns its exit code and what it printed.
func call(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = offline.Main(ctx, args, offline.Streams{In: strings.NewReader(""), Out: &o, ErrOut: &e})
	return code, o.String(), e.String()
}

func TestCommands(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The objects are of one world, the case of none.
	placed := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `{apiVersion: sharedos.dev/v1alpha1, kind: Principal, metadata: {name: alice, namespace: w}, spec: {address: {kind: human, userId: alice}}}
---
{apiVersion: sharedos.dev/v1alpha1, kind: Principal, metadata: {name: bot, namespace: w}, spec: {address: {kind: agent, agentId: bot}, authority: alice, owner: alice, purposes: [p]}}
---
{apiVersion: sharedos.dev/v1alpha1, kind: Grant, metadata: {name: read, namespace: w}, spec: {issuer: alice, subject: bot, capabilities: [
  {resource: {namespace: files, path: [Work]}, actions: [read], scope: descendants}]}}
`,
		"case.yaml": `{apiVersion: sharedos.dev/v1alpha1, kind: AuthorizationTest, metadata: {name: one}, spec: {at: "2026-09-15T12:00:00Z", cases: [
			{name: it reads, principal: bot, action: read, resource: "files:Work/a", expect: allowed}]}}`,
	} {
		if err := os.WriteFile(filepath.Join(placed, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		args        []string
		agent       string
		code        int
		out, errOut string // parts of what is printed
	}{
		"test":              {args: []string{"test", policies}, out: "cases, 0 failed"},
		"test, namespace":   {args: []string{"test", placed, "-n", "w"}, out: "1 cases, 0 failed"},
		"test, other world": {args: []string{"test", placed}, code: 1, out: "1 cases, 1 failed"},
		"test, no folder":   {args: []string{"test", "nowhere"}, code: 2, errOut: "nowhere"},
		"test, nothing":     {args: []string{"test"}, code: 2, errOut: "See 'sharedos-local test --help'"},
		"run":               {args: []string{"run", policies, "--principal", "alice-assistant", "--", self}, agent: "works", out: "found sharedos.escalate\n", errOut: "turn completed"},
		"run, quiet":        {args: []string{"run", policies, "-q", "--principal", "alice-assistant", "-o", "json", "--", self}, agent: "works", out: `"status": "succeeded"`},
		"run, fails":        {args: []string{"run", policies, "--principal", "alice-assistant", "--", self}, agent: "fails", code: 1, errOut: "failed: "},
		"run, nobody":       {args: []string{"run", policies, "--principal", "nobody", "--", self}, agent: "works", code: 2, errOut: "nobody"},
		"run, silent":       {args: []string{"run", policies, "--principal", "alice-assistant"}, code: 2, errOut: "See 'sharedos-local run --help'"},
		"run, flag":         {args: []string{"run", policies, "--kubeconfig", "x"}, code: 2, errOut: "unknown flag: --kubeconfig"},
		"unknown":           {args: []string{"can-i"}, code: 2, errOut: "can-i"},
		"help":              {args: nil, out: "tests manifests on this machine"},
		"version":           {args: []string{"--version"}, out: "sharedos-local version "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envAgent, tt.agent)
			code, out, errOut := call(t.Context(), tt.args...)
			if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errOut, tt.errOut) {
				t.Errorf("exit code %d, want %d\n%s--- standard error\n%s", code, tt.code, out, errOut)
			}
		})
	}
}

// What is shown to copy is a call of this program.
func TestExamples(t *testing.T) {
	for _, name := range []string{"run", "test"} {
		code, out, _ := call(t.Context(), name, "--help")
		if code != 0 || !strings.Contains(out, "\n  sharedos-local "+name+" policies/") || strings.Contains(out, "kubectl") {
			t.Errorf("%s, exit code %d:\n%s", name, code, out)
		}
	}
}
