package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

// The harness's image may have nothing in it: no shell, no /proc, no /tmp, no user
// of that number, and nothing that may be written. The wrapper is its first process.
func TestTheWrapperNeedsNothingOfTheImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing the root directory and the user needs root")
	}
	k := sidecartest.New(t, sidecartest.Options{})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)
	binary, err := os.ReadFile(built(t).harness)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "harness"), binary, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bridge.WrapperPath, "run", "--", "/harness")
	cmd.Env = harnessEnv("/")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: 65532, Gid: 65532},
		Cloneflags: syscall.CLONE_NEWPID,
	}
	harness := launch(t, cmd, io.Discard)
	if code := harness.exit(t); code != 0 {
		t.Fatalf("exit %d\n%s", code, harness.stderr.String())
	}
	if o := k.Outcome(t); !o.Started || !o.Initialized || o.ExitCode != 0 || o.OutputSize == 0 {
		t.Errorf("outcome = %+v", o)
	}
	sidecar.stop(t)
}

// An orphan in the container is the wrapper's to collect, and not mistaken for the
// command.
func TestOrphansAreCollected(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a process namespace of its own needs root")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell to make orphans with")
	}
	k := sidecartest.New(t, sidecartest.Options{})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)
	// The inner shell's child is an orphan at once, and ends with another code. As
	// long as nobody collects it, a signal can be sent to it.
	cmd := wrapped(root, shell, "-c", `pid=$(sh -c '(exit 9) >/dev/null & echo $!'); i=0
		while kill -0 "$pid" 2>/dev/null; do i=$((i+1)); [ $i -lt 200000 ] || exit 5; done; exit 4`)
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	harness := launch(t, cmd, io.Discard)
	if code := harness.exit(t); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, harness.stderr.String())
	}
	if o := k.Outcome(t); o.ExitCode != 4 {
		t.Errorf("outcome = %+v", o)
	}
	sidecar.stop(t)
}
