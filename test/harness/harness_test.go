package harness_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/harness/model"
	"github.com/sharedos-dev/operator/test/peers/npm"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

const (
	token  = "token-1"
	prompt = "When does Atlas ship?"
)

// The script: an allowed call, a denied one, one with structured output, the ask for
// a human, and a call after it.
var script = []model.Call{
	{Tool: "files.read", Arguments: `{"path":["Work","plan.md"]}`},
	{Tool: "files.read", Arguments: `{"path":["Home"]}`},
	{Tool: "files.list", Arguments: `{"path":["Work"]}`},
	{Tool: "sharedos.escalate", Arguments: `{"reason":"Home is needed."}`},
	{Tool: "files.read", Arguments: `{"path":["Work"]}`},
}

func refusal(code, more string) string {
	return `{"status":"denied","code":"` + code + `","message":"` + kernel.MessageFor(code) + `"` + more + `}`
}

// want is what a model must be shown, where the harness marks errors.
func want(marked bool) []model.Shown {
	return []model.Shown{
		{Text: "Atlas ships on Friday. (plan.md)"},
		{Text: refusal(contract.CodeNoMatchingGrant, ""), IsError: marked},
		{Text: `{"entries":["atlas","plan.md"]}`},
		{Text: `{"escalated":true,"note":"A human will decide. This turn has ended by asking: no further call runs on it, and nothing was granted.","reason":"Home is needed."}`},
		{Text: refusal(contract.CodeEscalationPending, `,"retryable":false`), IsError: marked},
	}
}

// run is one turn with a bridge, and a model that follows the script.
type run struct {
	turn   *turn.Turn
	bridge *mcp.HTTPServer
	model  *model.Model
	home   string
}

func start(t *testing.T) *run {
	t.Helper()
	opened, err := turn.Open(context.WithoutCancel(t.Context()), turn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := mcp.NewHTTPServer(t.Context(), mcp.HTTPOptions{
		Server: opened.Server, Authorize: func(bearer string, present bool) bool { return present && bearer == token },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{turn: opened, bridge: bridge, model: model.Start(script), home: t.TempDir()}
	t.Cleanup(func() {
		r.model.Close()
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// config writes the connection file that the product emits, after what comes before
// it in the harness's own file.
func (r *run) config(t *testing.T, harness, before string) string {
	t.Helper()
	file, err := mcp.HarnessConfigFile(harness, mcp.Connection{URL: r.bridge.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.home, file.Filename)
	if err := os.WriteFile(path, []byte(before+file.Contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a harness in an empty home, with nothing of this process's environment
// but the path.
func (r *run) command(t *testing.T, program string, args []string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	work := filepath.Join(r.home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = work
	cmd.Env = append([]string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb"}, env...)
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// finish checks what became of the turn.
func (r *run) finish(t *testing.T, out string) {
	t.Helper()
	if faults := r.model.Faults(); len(faults) > 0 {
		t.Errorf("the model did not understand: %v", faults)
	}
	if !r.turn.Server.Initialized() {
		t.Error("the harness never initialized")
	}
	result := r.turn.End()
	if result.Status != contract.StatusEscalated || result.Escalation == nil || result.Escalation.Reason != "Home is needed." {
		t.Errorf("the turn ended as %s, escalation %+v", result.Status, result.Escalation)
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}

// binary is the program itself inside an npm package, which needs no Node.
func binary(t *testing.T, packages, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(packages, "node_modules", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("program %s: found %v (%v)", pattern, found, err)
	}
	return found[0]
}

func TestClaudeCode(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	program := binary(t, packages, "@anthropic-ai/claude-code-linux-x64/claude")
	r := start(t)
	file := r.config(t, mcp.HarnessClaudeCode, "")
	out, err := r.command(t, program, []string{
		"-p", prompt, "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__sharedos",
	},
		"ANTHROPIC_BASE_URL="+r.model.URL(), "ANTHROPIC_API_KEY=scripted",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	)
	if err != nil {
		t.Errorf("exit: %v", err)
	}
	if diff := cmp.Diff(want(true), r.model.Shown()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	tools := []string{"mcp__sharedos__files_list", "mcp__sharedos__files_read", "mcp__sharedos__sharedos_escalate"}
	if diff := cmp.Diff(tools, r.model.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if !strings.Contains(out, "Done.") {
		t.Error("the answer is missing")
	}
	r.finish(t, out)
}

// wallTime is the head that Codex puts before a result's text.
var wallTime = regexp.MustCompile(`(?s)^Wall time: [0-9.]+ seconds\nOutput:\n`)

func TestCodex(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	program := binary(t, packages, "@openai/codex-linux-x64/vendor/*/bin/codex")
	r := start(t)
	r.config(t, mcp.HarnessCodex, `model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "`+r.model.URL()+`/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[features]
plugins = false
apps = false

`)
	out, err := r.command(t, program, []string{"exec", "--skip-git-repo-check", prompt}, "CODEX_HOME="+r.home, "SCRIPTED_KEY=scripted")
	if err != nil {
		t.Errorf("exit: %v", err)
	}
	shown := r.model.Shown()
	for i := range shown {
		shown[i].Text = wallTime.ReplaceAllString(shown[i].Text, "")
	}
	if diff := cmp.Diff(want(false), shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	tools := []string{"mcp__sharedos files_list", "mcp__sharedos files_read", "mcp__sharedos sharedos_escalate"}
	if diff := cmp.Diff(tools, r.model.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	r.finish(t, out)
}

// TestCodexNeedsItsServer: the emitted file makes a wrong token a failure to start.
func TestCodexNeedsItsServer(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	program := binary(t, packages, "@openai/codex-linux-x64/vendor/*/bin/codex")
	r := start(t)
	path := r.config(t, mcp.HarnessCodex, "model_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \""+
		r.model.URL()+"/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\n")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(token), []byte("token-2")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := r.command(t, program, []string{"exec", "--skip-git-repo-check", prompt}, "CODEX_HOME="+r.home, "SCRIPTED_KEY=scripted")
	if err == nil {
		t.Errorf("Codex ran without its server:\n%s", out)
	}
	if shown := r.model.Shown(); len(shown) > 0 || r.turn.Server.Initialized() {
		t.Errorf("shown %v, initialized %v", shown, r.turn.Server.Initialized())
	}
	if result := r.turn.End(); result.Status != contract.StatusSucceeded {
		t.Errorf("the turn ended as %s", result.Status)
	}
}
