package harness_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/test/harness/model"
	"github.com/sharedos-dev/operator/test/peers/npm"
)

// localScript reads a file that the grants of examples/policies allow, one that they
// do not.
var localScript = []model.Call{
	{Tool: "files.read", Arguments: `{"path":["Work","atlas","status.md"]}`},
	{Tool: "files.read", Arguments: `{"path":["Work","salaries.csv"]}`},
}

// buildPlugin builds kubectl-sharedos from the checkout.
func buildPlugin(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl-sharedos")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../..", "build", "-o", program, "./cmd/kubectl-sharedos").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	return program
}

// localRun is `kubectl sharedos local run` of the example policies.
func localRun(t *testing.T, plugin, home string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	policies := filepath.Join("..", "..", "examples", "policies")
	cmd := exec.CommandContext(ctx, plugin, append([]string{
		"local", "run", policies, "--principal", "alice-assistant", "--files", filepath.Join(policies, "files"), "--read-only",
	}, args...)...)
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb"}, env...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// checkLocalRun: the model saw the file and the refusal, and the plugin told of both.
func checkLocalRun(t *testing.T, m *model.Model, stdout, stderr string, code int) {
	t.Helper()
	if code != 0 || !strings.Contains(stdout, "Done.") {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if faults := m.Faults(); len(faults) > 0 {
		t.Errorf("the model did not understand: %v", faults)
	}
	shown := m.Shown()
	if len(shown) != 2 || !strings.Contains(shown[0].Text, "Atlas ships on 30 September.") || !strings.Contains(shown[1].Text, "no_matching_grant") {
		t.Errorf("shown %+v", shown)
	}
	for _, want := range []string{"turn started with 7 tools", "files.read succeeded", "refused: read files:Work/salaries.csv (no_matching_grant)", "turn completed"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("progress lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("standard error:\n%s", stderr)
	}
}

// TestLocalRunClaudeCode gives the plugin nothing but the words that a person types.
func TestLocalRunClaudeCode(t *testing.T) {
	packages := npm.Install(t, "js")
	plugin := buildPlugin(t)
	bin := t.TempDir()
	if err := os.Symlink(binary(t, packages, "@anthropic-ai/claude-code-linux-x64/claude"), filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"command": {"--", filepath.Join(bin, "claude"), "-p", prompt}, "type": {"--type", "claude-code", "-m", prompt},
	} {
		t.Run(name, func(t *testing.T) {
			m := model.Start(localScript)
			defer m.Close()
			stdout, stderr, code := localRun(t, plugin, t.TempDir(), []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=scripted",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			}, args...)
			checkLocalRun(t, m, stdout, stderr, code)
		})
	}
}

// TestLocalRunCodex keeps the user's own Codex configuration, here the model.
func TestLocalRunCodex(t *testing.T) {
	packages := npm.Install(t, "js")
	plugin := buildPlugin(t)
	bin := t.TempDir()
	if err := os.Symlink(binary(t, packages, "@openai/codex-linux-x64/vendor/*/bin/codex"), filepath.Join(bin, "codex")); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"command": {"--", filepath.Join(bin, "codex"), "exec", "--skip-git-repo-check", prompt}, "type": {"--type", "codex", "-m", prompt},
	} {
		t.Run(name, func(t *testing.T) {
			m, home := model.Start(localScript), t.TempDir()
			defer m.Close()
			config := "model = \"scripted\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"" + m.URL() +
				"/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\n[features]\nplugins = false\napps = false\n"
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, code := localRun(t, plugin, home, []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "CODEX_HOME=" + home, "SCRIPTED_KEY=scripted",
			}, args...)
			checkLocalRun(t, m, stdout, stderr, code)
		})
	}
}
