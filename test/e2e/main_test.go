package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// cluster is the one that all tests run on, with the operator installed.
var cluster *kit.Cluster

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Minute)
	defer cancel()
	var err error
	if cluster, err = kit.Connect(ctx, os.Getenv("CLUSTER"), os.Stderr); err == nil {
		if err = cluster.LoadImages(ctx, os.Stderr); err == nil {
			err = cluster.Install(ctx, os.Stderr, values())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "set up the end-to-end tests:", err)
		return 1
	}
	return m.Run()
}

// worlds are the namespaces of the tests, one each. The files provider has a folder
// of files for every one of them.
var worlds = []string{
	"allowed", "unexecuted", "revoked", "exitcode", "deleted", "cancelled", "escalated", "probed", "second", "stolen", "restarted",
	"http", "brokered",
	"killed", "handover", "rolled",
	"causes", "sidecar", "stubborn", "late", "job", "together", "shared", "expiring", "plugin", "console",
	"long", "output", "away",
}

// values are the chart's, with the files of the worlds.
func values() map[string]any {
	out := kit.Values()
	files := out["filesProvider"].(map[string]any)["seed"].(map[string]any) //nolint:forcetypeassert // kit made it
	for _, world := range worlds {
		files["e2e-"+world+"/Work/atlas/status.md"] = "# Atlas\n\nOn track. Atlas ships on 2027-02-15.\n"
		files["e2e-"+world+"/Work/atlas/risks.md"] = "# Risks\n\n- The vendor audit.\n"
		files["e2e-"+world+"/Work/hr/salaries.md"] = "# Salaries\n\nNot for assistants.\n"
	}
	return out
}

// newWorld makes the namespace of one test anew. It is removed afterwards, unless
// the test failed: then it is there to be looked at.
func newWorld(t *testing.T, world string) *kit.World {
	t.Helper()
	if !slices.Contains(worlds, world) {
		t.Fatalf("the world %q has no files: add it to worlds", world)
	}
	name := "e2e-" + world
	must(t, cluster.RemoveNamespace(t.Context(), name))
	w, err := cluster.NewWorld(t.Context(), name, cluster.HarnessImage())
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the namespace %s is left as it is", name)
			return
		}
		if err := cluster.RemoveNamespace(context.Background(), name); err != nil {
			t.Errorf("remove the namespace: %v", err)
		}
	})
	return w
}
