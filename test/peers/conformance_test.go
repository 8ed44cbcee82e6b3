package peers_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sharedos-dev/operator/test/peers/npm"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

// TestConformance runs every server scenario of the official suite. It fails for a
// scenario outside the baseline that fails, and for one inside that passes.
func TestConformance(t *testing.T) {
	packages := npm.Install(t, "js")
	t.Parallel()
	_, bridge := open(t, turn.Options{Tools: turn.ConformanceTools()}, false)
	baseline, err := filepath.Abs("conformance-baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	suite := filepath.Join(packages, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	cmd := exec.CommandContext(t.Context(), node(packages), suite, "server",
		"--url", bridge.URL(), "--suite", "all", "--expected-failures", baseline, "--output-dir", t.TempDir())
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("conformance: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
