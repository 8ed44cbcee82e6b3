package localrun_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	official "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/localrun"
)

const wikiManifests = `apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: wiki}
spec:
  enabled: true
  source:
    mcp:
      url: URL
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

const wikiSecret = `---
apiVersion: v1
kind: Secret
metadata: {name: wiki-key}
stringData: {token: the-key}
`

// wiki is a real MCP server on loopback, which asks for a key, and a ConfigMap with its
// authority.
func wiki(t *testing.T) (at, authority string) {
	t.Helper()
	server := official.NewServer(&official.Implementation{Name: "wiki", Version: "1"}, nil)
	type page struct {
		Page string `json:"page"`
	}
	tool := func(_ context.Context, _ *official.CallToolRequest, in page) (*official.CallToolResult, any, error) {
		return &official.CallToolResult{Content: []official.Content{&official.TextContent{Text: "the text of " + in.Page}}}, nil, nil
	}
	official.AddTool(server, &official.Tool{Name: "get_page", Description: "A page."}, tool)
	official.AddTool(server, &official.Tool{Name: "drop_page", Description: "Removes a page."}, tool)
	handler := official.NewStreamableHTTPHandler(func(*http.Request) *official.Server { return server }, nil)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "wiki-ca"}, "data": map[string]string{"ca.crt": string(ca)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return web.URL, "---\n" + string(config) + "\n"
}

// asks runs a turn whose harness reads an allowed and a denied page.
func asks(t *testing.T, manifests string, change func(*localrun.Options)) (contract.ExecutionResult, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wiki.yaml")
	if err := os.WriteFile(path, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t, "wiki")
	var progress strings.Builder
	o.Paths, o.Progress, o.Stderr = append(o.Paths, path), &progress, t.Output()
	o.Egress = &egress.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if change != nil {
		change(&o)
	}
	result, err := localrun.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result, progress.String()
}

func TestBrokered(t *testing.T) {
	at, authority := wiki(t)
	manifests := strings.ReplaceAll(wikiManifests, "URL", at) + authority
	// As on a cluster, the server's tools are looked at first, and nothing is published
	// before its schema was read.
	unpinned := strings.Replace(manifests, "      schemaDigest: \"DIGEST\"\n", "", 1)
	_, told := asks(t, unpinned+wikiSecret, nil)
	found := regexp.MustCompile(`wiki\.read: SchemaNotPinned, schemaDigest ([0-9a-f]{64}): read`).FindStringSubmatch(told)
	if found == nil || !strings.Contains(told, "drop_page: NotDeclared, schemaDigest ") || !strings.Contains(told, "ready, PartlyPublished") {
		t.Fatalf("told:\n%s", told)
	}
	pinned := strings.Replace(manifests, "DIGEST", found[1], 1)
	check := func(t *testing.T, result contract.ExecutionResult, told string) {
		t.Helper()
		var output string
		if json.Unmarshal(result.Output, &output) != nil || !slices.Equal(strings.Split(output, "\n"), []string{"true false", "false true", "false true", ""}) {
			t.Errorf("%s %+v, printed %s; told:\n%s", result.Status, result.Error, result.Output, told)
		}
		for _, want := range []string{"tools of wiki: ready, Available: 1 tools", "wiki.read succeeded", "refused: read wiki:pages/salaries (no_matching_grant)"} {
			if !strings.Contains(told, want) {
				t.Errorf("told lacks %q:\n%s", want, told)
			}
		}
		if strings.Contains(told, "the-key") {
			t.Errorf("the key was told:\n%s", told)
		}
	}
	t.Run("secret among the manifests", func(t *testing.T) {
		result, told := asks(t, pinned+wikiSecret, nil)
		check(t, result, told)
	})
	t.Run("secret in a folder", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "wiki-key"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "wiki-key", "token"), []byte("the-key\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		result, told := asks(t, pinned, func(o *localrun.Options) { o.Secrets = folder })
		check(t, result, told)
	})
	t.Run("a Service with an address", func(t *testing.T) {
		inside := strings.Replace(pinned, "url: "+at, "service: {name: wiki, port: 8080}", 1)
		result, told := asks(t, inside+wikiSecret, func(o *localrun.Options) { o.Upstreams = map[string]string{"wiki": at} })
		check(t, result, told)
	})
	for name, c := range map[string]struct {
		manifests string
		change    func(*localrun.Options)
		want      string
	}{
		"no secret": {pinned, nil, `not ready, CredentialsNotFound: credentials cannot be used: secret "wiki-key": it is neither among the manifests nor`},
		"another key": {
			pinned + strings.Replace(wikiSecret, "the-key", "another", 1), nil, "not ready, CredentialsInvalid",
		},
		"loopback is not allowed": {pinned + wikiSecret, func(o *localrun.Options) { o.Egress = nil }, "not ready, AddressRefused"},
		"nobody listens": {
			pinned + wikiSecret, func(o *localrun.Options) { o.Upstreams = map[string]string{"wiki": "https://127.0.0.1:1"} },
			"not ready, ConnectionFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, told := asks(t, c.manifests, c.change)
			if !strings.Contains(told, c.want) || !strings.Contains(told, "--without wiki leaves them out") {
				t.Errorf("told lacks %q:\n%s", c.want, told)
			}
			if result.Error == nil || result.Error.Code != contract.CodeToolCatalogUnavailable {
				t.Errorf("a turn ran without knowing its tools: %s %+v", result.Status, result.Error)
			}
		})
	}
}
