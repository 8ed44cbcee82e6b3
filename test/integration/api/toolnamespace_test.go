package api

import (
	"strings"
	"testing"
)

const (
	digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

	toolNamespaceBase = `
apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: notes}
spec:
  source: {mcp: {url: "https://mcp.example.com/mcp"}}
`

	providerBase = `
apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: files}
spec:
  source: {provider: {plane: files, service: {name: provider, port: 8443}}}
`
)

// tool is a patch with one tool, whose fields are given as a YAML patch over a valid one.
func tool(t *testing.T, patch string) string {
	t.Helper()
	declared := merge(decode(t, `{name: notes.read, upstream: read, readWrite: read,
		requirement: {action: read, resource: {namespace: notes, path: "[args.id]"}}}`), decode(t, patch))
	return `spec: {tools: [` + encode(t, declared) + `]}`
}

func sourceCases() []ruleCase {
	return []ruleCase{
		{"no source", `spec: {source: null}`, "spec.source: Required value"},
		{"empty source", `spec: {source: {mcp: null}}`, "exactly one of mcp, provider and builtin must be set"},
		{"mcp and builtin", `spec: {source: {builtin: messages}}`, "exactly one of mcp, provider and builtin must be set"},
		{"mcp and provider", `spec: {source: {provider: {plane: files, service: {name: p, port: 1}}}}`,
			"exactly one of mcp, provider and builtin must be set"},
		{"builtin", `{metadata: {name: messages}, spec: {source: {mcp: null, builtin: messages}}}`, ""},
		{"unknown builtin", `{metadata: {name: shell}, spec: {source: {mcp: null, builtin: shell}}}`, "spec.source.builtin: Unsupported value"},
		{"builtin of another name", `spec: {source: {mcp: null, builtin: messages}}`, "metadata.name must be the name of the builtin source"},
		{"mcp of a reserved name", `metadata: {name: files}`, "metadata.name must not be files, repo, messages or sharedos for an mcp source"},
		{"name with a dot", `metadata: {name: no.tes}`, "metadata.name must be a single label"},
		{"name of 63 characters", `metadata: {name: ` + strings.Repeat("n", 63) + `}`, ""},
		{"name of 64 characters", `metadata: {name: ` + strings.Repeat("n", 64) + `}`, "metadata.name must be a single label"},
	}
}

