package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	official "github.com/modelcontextprotocol/go-sdk/mcp"
)

// envPlugin makes this test binary the plugin, or with the argument agent its harness.
const envPlugin = "KUBECTL_SHAREDOS_TEST"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envPlugin) == "":
		os.Exit(m.Run())
	case len(os.Args) == 2 && os.Args[1] == "agent":
		if err := agent(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		main()
	}
}

// agent reads an allowed and a denied page over the bridge, and prints what it got.
func agent(ctx context.Context) error {
	transport := &official.StreamableClientTransport{
		Endpoint: os.Getenv("SHAREDOS_MCP_URL"), HTTPClient: &http.Client{Transport: bearer(os.Getenv("SHAREDOS_MCP_TOKEN"))}, DisableStandaloneSSE: true,
	}
	session, err := official.NewClient(&official.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	for _, page := range []string{"atlas/plan", "salaries"} {
		result, err := session.CallTool(ctx, &official.CallToolParams{Name: "wiki.read", Arguments: map[string]any{"page": page}})
		if err != nil {
			return err
		}
		text, ok := result.Content[0].(*official.TextContent)
		if !ok {
			return errors.New("the first content is no text")
		}
		fmt.Println(page, result.IsError, strings.Contains(text.Text, "the text of "+page))
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

// printed is what one call of the plugin left.
type printed struct {
	code        int
	out, errOut string
}

// call runs the plugin as a process of its own, with this binary as the agent.
func call(t *testing.T, args ...string) printed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	cmd := exec.CommandContext(t.Context(), self, append(append([]string{"local", "run"}, args...), "--", self, "agent")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), envPlugin+"=1"), &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return printed{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

const manifests = `apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: wiki}
spec:
  enabled: true
  source:
    mcp:
      service: {name: wiki, port: 8080}
      tls: {caFrom: {configMapKeyRef: {name: wiki-ca, key: ca.crt}}}
      headersFrom: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: wiki-key, key: token}}]
  tools:
    - name: wiki.read
      upstream: get_page
      readWrite: read
      schemaDigest: "DIGEST"
      requirement:
        action: read
        resource: {namespace: wiki, path: "['pages'] + args.page.segments()", ceiling: [pages]}
---
apiVersion: sharedos.dev/v1alpha1
kind: Grant
metadata: {name: read-wiki}
spec:
  issuer: alice
  subject: alice-assistant
  capabilities: [{resource: {namespace: wiki, path: [pages, atlas]}, actions: [read], scope: descendants}]
`

const key = "the-key-of-the-wiki"

// wiki is an MCP server on loopback that asks for the key, and the folder of what it
// takes to reach it.
func wiki(t *testing.T) (at, secrets string) {
	t.Helper()
	server := official.NewServer(&official.Implementation{Name: "wiki", Version: "1"}, nil)
	type page struct {
		Page string `json:"page"`
	}
	official.AddTool(server, &official.Tool{Name: "get_page", Description: "A page."},
		func(_ context.Context, _ *official.CallToolRequest, in page) (*official.CallToolResult, any, error) {
			return &official.CallToolResult{Content: []official.Content{&official.TextContent{Text: "the text of " + in.Page}}}, nil, nil
		})
	handler := official.NewStreamableHTTPHandler(func(*http.Request) *official.Server { return server }, nil)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	secrets = t.TempDir()
	write(t, filepath.Join(secrets, "wiki-key", "token"), key+"\n")
	write(t, filepath.Join(secrets, "wiki-ca", "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	return web.URL, secrets
}

func with(args []string, more ...string) []string { return slices.Concat(args, more) }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLocalRunUpstream: --upstream, --secrets and --egress-allow reach an MCP server on
// this machine that the manifests call a Service of a cluster; without one of them no
// turn runs.
func TestLocalRunUpstream(t *testing.T) {
	at, secrets := wiki(t)
	file := filepath.Join(t.TempDir(), "wiki.yaml")
	world := []string{filepath.Join("..", "..", "examples", "policies"), file, "-n", "team-atlas", "--principal", "alice-assistant", "--without", "files"}
	all := with(world, "--upstream", "wiki="+at, "--secrets", secrets, "--egress-allow", "127.0.0.1,::1")

	write(t, file, strings.Replace(manifests, "      schemaDigest: \"DIGEST\"\n", "", 1))
	told := call(t, all...).errOut
	found := regexp.MustCompile(`wiki\.read: SchemaNotPinned, schemaDigest ([0-9a-f]{64}): read`).FindStringSubmatch(told)
	if found == nil {
		t.Fatalf("the digest to pin was not told:\n%s", told)
	}
	write(t, file, strings.Replace(manifests, "DIGEST", found[1], 1))

	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errOut string
	}{
		"all three": {all, 0, "atlas/plan false true\nsalaries true false\n", "tools of wiki: ready, Available: 1 tools"},
		"no address": {
			with(world, "--secrets", secrets, "--egress-allow", "127.0.0.1"), 2, "", "say with --upstream wiki=URL where it is",
		},
		"no secrets": {
			with(world, "--upstream", "wiki="+at, "--egress-allow", "127.0.0.1"), 1, "",
			`tools of wiki: not ready, CredentialsNotFound: `,
		},
		"loopback is not allowed": {
			with(world, "--upstream", "wiki="+at, "--secrets", secrets), 1, "", "tools of wiki: not ready, AddressRefused: ",
		},
		"another name": {
			with(all, "--upstream", "wikki="+at), 2, "",
			`--upstream wikki: there is no tool namespace of an MCP server with this name in namespace "team-atlas"`,
		},
		"in clear text": {
			with(all, "--upstream", "wiki=http://wiki.example.com/mcp"), 2, "", "credentials are not sent in clear text",
		},
		"no network": {with(all, "--egress-allow", "loopback"), 2, "", `--egress-allow: `},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, c.args...)
			if got.code != c.code || got.out != c.out || !strings.Contains(got.errOut, c.errOut) {
				t.Errorf("exit code %d, printed %q, said:\n%s", got.code, got.out, got.errOut)
			}
			if strings.Contains(got.out+got.errOut, key) {
				t.Error("the key was told")
			}
		})
	}
}
