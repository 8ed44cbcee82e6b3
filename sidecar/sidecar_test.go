package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/sidecar/control"
	"github.com/sharedos-dev/operator/sidecar/harnessfiles"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

const granted = `{"path":["Work","atlas","status.md"]}`

func TestATurnFromAttachToItsEnd(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{State: contract.Value(`{"page":2}`)})
	p := start(t, k)
	p.ready()
	p.initialize()

	_, list, err := p.rpc("tools/list", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	meta, ok := list["_meta"].(map[string]any)
	if !ok || meta["sharedos/catalogHash"] != k.CatalogHash() || meta["sharedos/executionId"] != sidecartest.ExecutionID {
		t.Errorf("_meta of tools/list = %v", list["_meta"])
	}
	allowed := p.call("files_read", granted)
	if allowed["isError"] != false || !cmp.Equal(allowed["structuredContent"], any(map[string]any{"content": sidecartest.Content})) {
		t.Errorf("allowed call = %v", allowed)
	}
	for tool, code := range map[string]string{"files.read": "no_matching_grant", "files.delete": "tool_unavailable"} {
		denied := p.call(tool, `{"path":["secrets"]}`)
		meta, ok := denied["_meta"].(map[string]any)
		if !ok || denied["isError"] != true || meta["sharedos/status"] != "denied" || meta["sharedos/code"] != code {
			t.Errorf("%s = %v, want denied with %s", tool, denied, code)
		}
	}
	calls := k.Calls()
	if len(calls) != 3 || calls[0].Tool != "files.read" || calls[0].Alias != "files_read" || calls[1].CallID == calls[2].CallID {
		t.Errorf("calls at the kernel: %+v", calls)
	}

	sent := bridge.Outcome{Started: true, ExitCode: 0, Output: []byte("ok"), OutputSize: 2, OutputSHA256: "x"}
	if err := p.socket.Report(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	want := sent
	want.Initialized = true
	if diff := cmp.Diff(want, k.Outcome(t)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}

	k.End(contract.StatusSucceeded)
	p.ended()
	if _, _, err := p.rpc("ping", `{}`); err == nil {
		t.Error("the bridge still answers after the turn's end")
	}
	if err := p.socket.Report(t.Context(), sent); err != nil {
		t.Errorf("a report after the end: %v", err)
	}
	var notReady *control.NotReadyError
	if err := p.socket.WaitReady(t.Context()); !errors.As(err, &notReady) || notReady.Status.State != control.StateEnded {
		t.Errorf("wait after the end: %v", err)
	}
	select {
	case err := <-p.done:
		t.Fatalf("the sidecar went by itself: %v", err)
	default:
	}
	p.stop()
	if err := p.wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// ended waits until the sidecar says that the turn is over.
func (p *pod) ended() {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		status, err := p.socket.Status(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		if status.State == control.StateEnded {
			return
		}
	}
	p.t.Fatal("the turn's end did not arrive")
}

func TestFilesForTheHarness(t *testing.T) {
	files := map[string]string{"codex": "config.toml", "claude-code": ".mcp.json", "deepseek": "cordis.patch.yml", "pi": ".mcp.json", "custom": ".mcp.json"}
	for harness, file := range files {
		t.Run(harness, func(t *testing.T) {
			k := sidecartest.New(t, sidecartest.Options{
				Harness: harness, Payload: contract.Value(`{"text":"Grüße","n":12345678901234567890}`), State: contract.Value(`{"n":1.0}`)})
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			p := start(t, k, func(o *Options) { o.Binary = self })
			p.ready()
			var message contract.MessageEnvelope
			if err := json.Unmarshal([]byte(p.read(bridge.MessageFile)), &message); err != nil {
				t.Fatal(err)
			}
			if string(message.Payload) != `{"text":"Grüße","n":12345678901234567890}` || message.Sender.ID != "alice" {
				t.Errorf("message = %+v", message)
			}
			if got := p.read(bridge.MessageTextFile); got != "Grüße" {
				t.Errorf("message text = %q", got)
			}
			if got := p.read(bridge.StateFile); got != `{"n":1.0}` {
				t.Errorf("state = %s", got)
			}
			if got := p.read(bridge.ConfigDir + "/" + file); !strings.Contains(got, "http://127.0.0.1:") {
				t.Errorf("connection file = %s", got)
			}
			for path, mode := range map[string]os.FileMode{
				bridge.MessageFile: 0o644, bridge.StateFile: 0o644, bridge.ConfigDir + "/" + file: 0o644,
				bridge.WrapperPath: 0o755, bridge.ConfigDir: 0o755 | os.ModeDir, bridge.ControlSocket: 0o666 | os.ModeSocket,
			} {
				info, err := os.Stat(p.path(path))
				if err != nil {
					t.Error(err)
				} else if info.Mode() != mode {
					t.Errorf("%s: mode %v, want %v", path, info.Mode(), mode)
				}
			}
			left, err := filepath.Glob(filepath.Join(p.dir, "*", ".new-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestNothingIsServedThatDoesNotBelongTogether(t *testing.T) {
	other := strings.Repeat("0", 64)
	tests := map[string]sidecartest.Options{
		"token names another catalogue": {Claims: func(c *mcp.ExecutionClaims) { c.CatalogHash = other }},
		"token names another turn":      {Claims: func(c *mcp.ExecutionClaims) { c.ExecutionID = "another" }},
		"token names another world":     {Claims: func(c *mcp.ExecutionClaims) { c.NamespaceID = "another" }},
		"answer names another":          {Attach: func(a *bridge.AttachResponse) *bridge.Error { a.CatalogHash = other; return nil }},
		"catalogue of another turn":     {Catalog: func(c *contract.Catalogue) { c.ExecutionID = "another" }},
		"a tool too many": {Catalog: func(c *contract.Catalogue) {
			c.Tools = append(c.Tools, contract.PublishedTool{Name: "z", Description: "more", InputSchema: contract.Object(`{}`)})
			c.CatalogHash, _ = contract.CatalogHash(c.Tools) // consistent in itself
		}},
		"a token that is none": {Attach: func(a *bridge.AttachResponse) *bridge.Error { a.ExecutionToken = "abc.def"; return nil }},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			sessions := make(chan struct{}, 1)
			options.BeforeSession = func(*http.Request) { sessions <- struct{}{} }
			p := start(t, sidecartest.New(t, options))
			err := p.wait()
			if err == nil || strings.Contains(err.Error(), "abc.def") {
				t.Fatalf("error = %v", err)
			}
			if _, err := os.Stat(p.path(bridge.ConfigDir)); !os.IsNotExist(err) {
				t.Errorf("a connection file was written: %v", err)
			}
			if len(sessions) > 0 {
				t.Error("the session was opened")
			}
		})
	}
}

func TestVerifyNamesItsError(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{Claims: func(c *mcp.ExecutionClaims) { c.CatalogHash = strings.Repeat("0", 64) }})
	if err := start(t, k).wait(); !errors.Is(err, ErrCatalogueMismatch) {
		t.Errorf("error = %v, want %v", err, ErrCatalogueMismatch)
	}
}

func TestOnlyTheBearerIsServed(t *testing.T) {
	p := start(t, sidecartest.New(t, sidecartest.Options{}))
	p.ready()
	url, authorization := p.endpoint()
	for name, tt := range map[string]struct {
		authorization string
		want          int
	}{
		"right":        {authorization, http.StatusOK},
		"none":         {"", http.StatusUnauthorized},
		"pod's token":  {"Bearer " + sidecartest.PodToken, http.StatusUnauthorized},
		"one too few":  {authorization[:len(authorization)-1], http.StatusUnauthorized},
		"one too many": {authorization + "x", http.StatusUnauthorized},
	} {
		status, _, err := post(t, url, tt.authorization, "ping", `{}`)
		if err != nil || status != tt.want {
			t.Errorf("%s: %d, %v, want %d", name, status, err, tt.want)
		}
	}
	status, err := p.socket.Status(t.Context())
	if err != nil || status.Initialized {
		t.Errorf("ping counts as initialize: %+v, %v", status, err)
	}
}

func TestReadyOnlyWithTheSession(t *testing.T) {
	asked, open := make(chan struct{}), make(chan struct{})
	k := sidecartest.New(t, sidecartest.Options{BeforeSession: func(*http.Request) {
		close(asked)
		<-open
	}})
	p := start(t, k)
	<-asked
	status, err := p.socket.Status(t.Context())
	if err != nil || status.State != control.StateStarting {
		t.Errorf("before the session: %+v, %v", status, err)
	}
	if status, _, err := p.rpc("ping", `{}`); status != http.StatusOK {
		t.Errorf("the session was asked for before the bridge listens: %d, %v", status, err)
	}
	close(open)
	p.ready()
}

func TestABrokenSessionDoesNotCloseTheBridge(t *testing.T) {
	var streams = make(chan struct{}, 8)
	k := sidecartest.New(t, sidecartest.Options{BeforeSession: func(*http.Request) { streams <- struct{}{} }})
	p := start(t, k)
	p.ready()
	<-streams
	k.Break()
	<-streams
	if got := p.call("files.read", granted); got["isError"] != false {
		t.Errorf("call after the break = %v", got)
	}
	p.ready()
	k.End(contract.StatusCancelled)
	p.ended()
}

func TestATurnThatEndedBefore(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{Attach: func(*bridge.AttachResponse) *bridge.Error {
		return &bridge.Error{Code: bridge.CodeTurnEnded, Message: "ended"}
	}})
	p := start(t, k)
	var notReady *control.NotReadyError
	if err := p.socket.WaitReady(t.Context()); !errors.As(err, &notReady) || notReady.Status.State != control.StateEnded {
		t.Errorf("wait = %v", err)
	}
	p.stop()
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

func TestAnotherPodIsRefused(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{Attach: func(*bridge.AttachResponse) *bridge.Error {
		return &bridge.Error{Code: bridge.CodePodNotBound, Message: "another pod is bound"}
	}})
	err := start(t, k).wait()
	var refused *bridge.Error
	if !errors.As(err, &refused) || refused.Code != bridge.CodePodNotBound {
		t.Errorf("error = %v", err)
	}
}

func TestACallAfterTheEndIsNotAnswered(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{
		Invoke: func(*http.Request, bridge.InvokeRequest) (contract.ToolResult, *bridge.Error) {
			return contract.ToolResult{}, &bridge.Error{Code: bridge.CodeTurnEnded, Message: "ended"}
		}})
	p := start(t, k)
	p.ready()
	if _, result, err := p.rpc("tools/call", `{"name":"notes.append"}`); err == nil {
		t.Errorf("answered %v", result)
	}
	p.ended()
}

func TestACallThatTheServiceRefusesIsAResult(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{
		Invoke: func(*http.Request, bridge.InvokeRequest) (contract.ToolResult, *bridge.Error) {
			return contract.ToolResult{}, &bridge.Error{Code: bridge.CodePodNotBound, Message: "no"}
		}})
	p := start(t, k)
	p.ready()
	got := p.call("notes.append", `{}`)
	meta, ok := got["_meta"].(map[string]any)
	if !ok || got["isError"] != true || meta["sharedos/status"] != "failed" || meta["sharedos/code"] != bridge.CodePodNotBound {
		t.Errorf("result = %v", got)
	}
}

func TestInitializeIsRememberedByANewProcess(t *testing.T) {
	k := sidecartest.New(t, sidecartest.Options{})
	first := start(t, k)
	first.ready()
	first.initialize()
	if _, _, err := first.rpc("tools/list", `{}`); err != nil {
		t.Fatal(err)
	}
	first.stop()
	if err := first.wait(); err != nil {
		t.Fatal(err)
	}
	// What a crash leaves behind must not be in the way.
	if err := os.WriteFile(first.path(bridge.ControlSocket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := start(t, k, func(o *Options) { o.SharedDir = first.dir })
	second.ready()
	if err := second.socket.Report(t.Context(), bridge.Outcome{Started: true}); err != nil {
		t.Fatal(err)
	}
	if o := k.Outcome(t); !o.Initialized {
		t.Errorf("outcome = %+v, want initialized", o)
	}
}

func TestARunningCallIsAnsweredWhenThePodGoes(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	k := sidecartest.New(t, sidecartest.Options{
		Invoke: func(r *http.Request, call bridge.InvokeRequest) (contract.ToolResult, *bridge.Error) {
			close(arrived)
			<-proceed
			return sidecartest.Invoke(r, call)
		}})
	p := start(t, k)
	p.ready()
	go func() {
		<-arrived
		p.stop()
		close(proceed)
	}()
	if got := p.call("notes.append", `{}`); got["isError"] != false {
		t.Errorf("result = %v", got)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

func TestOptionsFromEnv(t *testing.T) {
	good := map[string]string{
		bridge.EnvKernelURL: "https://kernel:8444", bridge.EnvKernelCA: "pem", bridge.EnvTurn: "t", bridge.EnvBridgePort: "7500"}
	get := func(env map[string]string) func(string) string { return func(k string) string { return env[k] } }
	o, err := OptionsFromEnv(get(good))
	if err != nil || o.Port != 7500 || o.SharedDir != bridge.SharedDir || o.TokenFile != bridge.TokenFile {
		t.Errorf("options = %+v, %v", o, err)
	}
	for name, change := range map[string][2]string{
		"no URL": {bridge.EnvKernelURL, ""}, "no CA": {bridge.EnvKernelCA, " "}, "no turn": {bridge.EnvTurn, ""},
		"bad port": {bridge.EnvBridgePort, "70000"}, "no port": {bridge.EnvBridgePort, "x"},
	} {
		env := maps.Clone(good)
		env[change[0]] = change[1]
		if _, err := OptionsFromEnv(get(env)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, change := range map[string]func(*Options){
		"relative": func(o *Options) { o.SharedDir = "shared" },
		"long":     func(o *Options) { o.Turn = strings.Repeat("a", 64) },
		"port":     func(o *Options) { o.Port = 65536 },
		"plain":    func(o *Options) { o.KernelURL = "http://kernel" },
	} {
		bad := o
		change(&bad)
		if err := Run(context.Background(), bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMessageText(t *testing.T) {
	for payload, want := range map[string]string{
		`"hi"`: "hi", `{"text":"hi"}`: "hi", `{"text":1}`: `{"text":1}`, `{"a":"b"}`: `{"a":"b"}`, `[1]`: `[1]`, `nonsense`: `nonsense`,
	} {
		if got := harnessfiles.Text(contract.Value(payload)); got != want {
			t.Errorf("%s: %q, want %q", payload, got, want)
		}
	}
}
