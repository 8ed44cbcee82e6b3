package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/test/e2e/internal/pages"
)

// commandLimit is how long the commands of one block may take.
const commandLimit = 5 * time.Minute

// Every command that a page tells people to type does what it should: it ends with 0,
// in a shell in the repository, in the order of the page, on the cluster with the
// operator installed.
func TestDocumentedCommands(t *testing.T) {
	// The tests in parallel come after this one and need their own installation.
	t.Cleanup(func() { must(t, cluster.Install(context.Background(), os.Stderr, values())) })
	blocks, err := pages.Find(cluster.Root)
	must(t, err)
	run := 0
	for _, b := range blocks {
		if b.NotRun != "" {
			continue
		}
		run++
		t.Run(strings.ReplaceAll(b.File, string(filepath.Separator), "_")+"_line_"+strconv.Itoa(b.Line), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
			defer cancel()
			shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.Commands)
			shell.Dir = cluster.Root
			shell.Env = append(os.Environ(), "PATH="+filepath.Join(cluster.Root, "bin")+":"+os.Getenv("PATH"), "NO_COLOR=1")
			if cluster.Kubeconfig != "" {
				shell.Env = append(shell.Env, "KUBECONFIG="+cluster.Kubeconfig)
			}
			shell.WaitDelay = 5 * time.Second
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s\n%s", b.File, b.Line, err, b.Commands, out)
			}
		})
	}
	if run < 10 {
		t.Errorf("only %d blocks of commands were found", run)
	}
}
