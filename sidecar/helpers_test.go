package sidecar

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/control"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

// patience bounds what a test waits for; nothing waits that long unless it is broken.
const patience = 30 * time.Second

// pod is a running sidecar and its shared volume.
type pod struct {
	t      testing.TB
	dir    string
	stop   context.CancelFunc
	done   chan error
	socket *control.Client
}

// start runs a sidecar against the kernel, in dir or a new one.
func start(tb testing.TB, k *sidecartest.Kernel, change ...func(*Options)) *pod {
	tb.Helper()
	dir, err := os.MkdirTemp("", "pod") //nolint:usetesting // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := Options{
		KernelURL: k.URL, KernelCA: k.CA(), TokenFile: k.TokenFile, Turn: sidecartest.Turn,
		SharedDir: dir, ShutdownGrace: patience,
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	p := &pod{t: tb, dir: o.SharedDir, stop: cancel, done: make(chan error, 1)}
	p.socket = &control.Client{Path: p.path(bridge.ControlSocket)}
	go func() { p.done <- Run(ctx, o) }()
	tb.Cleanup(cancel)
	return p
}

func (p *pod) path(inside string) string {
	return filepath.Join(p.dir, strings.TrimPrefix(inside, bridge.SharedDir))
}

func (p *pod) ready() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.socket.WaitReady(ctx); err != nil {
		p.t.Fatalf("bridge: %v", err)
	}
}

func (p *pod) wait() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(patience):
		p.t.Fatal("the sidecar does not end")
		return nil
	}
}

func (p *pod) read(inside string) string {
	p.t.Helper()
	raw, err := os.ReadFile(p.path(inside))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}

// endpoint reads the connection file as a harness would.
func (p *pod) endpoint() (url, authorization string) {
	p.t.Helper()
	var file struct {
		Servers map[string]struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(p.read(bridge.ConfigDir+"/.mcp.json")), &file); err != nil {
		p.t.Fatal(err)
	}
	s := file.Servers["sharedos"]
	return s.URL, s.Headers["Authorization"]
}

// rpc is one MCP request; the error is the transport's.
func (p *pod) rpc(method, params string) (status int, result map[string]any, err error) {
	url, authorization := p.endpoint()
	return post(p.t, url, authorization, method, params)
}

func post(tb testing.TB, url, authorization, method, params string) (int, map[string]any, error) {
	tb.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	var answer struct {
		Result map[string]any `json:"result"`
		Error  any            `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		tb.Errorf("answer %q: %v", raw, err)
	}
	if answer.Error != nil && resp.StatusCode == http.StatusOK {
		tb.Errorf("JSON-RPC error: %v", answer.Error)
	}
	return resp.StatusCode, answer.Result, nil
}

func (p *pod) initialize() {
	p.t.Helper()
	if status, _, err := p.rpc("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); status != http.StatusOK {
		p.t.Fatalf("initialize: %d, %v", status, err)
	}
}

func (p *pod) call(tool, arguments string) map[string]any {
	p.t.Helper()
	status, result, err := p.rpc("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("call %s: %d, %v", tool, status, err)
	}
	return result
}
