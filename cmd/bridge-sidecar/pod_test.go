package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

// harnessReport is what the example harness prints.
type harnessReport struct {
	CatalogHash string   `json:"catalogHash"`
	ExecutionID string   `json:"executionId"`
	Tools       []string `json:"tools"`
	Calls       []struct {
		Tool       string `json:"tool"`
		IsError    bool   `json:"isError"`
		Status     string `json:"status"`
		Code       string `json:"code"`
		Structured any    `json:"structured"`
	} `json:"calls"`
	Probe []struct {
		Readable bool `json:"readable"`
	} `json:"probe"`
}

// wrapped is the harness's container: the wrapper from the shared volume runs a
// command.
func wrapped(root string, command ...string) *exec.Cmd {
	args := append([]string{"run", "--socket", filepath.Join(root, bridge.ControlSocket), "--"}, command...)
	cmd := exec.Command(filepath.Join(root, bridge.WrapperPath), args...)
	cmd.Env = harnessEnv(root)
	return cmd
}

// Three real processes and a real MCP client: the sidecar, the wrapper it installed,
// and the example harness.
func TestATurnInAPod(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)

	var stdout bytes.Buffer
	harness := launch(t, wrapped(root, built(t).harness), &stdout)
	if code := harness.exit(t); code != 0 {
		t.Fatalf("harness: exit %d\n%s", code, harness.stderr.String())
	}
	outcome := k.Outcome(t)
	if !outcome.Started || outcome.ExitCode != 0 || !outcome.Initialized || outcome.OutputSize != int64(stdout.Len()) {
		t.Errorf("outcome = %+v", outcome)
	}
	if !bytes.Equal(outcome.Output, stdout.Bytes()) {
		t.Error("the output in the log is not the one that was reported")
	}
	var got harnessReport
	if err := json.Unmarshal(outcome.Output, &got); err != nil {
		t.Fatalf("%s: %v", outcome.Output, err)
	}
	if got.CatalogHash != k.CatalogHash() || got.ExecutionID != sidecartest.ExecutionID {
		t.Errorf("catalogue %s of %s", got.CatalogHash, got.ExecutionID)
	}
	if diff := cmp.Diff([]string{"files.read", "notes.append"}, got.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	var calls []string
	for _, c := range got.Calls {
		calls = append(calls, fmt.Sprintf("%s %s %s %t", c.Tool, c.Status, c.Code, c.IsError))
	}
	want := []string{
		"files.list denied tool_unavailable true",
		"files.read succeeded  false",
		"files.read denied no_matching_grant true",
		"files.create denied tool_unavailable true",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"content": sidecartest.Content}), got.Calls[1].Structured); diff != "" {
		t.Errorf("structured output (-want +got):\n%s", diff)
	}
	k.End(contract.StatusSucceeded)
	sidecar.stop(t)
	for _, secret := range []string{sidecartest.PodToken, "Bearer"} {
		if strings.Contains(sidecar.stderr.String()+harness.stderr.String(), secret) {
			t.Errorf("a log holds %q", secret)
		}
	}
}

func TestTheHarnessesExitCodeIsTheContainers(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{Payload: contract.Value(`{"exitCode":3,"probe":["/no/such/file"]}`)})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)
	harness := launch(t, wrapped(root, built(t).harness), io.Discard)
	if code := harness.exit(t); code != 3 {
		t.Errorf("exit %d, want 3\n%s", code, harness.stderr.String())
	}
	outcome := k.Outcome(t)
	var got harnessReport
	if err := json.Unmarshal(outcome.Output, &got); err != nil || len(got.Probe) != 1 || got.Probe[0].Readable {
		t.Errorf("report %s, %v", outcome.Output, err)
	}
	if !outcome.Started || outcome.ExitCode != 3 {
		t.Errorf("outcome = %+v", outcome)
	}
	sidecar.stop(t)
}

func TestSIGTERMReachesTheHarness(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{Payload: contract.Value(`{"sleepSeconds":600}`)})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)
	cmd := wrapped(root, built(t).harness)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := firstLine(t, r); !strings.HasPrefix(line, "connected to sharedos") {
		t.Errorf("harness says %q", line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
	if o := k.Outcome(t); !o.Started || o.ExitCode != 143 || !bytes.Contains(o.Output, []byte(`"terminated"`)) {
		t.Errorf("outcome = %+v, %s", o, o.Output)
	}
	sidecar.stop(t)
}

func TestProbe(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{})
	root := sharedDir(t)
	var stdout, stderr bytes.Buffer
	socket := filepath.Join(root, bridge.ControlSocket)
	if code := dispatch([]string{"probe", "--socket", socket, "--timeout", "10ms"}, &stdout, &stderr); code != exitFailed {
		t.Errorf("without a sidecar: exit %d", code)
	}
	sidecar := serveIn(t, k, root)
	if code := dispatch([]string{"probe", "--socket", socket}, &stdout, &stderr); code != exitOK || stdout.String() != "ready\n" {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
	sidecar.stop(t)
	if code := dispatch([]string{"probe", "--socket", socket, "--timeout", "10ms"}, &stdout, &stderr); code != exitFailed {
		t.Errorf("after the end: exit %d", code)
	}
}

// The sidecar is in every pod: what it needs while nothing happens is counted.
func TestIdleMemoryAndSize(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc, which is Linux's")
	}
	k := sidecartest.New(t, sidecartest.Options{})
	root := sharedDir(t)
	sidecar := serveIn(t, k, root)
	harness := launch(t, wrapped(root, built(t).harness), io.Discard)
	if code := harness.exit(t); code != 0 {
		t.Fatalf("harness: exit %d", code)
	}
	const limit = 20 << 20
	if rss := residentBytes(t, sidecar.Process.Pid); rss > limit {
		t.Errorf("resident memory %d bytes, limit %d", rss, limit)
	} else {
		t.Logf("resident memory %.1f MiB", float64(rss)/(1<<20))
	}
	info, err := os.Stat(built(t).sidecar)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit {
		t.Errorf("binary of %d bytes, limit %d", info.Size(), limit)
	}
	t.Logf("binary %.1f MiB", float64(info.Size())/(1<<20))
	sidecar.stop(t)
}

func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestCommandLine(t *testing.T) {
	for name, tt := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"nothing":        {nil, exitUsage, "", "Usage:"},
		"help":           {[]string{"--help"}, exitOK, "Exit codes:", ""},
		"unknown":        {[]string{"dance"}, exitUsage, "", `unknown subcommand "dance"`},
		"version":        {[]string{"version"}, exitOK, "dev", ""},
		"run of nothing": {[]string{"run"}, exitUsage, "", "a command is required"},
		"run help":       {[]string{"run", "--help"}, exitOK, "", "wait-timeout"},
		"bad flag":       {[]string{"probe", "--no-such"}, exitUsage, "", "no-such"},
		"serve args":     {[]string{"serve", "x"}, exitUsage, "", "takes no arguments"},
		"serve env":      {[]string{"serve"}, exitUsage, "", "is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := dispatch(tt.args, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, stdout.String(), stderr.String())
			}
		})
	}
}

func TestSoftLimit(t *testing.T) {
	for container, want := range map[string]int64{
		"max\n": memoryLimit, "": memoryLimit, "0": memoryLimit, "1073741824\n": memoryLimit, "20000000\n": 18000000,
	} {
		if got := softLimit(container); got != want {
			t.Errorf("container %q: %d, want %d", container, got, want)
		}
	}
}
