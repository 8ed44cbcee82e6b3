package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// buildPlugin builds bin/kubectl-sharedos once, as people do.
var buildPlugin = sync.OnceValues(func() (string, error) {
	out, err := exec.CommandContext(context.Background(), "make", "-C", cluster.Root, "plugin").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make plugin: %w: %s", err, out)
	}
	return filepath.Join(cluster.Root, "bin", "kubectl-sharedos"), nil
})

// sharedos is a call of the plugin.
func sharedos(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := buildPlugin()
	must(t, err)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = cluster.Env(), 5*time.Second
	return cmd
}

// TestPluginLogs: what the agent writes is there while it runs, and the rest when it has
// ended.
func TestPluginLogs(t *testing.T) {
	t.Parallel()
	_, err := buildPlugin() // before the clock runs
	must(t, err)
	w := newWorld(t, "plugin")
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	_, err = w.Turn(t.Context(), "t", kit.Script{SleepSeconds: 10, Calls: []kit.Call{kit.Read("Work", "atlas", "status.md")}})
	must(t, err)
	if _, err := w.Until(t.Context(), "t", patience, isRunning); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := sharedos(ctx, t, "logs", "turn/t", "--follow", "-n", w.Namespace)
	var all, said strings.Builder
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "granted: ") {
			turn, err := w.Until(ctx, "t", patience, func(*v1alpha1.Turn) bool { return true })
			must(t, err)
			if turn.IsFinished() {
				t.Errorf("the log came when the turn was over")
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("logs --follow: %v\n%s%s", err, all.String(), said.String())
	}
	turn, err := w.Finish(t.Context(), "t")
	must(t, err)
	for _, want := range []string{"connected to ", "granted: ", `"executionId":`, "On track. Atlas ships on 2027-02-15."} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, all.String())
		}
	}
	if turn.Status.Outcome != v1alpha1.TurnSucceeded {
		t.Errorf("%s %s", turn.State(), errorOf(turn))
	}
	short, err := sharedos(ctx, t, "logs", "t", "--tail", "1", "-n", w.Namespace).CombinedOutput()
	if err != nil || strings.Count(string(short), "\n") != 1 {
		t.Errorf("--tail 1: %v\n%s", err, short)
	}
	bridge, err := sharedos(ctx, t, "logs", "t", "--bridge", "-n", w.Namespace).CombinedOutput()
	if err != nil || len(bridge) == 0 || strings.Contains(string(bridge), "granted: ") {
		t.Errorf("--bridge: %v\n%s", err, bridge)
	}
}

var consoleAt = regexp.MustCompile(`The console is at (http://localhost:\d+/) until`)

// TestPluginConsole opens the console through a real port-forward, and shows that nothing
// else reaches it.
func TestPluginConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "console")
	must(t, w.GrantRun(t.Context()))
	_, err := w.Turn(t.Context(), "shown", kit.Script{})
	must(t, err)
	_, err = w.Finish(t.Context(), "shown")
	must(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := sharedos(ctx, t, "console", "--port", "0")
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	at := consoleAt.FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("the console said %q", line)
	}
	// A replica that does not lead fills its cache at the first page.
	turn := "turns/" + w.Namespace + "/shown"
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		status, body, err := page(ctx, at[1]+turn, "")
		return status == http.StatusOK && strings.Contains(body, kit.Agent), err
	})
	if err != nil {
		t.Errorf("the turn's page: %v", err)
	}
	for _, path := range []string{"", "turns?world=" + w.Namespace, "reach", "refusals", "escalations"} {
		if status, body, err := page(ctx, at[1]+path, ""); err != nil || status != http.StatusOK || !strings.Contains(body, "<html") {
			t.Errorf("page /%s: %d %v\n%s", path, status, err, body)
		}
	}
	if status, _, err := page(ctx, at[1], "console.example.com"); err != nil || status != http.StatusForbidden {
		t.Errorf("by another name the console answers %d %v", status, err)
	}
	must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("console, interrupted: %v", err)
	}

	manager := &corev1.Pod{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-manager-0"}, manager))
	// The webhooks' port is open to all pods, which shows that the pod can be reached.
	if said := knock(t, w, "webhooks", "http://"+manager.Status.PodIP+":9443/"); strings.Contains(said, "dial tcp") || !strings.Contains(said, "connect to the bridge: ") {
		t.Errorf("another pod at the port of the webhooks: %s", said)
	}
	if said := knock(t, w, "console", "http://"+manager.Status.PodIP+":8090/"); !strings.Contains(said, "dial tcp "+manager.Status.PodIP+":8090: ") {
		t.Errorf("another pod at the port of the console: %s", said)
	}
}

// page asks for a page, by another name if there is one.
func page(ctx context.Context, url, host string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), errors.Join(err, resp.Body.Close())
}

// knock has a pod of its own, which belongs to no turn, make a request to the URL, and
// returns what it wrote.
func knock(t *testing.T, w *kit.World, name, url string) string {
	t.Helper()
	connection, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"door": map[string]string{"url": url}}})
	must(t, err)
	files := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "knock-" + name},
		Data:       map[string]string{"mcp.json": string(connection), "message.json": `{"payload":{"calls":[]}}`},
	}
	p := &corev1.Pod{ObjectMeta: files.ObjectMeta, Spec: w.PodSpec()}
	container := &p.Spec.Containers[0]
	container.Env = []corev1.EnvVar{{Name: "SHAREDOS_MCP_CONFIG", Value: "/knock/mcp.json"}, {Name: "SHAREDOS_MESSAGE_FILE", Value: "/knock/message.json"}}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "knock", MountPath: "/knock", ReadOnly: true}}
	p.Spec.Volumes = []corev1.Volume{{Name: "knock", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: files.Name}},
	}}}
	must(t, cluster.Client.Create(t.Context(), files))
	must(t, cluster.Client.Create(t.Context(), p))
	err = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: p.Name}, p)
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded, err
	})
	must(t, err)
	said, err := cluster.Run(t.Context(), "-n", w.Namespace, "logs", p.Name)
	must(t, err)
	return said
}

// TestPluginDoctor finds nothing wrong with what was installed.
func TestPluginDoctor(t *testing.T) {
	t.Parallel()
	var wrong, out []byte
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		if out, err = sharedos(ctx, t, "doctor", "-n", "default", "-o", "json").Output(); len(out) == 0 {
			return false, fmt.Errorf("doctor printed nothing: %w", err)
		}
		var findings []struct{ Check, State, Message, Fix string }
		if err := json.Unmarshal(out, &findings); err != nil {
			return false, err
		}
		wrong = nil
		for _, f := range findings {
			// The images are of a tag that may be another than the chart's.
			if f.State != "ok" && f.Check != "version" {
				wrong = fmt.Appendf(wrong, "%+v\n", f)
			}
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		t.Errorf("doctor: %v\n%s", err, wrong)
	}
	for _, check := range []string{`"manager's rights"`, `"certificates"`, `"injection webhook"`, `"kernel service"`, `"leader"`} {
		if !strings.Contains(string(out), check) {
			t.Errorf("doctor did not look at %s:\n%s", check, out)
		}
	}
}
