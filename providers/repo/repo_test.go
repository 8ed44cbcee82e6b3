package repo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	plane "github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/providers/repo"
)

// world is a provider over a fresh directory with one empty repository, app.
type world struct {
	tb       testing.TB
	dir      string // of the repository
	provider *repo.Provider
	next     atomic.Int64
}

func newWorld(tb testing.TB, change ...func(*repo.Options)) *world {
	tb.Helper()
	root := tb.TempDir()
	w := &world{tb: tb, dir: filepath.Join(root, "app")}
	if _, err := git.PlainInit(w.dir, false); err != nil {
		tb.Fatal(err)
	}
	opts := repo.Options{Root: root, World: kerneltest.NamespaceID, Clock: kerneltest.NewClock(kerneltest.Epoch).Now}
	for _, f := range change {
		f(&opts)
	}
	provider, err := repo.Open(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = provider.Close() })
	w.provider = provider
	return w
}

// put writes a file of the repository.
func (w *world) put(name, content string) {
	w.tb.Helper()
	name = filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.tb.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) link(name, target string) {
	w.tb.Helper()
	name = filepath.Join(w.dir, name)
	if err := errors.Join(os.RemoveAll(name), os.Symlink(target, name)); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) do(ctx context.Context, action string, path contract.Path, input string) (contract.Value, string, error) {
	ac := kerneltest.New().Context()
	op := contract.ResourceOperation{
		OperationID: fmt.Sprintf("op-%d", w.next.Add(1)), Action: action, Input: contract.Value(input), Context: &ac,
		Resource: contract.ResourceRef{Namespace: plane.Namespace, Path: path},
	}
	result, err := w.provider.Invoke(ctx, op)
	if failure, ok := errors.AsType[*kernel.Failure](err); ok {
		return nil, failure.Err.Code, nil
	}
	if err != nil {
		return nil, "", err
	}
	if result.Validate() != nil || result.OperationID != op.OperationID {
		w.tb.Errorf("%s: result is not valid: %v", action, result.Validate())
	}
	return result.Output, "", nil
}