func endpointCases() []ruleCase {
	const header = `headersFrom: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: s, key: k}}]`
	mcp := func(fields string) string { return `spec: {source: {mcp: {` + fields + `}}}` }
	headerNamed := func(name string) string {
		return mcp(`headersFrom: [{name: "` + name + `", secretKeyRef: {name: s, key: k}}]`)
	}
	return []ruleCase{
		{"everything", mcp(header + `, timeoutSeconds: 600, tls: {caFrom: {secretKeyRef: {name: ca, key: ca.crt}},
			clientCertificateFrom: {name: client}}`), ""},
		{"service", mcp(`url: null, service: {name: s, namespace: system, port: 65535, path: /mcp, scheme: http}`), ""},
		{"url and service", mcp(`service: {name: s, port: 1}`), "exactly one of url and service must be set"},
		{"neither url nor service", mcp(`url: null`), "exactly one of url and service must be set"},
		{"url without a host", mcp(`url: "https://"`), "spec.source.mcp.url"},
		{"url with a password", mcp(`url: "https://user:secret@mcp.example.com/"`), "spec.source.mcp.url"},
		{"url with a fragment", mcp(`url: "https://mcp.example.com/#a"`), "spec.source.mcp.url"},
		{"url of a file", mcp(`url: "file:///etc/passwd"`), "spec.source.mcp.url"},
		{"url that is none", mcp(`url: "https://[::1/"`), "must be a URL"},
		{"url with a query", mcp(`url: "https://mcp.example.com:8443/mcp?v=1"`), ""},
		{"clear text", mcp(`url: "http://mcp.example.com/"`), ""},
		{"credentials in clear text", mcp(`url: "http://mcp.example.com/", ` + header), "headersFrom needs an https endpoint"},
		{"credentials in clear text to a Service", mcp(`url: null, service: {name: s, port: 1, scheme: http}, ` + header), "headersFrom needs an https endpoint"},
		{"credentials to a Service", mcp(`url: null, service: {name: s, port: 1}, ` + header), ""},
		{"tls over clear text", mcp(`url: "http://mcp.example.com/", tls: {}`), "tls needs an https endpoint"},
		{"tls of a clear text Service", mcp(`url: null, service: {name: s, port: 1, scheme: http}, tls: {}`), "tls needs an https endpoint"},
		{"tls of a Service", mcp(`url: null, service: {name: s, port: 1}, tls: {}`), ""},
		{"port 0", mcp(`url: null, service: {name: s, port: 0}`), "service.port"},
		{"port 65536", mcp(`url: null, service: {name: s, port: 65536}`), "service.port"},
		{"relative path", mcp(`url: null, service: {name: s, port: 1, path: mcp}`), "service.path"},
		{"unknown scheme", mcp(`url: null, service: {name: s, port: 1, scheme: ftp}`), "service.scheme: Unsupported value"},
		{"no timeout", mcp(`timeoutSeconds: 0`), "timeoutSeconds"},
		{"timeout of 601 seconds", mcp(`timeoutSeconds: 601`), "timeoutSeconds"},
		{"header that frames", headerNamed("Transfer-Encoding"), "must not be a header that frames or routes the request"},
		{"header that routes", headerNamed("HOST"), "must not be a header that frames or routes the request"},
		{"header that is no token", headerNamed("a b"), "headersFrom[0].name"},
		{"header twice", mcp(`headersFrom: [{name: a, secretKeyRef: {name: s, key: k}}, {name: a, secretKeyRef: {name: s, key: l}}]`),
			"Duplicate value"},
		{"prefix with a line break", mcp(`headersFrom: [{name: a, prefix: "x\r\nb: c", secretKeyRef: {name: s, key: k}}]`), "prefix"},
		{"header without a Secret", mcp(`headersFrom: [{name: a}]`), "secretKeyRef: Required value"},
		{"Secret without a key", mcp(`headersFrom: [{name: a, secretKeyRef: {name: s}}]`), "secretKeyRef.key: Required value"},
		{"CA of no kind", mcp(`tls: {caFrom: {}}`), "exactly one of secretKeyRef and configMapKeyRef must be set"},
		{"CA of two kinds", mcp(`tls: {caFrom: {secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: s, key: k}}}`),
			"exactly one of secretKeyRef and configMapKeyRef must be set"},
		{"no verification", mcp(`tls: {insecureSkipVerify: true}`), `unknown field "spec.source.mcp.tls.insecureSkipVerify"`},
	}
}

func toolCases(t *testing.T) []ruleCase {
	t.Helper()
	many := func(n int) string {
		items := make([]string, n)
		for i := range items {
			items[i] = `{name: "notes.` + strings.Repeat("a", i%100+1) + strings.Repeat("b", i/100) + `", upstream: u, readWrite: read,
				requirement: {action: read, resource: {namespace: notes, path: "[]"}}}`
		}
		return `spec: {tools: [` + strings.Join(items, ", ") + `]}`
	}
	return []ruleCase{
		{"everything", tool(t, `{schemaDigest: `+digest+`, description: d, readWrite: write, destructive: true, idempotent: false,
			requirement: {resource: {ceiling: [a, b]}}}`), ""},
		{"256 tools", many(256), ""},
		{"257 tools", many(257), "spec.tools: Too many"},
		{"no name", tool(t, `name: null`), "name: Required value"},
		{"name of another namespace", tool(t, `name: files.read`), "the name of a tool must begin with the name of its namespace and a dot"},
		{"name without a dot", tool(t, `name: notes`), "the name of a tool must begin with the name of its namespace and a dot"},
		{"name that is none", tool(t, `name: "notes.re ad"`), "spec.tools[0].name"},
		{"name of 129 characters", tool(t, `name: notes.`+strings.Repeat("a", 123)), "Too long"},
		{"upstream with white space", tool(t, `upstream: "read "`), "must not begin or end with white space"},
		{"no upstream", tool(t, `upstream: null`), "upstream: Required value"},
		{"no class", tool(t, `readWrite: null`), "readWrite: Required value"},
		{"unknown class", tool(t, `readWrite: execute`), "readWrite: Unsupported value"},
		{"destructive read", tool(t, `destructive: true`), "a read tool cannot be destructive"},
		{"read that says it is not destructive", tool(t, `destructive: false`), ""},
		{"digest in upper case", tool(t, `schemaDigest: `+strings.ToUpper(digest)), "schemaDigest"},
		{"short digest", tool(t, `schemaDigest: abc`), "schemaDigest"},
		{"no requirement", tool(t, `requirement: null`), "requirement: Required value"},
		{"no action", tool(t, `requirement: {action: null}`), "requirement.action: Required value"},
		{"any action", tool(t, `requirement: {action: "*"}`), "a requirement names one action"},
		{"no path", tool(t, `requirement: {resource: {path: null}}`), "path: Required value"},
		{"path of 4097 characters", tool(t, `requirement: {resource: {path: "`+strings.Repeat("a", 4097)+`"}}`), "Too long"},
		{"kernel's namespace", tool(t, `requirement: {resource: {namespace: sharedos}}`), "resource namespaces that begin with sharedos are reserved"},
		{"kernel's execution namespace", tool(t, `requirement: {resource: {namespace: sharedos.execution}}`),
			"resource namespaces that begin with sharedos are reserved"},
		{"ceiling that climbs", tool(t, `requirement: {resource: {ceiling: [".."]}}`), "must not be . or .."},
		{"ceiling of 65 segments", tool(t, `requirement: {resource: {ceiling: `+repeat(65, "a")+`}}`), "ceiling: Too many"},
	}
}

