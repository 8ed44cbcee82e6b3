package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/control"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

const patience = 60 * time.Second

// binaries are built once for all tests, as the images are: static.
type binaries struct{ sidecar, harness string }

var (
	buildDir string // until TestMain ends
	build    = sync.OnceValues(buildAll)
)

func buildAll() (binaries, error) {
	b := binaries{filepath.Join(buildDir, "bridge-sidecar"), filepath.Join(buildDir, "harness")}
	for out, in := range map[string]string{b.sidecar: ".", b.harness: filepath.Join("..", "..", "examples", "harness")} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=test", "-o", out, ".")
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			return binaries{}, errors.New(string(text))
		}
	}
	return b, nil
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bridge-sidecar")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func built(tb testing.TB) binaries {
	tb.Helper()
	b, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// sharedDir is a root directory with the shared volume in it, with a path that is
// short enough for a socket.
func sharedDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "pod") //nolint:usetesting // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// process is a child whose end is waited for.
type process struct {
	*exec.Cmd
	stderr bytes.Buffer
	done   chan error
}

func launch(tb testing.TB, cmd *exec.Cmd, stdout io.Writer) *process {
	tb.Helper()
	p := &process{Cmd: cmd, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { p.done <- cmd.Wait() }()
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// exit waits for the end and returns the exit code.
func (p *process) exit(tb testing.TB) int {
	tb.Helper()
	select {
	case err := <-p.done:
		var exited *exec.ExitError
		if err != nil && !errors.As(err, &exited) {
			tb.Fatal(err)
		}
		return p.ProcessState.ExitCode()
	case <-time.After(patience):
		tb.Fatalf("%s does not end", p.Path)
		return -1
	}
}

// serveIn starts the sidecar of a pod whose shared volume is root/sharedos, and
// waits until it is ready.
func serveIn(tb testing.TB, k *sidecartest.Kernel, root string) *process {
	tb.Helper()
	cmd := exec.Command(built(tb).sidecar, "serve",
		"--shared-dir", filepath.Join(root, bridge.SharedDir), "--token-file", k.TokenFile)
	cmd.Env = []string{
		bridge.EnvKernelURL + "=" + k.URL, bridge.EnvKernelCA + "=" + string(k.CA()),
		bridge.EnvTurn + "=" + sidecartest.Turn, bridge.EnvBridgePort + "=0"}
	p := launch(tb, cmd, io.Discard)
	if err := (&control.Client{Path: filepath.Join(root, bridge.ControlSocket)}).WaitReady(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return p
}

// stop sends SIGTERM, as the kubelet does, and expects exit code 0.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatal(err)
	}
	if code := p.exit(tb); code != 0 {
		tb.Errorf("sidecar: exit %d\n%s", code, p.stderr.String())
	}
}

// harnessEnv is what the webhook gives a harness container.
func harnessEnv(root string) []string {
	return []string{
		bridge.EnvMCPConfig + "=" + filepath.Join(root, bridge.ConfigDir, ".mcp.json"),
		bridge.EnvMessage + "=" + filepath.Join(root, bridge.MessageFile)}
}

// firstLine reads what a child says first.
func firstLine(tb testing.TB, r io.Reader) string {
	tb.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}
