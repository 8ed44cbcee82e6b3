package peers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/test/peers/npm"
)

// host is what the HTTP API needs of its surroundings beside the kernel's world.
type host struct{ envelope *envelope.Envelope }

// Send implements [kernel.MessageTransport].
func (host) Send(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
	return contract.MessageDeliveryResult{MessageID: m.ID, Status: contract.DeliveryAccepted, Timestamp: contract.At(kerneltest.Epoch)}, nil
}

// UpdateToolNamespaces implements [kernel.NamespaceStore].
func (host) UpdateToolNamespaces(context.Context, contract.AccessContext, contract.ToolNamespaceUpdate) ([]string, error) {
	return []string{"files"}, nil
}

// Run implements [envelope.Runtime].
func (host) Run(context.Context, envelope.Request, envelope.Host) (envelope.Outcome, error) {
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`{"answer":"2026-09-30."}`)}, nil
}

// RunTurn implements [httpapi.TurnRunner].
func (h host) RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	return h.envelope.Run(ctx, req.In(&ac), h), nil
}

// serveHTTPAPI serves a real kernel to who has the token.
func serveHTTPAPI(t *testing.T) *httptest.Server {
	t.Helper()
	w := kerneltest.New(
		kerneltest.Admission(),
		kerneltest.MakeGrant("grant-1").Descendants("files", []string{"Work"}, "read").Obj(),
		kerneltest.MakeGrant("grant-2").Exact(contract.NamespaceMessaging, []string{"human", "alice"}, contract.ActionSend).Obj(),
	)
	plane := &kerneltest.Plane{}
	w.Options.Tools, w.Options.Transport, w.Options.Namespaces = kerneltest.FilesTools(plane), host{}, host{}
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
	k := w.Kernel(t)
	h, err := httpapi.NewHandler(httpapi.Options{
		API: httpapi.NewKernelAPI(k, host{envelope.New(k, envelope.Options{})}),
		Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				return contract.AccessContext{}, httpapi.ErrUnauthenticated
			}
			return w.Context(), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// TestGeneratedClient makes a client of the served document with a generator of other
// people's, compiles a program against it and has that drive every route.
func TestGeneratedClient(t *testing.T) {
	packages := npm.Install(t, "openapi")
	t.Parallel()
	server := serveHTTPAPI(t)
	// Modules are resolved from where the program lies; what is made does not stay.
	dir, err := os.MkdirTemp(packages, "client-") //nolint:usetesting // beside the packages
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	source, err := os.ReadFile(filepath.Join("openapi", "client.ts"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := httpapi.Document("")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"client.ts": source, "openapi.json": document, "package.json": []byte(`{"type":"module"}`), "node.d.ts": []byte("declare const process: { argv: string[]; env: Record<string, string | undefined> };\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	modules := filepath.Join(packages, "node_modules")
	run := func(program string, arguments ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node(packages), append([]string{program}, arguments...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PEER_TOKEN="+token, "NODE_NO_WARNINGS=1")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s%s", program, err, stdout.String(), stderr.String())
		}
		return stdout.Bytes()
	}
	run(filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), "openapi.json", "--output", "sharedos.d.ts")
	run(filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext",
		"--allowImportingTsExtensions", "--lib", "es2022,dom,dom.iterable", "--skipLibCheck", "client.ts", "node.d.ts")
	type answer struct {
		Status    int
		RequestID string
		NoStore   bool
		Code      string
	}
	var got struct {
		Seen     map[string]answer
		Protocol string
		Allowed  bool
		Names    []string
		Places   int
		Enabled  int
		Refusal  string
		Events   []string
		Output   any
		Turn     any
		Title    string
	}
	want := got
	fine := answer{200, "peer-1", true, ""}
	want.Seen = map[string]answer{
		"health": fine, "openapi": fine, "authorize": fine, "listTools": fine, "reach": fine, "listToolNamespaces": fine, "updateToolNamespaces": fine,
		"invokeTool": fine, "denied": fine, "invokeResource": fine, "executeTurn": fine, "sendMessage": {202, "peer-1", true, ""},
		"smuggled": {400, "peer-1", true, "invalid_request"}, "wrongVerb": {405, "peer-1", true, "method_not_allowed"},
		"unknown": {404, "peer-1", true, "not_found"}, "stranger": {401, "", true, "unauthenticated"},
	}
	want.Protocol, want.Allowed, want.Names, want.Places, want.Enabled, want.Refusal = "1", true, []string{"files.read"}, 3, 1, "no_matching_grant"
	want.Events = []string{"turn.started", "turn.completed"}
	want.Output = map[string]any{"path": []any{"Work", "atlas"}}
	want.Turn = map[string]any{"answer": "2026-09-30."}
	want.Title = "SharedOS HTTP API"
	if err := json.Unmarshal(run("client.ts", server.URL), &got); err != nil {
		t.Fatal(err)
	}
	if a := got.Seen["stranger"]; a.RequestID != "" {
		a.RequestID = "" // minted
		got.Seen["stranger"] = a
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