func must[T any](w *world, action, input string) (out T) {
	w.tb.Helper()
	raw, code, err := w.do(w.tb.Context(), action, contract.Path{"app"}, input)
	if err != nil || code != "" {
		w.tb.Fatalf("%s %s: code %q, error %v", action, input, code, err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.tb.Fatal(err)
	}
	return out
}

func (w *world) refused(action, input, want string) {
	w.tb.Helper()
	if out, code, err := w.do(w.tb.Context(), action, contract.Path{"app"}, input); err != nil || code != want {
		w.tb.Errorf("%s %s: code %q, output %.300s, error %v; want %s", action, input, code, out, err, want)
	}
}

// states are the files of a status, as "staged worktree" by name.
func (w *world) states() map[string]string {
	w.tb.Helper()
	out := map[string]string{}
	for _, f := range must[plane.StatusOutput](w, "status", "{}").Files {
		out[strings.Join(f.Path, "/")] = f.Staged + " " + f.Worktree
	}
	return out
}

// twice is the state of a file that neither the index nor a commit has.
var twice = strings.Join([]string{"untracked", "untracked"}, " ")

func TestFromChangeToCommit(t *testing.T) {
	w := newWorld(t)
	status := must[plane.StatusOutput](w, "status", "{}")
	if !status.Clean || status.Head != "" || status.Branch != "master" {
		t.Errorf("status of an empty repository = %+v", status)
	}
	if log := must[plane.LogOutput](w, "log", "{}"); len(log.Commits) != 0 {
		t.Errorf("log of an empty repository = %+v", log)
	}
	w.refused("commit", `{"message":"nothing"}`, plane.CodeNothingToCommit)
	w.put("a.txt", "one\ntwo\nthree\n")
	w.put("src/b.txt", "b\n")
	w.put("ignored.log", "x")
	w.put(".gitignore", "*.log\n")
	if diff := cmp.Diff(map[string]string{"a.txt": twice, "src/b.txt": twice, ".gitignore": twice}, w.states()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	staged := must[plane.StageOutput](w, "stage", `{"pathspec":[["a.txt"],["src"]]}`)
	if diff := cmp.Diff([]contract.Path{{"a.txt"}, {"src", "b.txt"}}, staged.Staged); diff != "" {
		t.Errorf("staged (-want +got):\n%s", diff)
	}
	w.refused("stage", `{"pathspec":[["a.txt"]]}`, plane.CodeNothingToStage)
	first := must[plane.CommitOutput](w, "commit", `{"message":"First\n\nwith a body"}`).Commit
	want := plane.Signature{Name: "agent:alice-assistant", Email: "alice-assistant@agent.invalid", When: contract.At(kerneltest.Epoch)}
	if diff := cmp.Diff(want, first.Author); diff != "" || first.Message != "First\n\nwith a body\n" || len(first.Parents) != 0 {
		t.Errorf("commit = %+v\n%s", first, diff)
	}

	w.put("a.txt", "one\nTWO\nthree\n")
	if err := os.Remove(filepath.Join(w.dir, "src/b.txt")); err != nil {
		t.Fatal(err)
	}
	patch := must[plane.DiffOutput](w, "diff", `{"pathspec":[["a.txt"]]}`)
	for _, line := range []string{"diff --git a/a.txt b/a.txt", " one\n", "-two\n", "+TWO\n"} {
		if !strings.Contains(patch.Patch, line) {
			t.Errorf("patch lacks %q:\n%s", line, patch.Patch)
		}
	}
	if patch.Files != 1 || patch.Truncated {
		t.Errorf("diff = %+v", patch)
	}
	if staged := must[plane.DiffOutput](w, "diff", `{"staged":true}`); staged.Patch != "" {
		t.Errorf("staged diff = %+v", staged)
	}
	must[plane.StageOutput](w, "stage", `{"pathspec":[[]]}`)
	if patch := must[plane.DiffOutput](w, "diff", `{"staged":true}`); patch.Files != 3 || !strings.Contains(patch.Patch, "deleted file") {
		t.Errorf("staged diff = %+v", patch)
	}
	second := must[plane.CommitOutput](w, "commit", `{"message":"Second"}`).Commit
	log := must[plane.LogOutput](w, "log", `{"maxCount":1}`)
	if diff := cmp.Diff([]plane.Commit{second}, log.Commits); diff != "" || !log.Truncated || second.Parents[0] != first.ID {
		t.Errorf("log = %+v\n%s", log, diff)
	}
	if status := must[plane.StatusOutput](w, "status", "{}"); !status.Clean || status.Head != second.ID {
		t.Errorf("status = %+v", status)
	}
	w.gitAgrees(second.ID)
}

// gitAgrees lets Git itself judge the repository, where it is installed.
func (w *world) gitAgrees(head string) {
	w.tb.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		w.tb.Log("git is not installed: its opinion is left out")
		return
	}
	for _, args := range [][]string{{"fsck", "--strict"}, {"status", "--porcelain"}, {"rev-parse", "HEAD"}} {
		command := exec.CommandContext(w.tb.Context(), program, append([]string{"-c", "safe.directory=*", "-C", w.dir}, args...)...)
		out, err := command.CombinedOutput()
		if err != nil || (args[0] == "status" && len(out) > 0) || (args[0] == "rev-parse" && strings.TrimSpace(string(out)) != head) {
			w.tb.Errorf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestInputIsRefused(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a")
	for _, tc := range []struct{ action, input, code string }{
		{"status", `{"x":1}`, plane.CodeInvalidInput},
		{"log", `{"maxCount":1001}`, plane.CodeInvalidInput},
		{"log", `{"maxCount":-1}`, plane.CodeInvalidInput},
		{"stage", `{}`, plane.CodeInvalidInput},
		{"stage", `{"pathspec":[]}`, plane.CodeInvalidInput},
		{"stage", `{"pathspec":[["..","x"]]}`, plane.CodeInvalidInput},
		{"stage", `{"pathspec":[[".git","config"]]}`, plane.CodeInvalidInput},
		{"diff", `{"pathspec":[]}`, plane.CodeInvalidInput},
		{"commit", `{"message":" \n"}`, plane.CodeInvalidInput},
		{"commit", `{}`, plane.CodeInvalidInput},
		{"push", `{}`, plane.CodeBadAction},
	} {
		w.refused(tc.action, tc.input, tc.code)
	}
	for _, tc := range []struct {
		path contract.Path
		code string
	}{
		{contract.Path{}, plane.CodeNotARepository},
		{contract.Path{"app", ".git"}, plane.CodeInvalidPath},
		{contract.Path{".."}, plane.CodeInvalidPath},
		{contract.Path{"nothing"}, plane.CodeNotFound},
		{contract.Path{"app", "a"}, plane.CodeNotFound},
	} {
		if _, code, err := w.do(t.Context(), "status", tc.path, "{}"); err != nil || code != tc.code {
			t.Errorf("status %v: %s %v, want %s", tc.path, code, err, tc.code)
		}
	}
	small := newWorld(t, func(o *repo.Options) { o.MaxFile, o.ReadOnly = 3, false })
	small.put("big", "1234")
	small.refused("stage", `{"pathspec":[["big"]]}`, plane.CodeTooLarge)
	readOnly := newWorld(t, func(o *repo.Options) { o.ReadOnly = true })
	readOnly.refused("stage", `{"pathspec":[["a"]]}`, plane.CodeReadOnly)
	readOnly.refused("commit", `{"message":"m"}`, plane.CodeReadOnly)
}

func TestLockIsGits(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a")
	w.put(".git/index.lock", "")
	w.refused("stage", `{"pathspec":[["a"]]}`, plane.CodeLocked)
	must[plane.StatusOutput](w, "status", `{}`)
	if err := os.Remove(filepath.Join(w.dir, ".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	must[plane.StageOutput](w, "stage", `{"pathspec":[["a"]]}`)
	if _, err := os.Stat(filepath.Join(w.dir, ".git/index.lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock was left: %v", err)
	}
}

func TestCancelledChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for action, input := range map[string]string{"status": `{}`, "stage": `{"pathspec":[["a"]]}`, "commit": `{"message":"m"}`} {
		if _, code, err := w.do(ctx, action, contract.Path{"app"}, input); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %q %v, want cancelled", action, code, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": twice}, w.states()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestConcurrentWritersTakeTurns(t *testing.T) {
	const writers = 6
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range writers {
		name := fmt.Sprintf("f%d", i)
		w.put(name, name)
		wg.Go(func() {
			if _, code, err := w.do(t.Context(), "stage", contract.Path{"app"}, `{"pathspec":[["`+name+`"]]}`); code != "" || err != nil {
				t.Errorf("stage: %s %v", code, err)
			}
			_, code, err := w.do(t.Context(), "commit", contract.Path{"app"}, `{"message":"`+name+`"}`)
			if err != nil || (code != "" && code != plane.CodeNothingToCommit) { // another one may have taken it along
				t.Errorf("commit: %s %v", code, err)
			}
		})
	}
	wg.Wait()
	status := must[plane.StatusOutput](w, "status", "{}")
	if !status.Clean {
		t.Errorf("status = %+v", status)
	}
	w.gitAgrees(status.Head)
}

func TestThroughTheKernel(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a\n")
	k := kerneltest.New(kerneltest.MakeGrant("g").Exact("repo", []string{"app"}, "*").Obj())
	k.Options.Tools = planeTools(w)
	turn := k.Turn(t)
	for i, call := range [][2]string{
		{"repo.status", `{"path":["app"]}`}, {"repo.stage", `{"path":["app"],"pathspec":[["a"]]}`},
		{"repo.diff", `{"path":["app"],"staged":true}`}, {"repo.commit", `{"path":["app"],"message":"m"}`}, {"repo.log", `{"path":["app"]}`},
	} {
		if result := turn.Invoke(t.Context(), kerneltest.Call(fmt.Sprintf("call-%d", i), call[0], call[1])); result.Status != contract.StatusSucceeded {
			t.Errorf("%s: %+v", call[0], result.Error)
		}
	}
}

func planeTools(w *world) []kernel.Tool { return plane.Tools(w.provider) }
