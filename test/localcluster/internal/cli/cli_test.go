package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/cluster"
	"github.com/sharedos-dev/operator/test/localcluster/internal/layout"
)

func TestQuoteSurvivesAShell(t *testing.T) {
	for _, text := range []string{"/plain", "with blank", "it's", `a"b$HOME;c`} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("quote(%q) reaches the shell as %q, %v", text, out, err)
		}
	}
}

func TestWriteClusterEnv(t *testing.T) {
	l := layout.Layout{State: "/state", Run: "/run/x"}
	shell := func(env map[string]string, shown string) string {
		t.Helper()
		var b bytes.Buffer
		writeClusterEnv(&b, l, "/assets", "/containerd", func(k string) string { return env[k] })
		cmd := exec.Command("/bin/sh", "-ec", b.String()+"printf '%s' \""+shown+"\"")
		cmd.Env = []string{"PATH=/usr/bin"}
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("shell: %v\n%s\n%s", err, out, b.String())
		}
		return string(out)
	}
	got := shell(nil, "$KUBECONFIG $KUBEBUILDER_ASSETS $PATH $CONTAINERD_ADDRESS $NO_PROXY.")
	if want := "/state/kubeconfig /assets /assets:/containerd:/usr/bin /run/x/containerd.sock ."; got != want {
		t.Errorf("environment = %q, want %q", got, want)
	}
	proxied := map[string]string{"HTTPS_PROXY": "http://proxy", "NO_PROXY": "here"}
	if got, want := shell(proxied, "$NO_PROXY"), "here,"+cluster.PodAndServiceCIDRs; got != want {
		t.Errorf("NO_PROXY = %q, want %q", got, want)
	}
	proxied["NO_PROXY"] = cluster.PodAndServiceCIDRs
	if got := shell(proxied, "$NO_PROXY"); got != cluster.PodAndServiceCIDRs {
		t.Errorf("NO_PROXY grows to %q", got)
	}
}

func testStatus(now time.Time) cluster.Status {
	started := now.Add(-90 * time.Second)
	return cluster.Status{
		Version: "v1.2.3",
		Components: []cluster.ComponentStatus{
			{Name: "etcd", Running: true, PID: 42, MemoryMiB: 7, Started: &started},
			{Name: "kubelet"},
		},
		Checks: []cluster.Check{{Name: "api", OK: true}, {Name: "node", Detail: "no network"}},
	}
}

func TestWriteTable(t *testing.T) {
	now := time.Now()
	var b bytes.Buffer
	if err := writeTable(&b, testStatus(now), now); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := "COMPONENT STATE PID MEMORY AGE|etcd running 42 7 MiB 1m30s|kubelet stopped - - -||CHECK RESULT DETAIL|api ok v1.2.3|node failed no network"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("table = %q, want %q", got, want)
	}
}

func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, testStatus(time.Now())); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Up         *bool
		Components []struct{ Name string }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Up == nil || *got.Up || len(got.Components) != 2 {
		t.Errorf("JSON = %s, %v", b.String(), err)
	}
}

func TestStatusOfNoClusterFails(t *testing.T) {
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"status", "-o", "json", "--state-dir", t.TempDir(), "--cache-dir", t.TempDir()})
	err := cmd.ExecuteContext(t.Context())
	if ExitCode(err) != exitNotUp || !json.Valid(out.Bytes()) {
		t.Errorf("status = %v, output %q, want exit code %d and JSON", err, out.String(), exitNotUp)
	}
	cmd.SetArgs([]string{"status", "-o", "xml"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || ExitCode(err) != 1 {
		t.Errorf("status -o xml = %v, want an ordinary error", err)
	}
}

func TestExitCode(t *testing.T) {
	if got := ExitCode(fmt.Errorf("wrapped: %w", errNotUp)); got != exitNotUp {
		t.Errorf("ExitCode(not up) = %d, want %d", got, exitNotUp)
	}
	if got := ExitCode(errors.New("other")); got != 1 {
		t.Errorf("ExitCode(other) = %d, want 1", got)
	}
}

func TestLoadNeedsARunningCluster(t *testing.T) {
	cmd := NewCommand()
	cmd.SetArgs([]string{"load", "x.tar", "--state-dir", t.TempDir(), "--cache-dir", t.TempDir()})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "`up`") {
		t.Errorf("load without a cluster = %v, want it to say what to do", err)
	}
}