var selectorCases = []ruleCase{
	{"labels", `spec: {principalSelector: {matchLabels: {team: atlas}, matchExpressions: [{key: k, operator: In, values: [a]},
		{key: k, operator: Exists}]}}`, ""},
	{"names", `spec: {principalSelector: {names: [alice]}}`, ""},
	{"empty", `spec: {principalSelector: {}}`, ""},
	{"names and labels", `spec: {principalSelector: {names: [alice], matchLabels: {team: atlas}}}`, "names must not be combined with labels"},
	{"names and expressions", `spec: {principalSelector: {names: [alice], matchExpressions: [{key: k, operator: Exists}]}}`,
		"names must not be combined with labels"},
	{"In without values", `spec: {principalSelector: {matchExpressions: [{key: k, operator: In}]}}`,
		"values must be set exactly when operator is In or NotIn"},
	{"Exists with values", `spec: {principalSelector: {matchExpressions: [{key: k, operator: Exists, values: [a]}]}}`,
		"values must be set exactly when operator is In or NotIn"},
	{"unknown operator", `spec: {principalSelector: {matchExpressions: [{key: k, operator: Near}]}}`, "operator: Unsupported value"},
	{"value that is no label", `spec: {principalSelector: {matchLabels: {team: "a b"}}}`, "principalSelector.matchLabels"},
}

func providerCases() []ruleCase {
	provider := func(fields string) string { return `spec: {source: {provider: {` + fields + `}}}` }
	return []ruleCase{
		{"repo", `{metadata: {name: repo}, spec: {source: {provider: {plane: repo}}}}`, ""},
		{"no plane", provider(`plane: null`), "plane: Required value"},
		{"unknown plane", provider(`plane: mail`), "plane: Unsupported value"},
		{"another name", `metadata: {name: documents}`, "metadata.name must be the name of the provider's plane"},
		{"https url", provider(`service: null, url: "https://files.example.com"`), ""},
		{"http url", provider(`service: null, url: "http://files.example.com"`), "a provider is reached over https only"},
		{"http Service", provider(`service: {scheme: http}`), "a provider is reached over https only"},
		{"https Service", provider(`service: {scheme: https}`), ""},
		{"tools", `spec: {tools: [{name: files.x, upstream: x, readWrite: read,
			requirement: {action: read, resource: {namespace: files, path: "[]"}}}]}`, "tools may be declared only for an mcp source"},
	}
}

func TestToolNamespaceSources(t *testing.T)   { testCreates(t, toolNamespaceBase, sourceCases()) }
func TestToolNamespaceEndpoints(t *testing.T) { testCreates(t, toolNamespaceBase, endpointCases()) }
func TestToolNamespaceTools(t *testing.T)     { testCreates(t, toolNamespaceBase, toolCases(t)) }
func TestToolNamespaceSelectors(t *testing.T) { testCreates(t, toolNamespaceBase, selectorCases) }
func TestToolNamespaceProviders(t *testing.T) { testCreates(t, providerBase, providerCases()) }
