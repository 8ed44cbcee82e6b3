package localrun_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/localrun"
)

const policies = "../examples/policies"

// envRole makes this test binary a harness.
const envRole = "LOCALRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(harness(role))
	}
	os.Exit(m.Run())
}

// harness is what the subprocess does.
func harness(role string) int {
	switch role {
	case "silent":
		fmt.Println("I said nothing to anybody.")
		return 0
	case "prints":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), 5_000_000)) // and then as the others
	case "fails":
		return 7
	case "stays", "stubborn":
		if role == "stubborn" {
			signal.Ignore(syscall.SIGTERM)
		}
		// What it starts belongs to its group and must end with it.
		child, err := os.StartProcess("/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{})
		if err != nil {
			return 1
		}
		note := fmt.Sprintf("%d %d", os.Getpid(), child.Pid)
		if os.WriteFile(os.Getenv("LOCALRUN_TEST_PIDS"), []byte(note), 0o600) != nil {
			return 1
		}
		select {}
	}
	if err := call(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// call is a plain client: it initializes, reads an allowed and a denied file, and
// prints what it got.
func call() error {
	raw, err := os.ReadFile(os.Getenv("SHAREDOS_MCP_CONFIG"))
	if err != nil {
		return err
	}
	var config struct {
		Servers map[string]struct {
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return err
	}
	server := config.Servers["sharedos"]
	if server.URL != os.Getenv("SHAREDOS_MCP_URL") {
		return errors.New("the file and the environment name different bridges")
	}
	post := func(token, body string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(text)
	}
	if status, _ := post("Bearer wrong", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusUnauthorized {
		return fmt.Errorf("a wrong token was answered %d", status)
	}
	token := server.Headers["Authorization"]
	post(token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	post(token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if os.Getenv(envRole) == "wiki" {
		for i, page := range []string{"atlas/plan", "salaries", "../atlas"} {
			_, text := post(token, `{"jsonrpc":"2.0","id":`+strconv.Itoa(i+2)+`,"method":"tools/call","params":{"name":"wiki.read","arguments":{"page":"`+page+`"}}}`)
			fmt.Println(strings.Contains(text, "the text of atlas/plan"), strings.Contains(text, `\"code\"`))
		}
		return nil
	}
	for i, path := range []string{`["Work","atlas","status.md"]`, `["Work","salaries.csv"]`} {
		_, text := post(token, `{"jsonrpc":"2.0","id":`+strconv.Itoa(i+2)+`,"method":"tools/call","params":{"name":"files.read","arguments":{"path":`+path+`}}}`)
		fmt.Println(strings.Contains(text, "ships on 30 September"), strings.Contains(text, "no_matching_grant"))
	}
	message, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("SHAREDOS_MESSAGE_FILE")), "message.txt"))
	fmt.Println(string(message), os.Args[len(os.Args)-1])
	return err
}

func options(t *testing.T, role string) localrun.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	if err := os.CopyFS(filepath.Join(files, "Work"), os.DirFS(filepath.Join(policies, "files", "Work"))); err != nil {
		t.Fatal(err)
	}
	return localrun.Options{
		Paths: []string{policies}, Namespace: "team-atlas", Principal: "alice-assistant", Message: "When does Atlas ship?",
		Command: []string{self, "$(SHAREDOS_TURN)"}, Files: files, ReadOnly: true, Env: append(os.Environ(), envRole+"="+role),
	}
}

func TestRun(t *testing.T) {
	o := options(t, "calls")
	record := &audit.Memory{}
	var progress strings.Builder
	o.Audit, o.Progress, o.Stderr = record, &progress, t.Output()
	result, err := localrun.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`"true false\nfalse true\nWhen does Atlas ship? local\n"`, string(result.Output)); diff != "" || result.Status != contract.StatusSucceeded {
		t.Errorf("%s %+v (-want +got):\n%s", result.Status, result.Error, diff)
	}
	for _, want := range []string{
		"turn started with 7 tools: files.create, files.grep,", "files.read succeeded", "files.read denied no_matching_grant",
		"refused: read files:Work/salaries.csv (no_matching_grant)", "grant read-atlas: capability", "turn completed",
	} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, progress.String())
		}
	}
	var ended bool
	for _, e := range record.Events() {
		ended = ended || e.Type == audit.TurnEnded
	}
	if !ended {
		t.Error("the ending is not in the audit record")
	}
	if entries, err := os.ReadDir(o.Files); err != nil || len(entries) != 1 {
		t.Errorf("something was left in the served folder: %v %v", entries, err)
	}
}

func TestEndings(t *testing.T) {
	for role, want := range map[string]struct{ code, details string }{
		"silent": {"harness_exited_without_outcome", `{"exitCode":0,"initialized":false}`},
		"fails":  {"harness_exited_without_outcome", `{"exitCode":7}`},
	} {
		result, err := localrun.Run(t.Context(), options(t, role))
		if err != nil || result.Status != contract.StatusFailed || result.Error.Code != want.code || string(result.Error.Details) != want.details {
			t.Errorf("%s: %s %+v %v", role, result.Status, result.Error, err)
		}
	}
	o := options(t, "calls")
	o.Command = []string{"/no/such/program"}
	if result, err := localrun.Run(t.Context(), o); err != nil || result.Error == nil || result.Error.Code != "harness_not_started" {
		t.Errorf("a program that is not there: %+v %v", result.Error, err)
	}
	o = options(t, "calls")
	o.Principal = "researcher" // it may not run
	if result, err := localrun.Run(t.Context(), o); err != nil || result.Status != contract.StatusDenied || result.Error.Code != contract.CodeNoMatchingGrant {
		t.Errorf("who may not run: %s %+v %v", result.Status, result.Error, err)
	}
}

