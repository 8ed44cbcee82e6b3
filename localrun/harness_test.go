package localrun_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/localrun"
)

// TestExampleHarness runs the harness of this repository, a real MCP client that
// knows nothing of this package, exactly as it runs in a pod.
func TestExampleHarness(t *testing.T) {
	program := filepath.Join(t.TempDir(), "harness")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../examples/harness", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the example harness: %v\n%s", err, out)
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// A path is relative to where the caller is, though the command runs elsewhere.
	if program, err = filepath.Rel(folder, program); err != nil {
		t.Fatal(err)
	}
	result, err := localrun.Run(t.Context(), localrun.Options{
		Paths: []string{policies}, Namespace: "team-atlas", Principal: "alice-assistant", Purpose: "atlas-status", From: "alice",
		Message: "When does Atlas ship?", Command: []string{program}, JSONOutput: true,
		Files: filepath.Join(policies, "files"), ReadOnly: true, Stderr: t.Output(), Progress: t.Output(),
	})
	if err != nil || result.Status != contract.StatusSucceeded {
		t.Fatalf("%s %+v %v", result.Status, result.Error, err)
	}
	var report struct {
		ExecutionID, CatalogHash string
		Token                    struct{ ExecutionID, CatalogHash string }
		Calls                    []struct{ Tool, Status, Code string }
	}
	if err := json.Unmarshal(result.Output, &report); err != nil {
		t.Fatalf("%v in %s", err, result.Output)
	}
	if report.ExecutionID != result.ExecutionID || report.Token.ExecutionID != result.ExecutionID || report.Token.CatalogHash != report.CatalogHash {
		t.Errorf("the harness saw another turn: %+v", report)
	}
	want := []struct{ Tool, Status, Code string }{
		{"files.list", "succeeded", ""}, {"files.read", "succeeded", ""},
		{"files.read", "denied", "no_matching_grant"}, {"files.create", "denied", "no_matching_grant"},
	}
	if diff := cmp.Diff(want, report.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
