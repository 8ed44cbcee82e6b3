package repo_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/planes/repo"
)

func TestTheTableOfTools(t *testing.T) {
	want := []string{"repo.commit commit write", "repo.diff diff read", "repo.log log read", "repo.stage stage write", "repo.status status read"}
	var got []string
	for _, d := range repo.Definitions() {
		got = append(got, fmt.Sprintf("%s %s %s", d.Name, d.RequiredCapability.Action, d.ReadWrite))
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if *d.Annotations.Destructive || len(d.OutputSchema) == 0 {
			t.Errorf("%s is destructive or has no output schema", d.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

func TestFilesAuthorityIsNoRepoAuthority(t *testing.T) {
	for namespace, want := range map[string]string{"files": contract.CodeToolUnavailable, "repo": contract.CodeInvalidToolResult} {
		w := kerneltest.New(kerneltest.MakeGrant("g").Descendants(namespace, []string{"Work"}, "*").Obj())
		w.Options.Tools = repo.Tools(&kerneltest.Plane{})
		result := w.Turn(t).Invoke(t.Context(), kerneltest.Call("call-1", "repo.status", `{"path":["Work","app"]}`))
		// The plane's echo does not fit the output schema: it was reached.
		if result.Error == nil || result.Error.Code != want {
			t.Errorf("grant on %s: %+v, want %s", namespace, result.Error, want)
		}
	}
}