// TestOutputThatIsCut is said to be: to whoever runs it, and in the result.
func TestOutputThatIsCut(t *testing.T) {
	o := options(t, "prints")
	var said strings.Builder
	o.Stderr = &said
	result, err := localrun.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "the output is cut: the first 921600 of 5000") {
		t.Errorf("said %q", said.String())
	}
	if result.Status != contract.StatusSucceeded || !strings.Contains(string(result.Metadata), `"outputTruncated":true`) {
		t.Errorf("%s with %s", result.Status, result.Metadata)
	}
	o = options(t, "calls") // and one that is whole is not
	said.Reset()
	o.Stderr = &said
	if result, err = localrun.Run(t.Context(), o); err != nil || strings.Contains(said.String(), "cut") {
		t.Errorf("%v, said %q of %d bytes", err, said.String(), len(result.Output))
	}
}

// TestCancelEndsTheGroup: whoever cancels, by the caller's context or by the deadline,
// and however stubborn the harness is, nothing of it is left when Run returns.
func TestCancelEndsTheGroup(t *testing.T) {
	for name, c := range map[string]struct {
		role    string
		timeout time.Duration
	}{"caller": {role: "stays"}, "stubborn": {role: "stubborn"}, "deadline": {role: "stays", timeout: 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			o := options(t, c.role)
			o.Env = append(o.Env, "LOCALRUN_TEST_PIDS="+pids)
			o.Timeout, o.KillGrace = c.timeout, 200*time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for c.timeout == 0 && ctx.Err() == nil {
					if data, err := os.ReadFile(pids); err == nil && strings.Contains(string(data), " ") {
						cancel()
					}
				}
			}()
			result, err := localrun.Run(ctx, o)
			if err != nil || result.Status != contract.StatusCancelled {
				t.Fatalf("%s %+v %v", result.Status, result.Error, err)
			}
			if told := strings.Contains(result.Error.Message, "time was up after 2s"); told != (c.timeout != 0) {
				t.Errorf("why it was cancelled: %q", result.Error.Message)
			}
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			for pid := range strings.FieldsSeq(string(data)) {
				// A killed process may take a moment to be gone.
				for end := time.Now().Add(5 * time.Second); alive(t, pid); runtime.Gosched() {
					if time.Now().After(end) {
						t.Errorf("process %s is still there", pid)
						break
					}
				}
			}
		})
	}
}

// alive ignores what has ended and only waits for its parent to notice.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Skip("this test looks at /proc")
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	brokered := write("brokered.yaml", `apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: notes}
spec: {enabled: true, source: {mcp: {service: {name: notes, port: 8080}}}}
`)
	for name, c := range map[string]struct {
		change func(*localrun.Options)
		want   string
	}{
		"no command":        {func(o *localrun.Options) { o.Command = nil }, "say what to run"},
		"no principal":      {func(o *localrun.Options) { o.Principal = "" }, "name the Principal"},
		"unknown principal": {func(o *localrun.Options) { o.Principal = "eve" }, `principal "eve": principal not found`},
		"a human":           {func(o *localrun.Options) { o.Principal = "alice" }, "only an agent"},
		"purpose":           {func(o *localrun.Options) { o.Purpose = "payroll" }, `purpose "payroll"`},
		"harness":           {func(o *localrun.Options) { o.Harness = "gone" }, `no Harness "gone"`},
		"folder":            {func(o *localrun.Options) { o.Files = "/no/such" }, "no folder"},
		"manifests":         {func(o *localrun.Options) { o.Paths = []string{write("bad.yaml", "kind: [")} }, "bad.yaml:1"},
		"a Service":         {func(o *localrun.Options) { o.Paths = append(o.Paths, brokered) }, "--upstream notes=URL"},
		"upstream":          {func(o *localrun.Options) { o.Upstreams = map[string]string{"gone": "http://a"} }, "--upstream gone: there is no"},
		"type":              {func(o *localrun.Options) { o.Type = "zzz" }, `type: "zzz" is not claude-code`},
		"without":           {func(o *localrun.Options) { o.Without = []string{"nope"} }, `without: there is no ToolNamespace "nope"`},
		"no time":           {func(o *localrun.Options) { o.Timeout = -time.Second }, "timeout: -1s is not from 1ms to 10m"},
		"too little time":   {func(o *localrun.Options) { o.Timeout = time.Microsecond }, "timeout: 1µs is not"},
		"too much time":     {func(o *localrun.Options) { o.Timeout = time.Hour }, "timeout: 1h0m0s is not"},
		"calls":             {func(o *localrun.Options) { o.MaxToolCalls = -1 }, "max-tool-calls: -1"},
		"secrets":           {func(o *localrun.Options) { o.Secrets = "/no/such" }, "no folder"},
	} {
		o := options(t, "calls")
		c.change(&o)
		if _, err := localrun.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	keyed := write("keyed.yaml", `apiVersion: sharedos.dev/v1alpha1
kind: ToolNamespace
metadata: {name: notes}
spec: {enabled: true, source: {mcp: {url: "https://notes.example.com", headersFrom: [{name: X-Key, secretKeyRef: {name: k, key: k}}]}}}
`)
	o := options(t, "calls")
	o.Paths, o.Upstreams = append(o.Paths, keyed), map[string]string{"notes": "http://notes.example.com"}
	if _, err := localrun.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "clear text") {
		t.Errorf("credentials in clear text: %v", err)
	}
	o = options(t, "calls")
	o.Paths, o.Without = append(o.Paths, brokered), []string{"notes"}
	if result, err := localrun.Run(t.Context(), o); err != nil || result.Status != contract.StatusSucceeded {
		t.Errorf("without notes: %s %v", result.Status, err)
	}
}
