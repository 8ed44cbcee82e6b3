package peers_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	officialMCP "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/test/peers/npm"
)

// The servers of servers/package.json, which others wrote.
const (
	filesystemServer = "server-filesystem"
	everythingServer = "server-everything"
	memoryServer     = "server-memory"
)

// serverCommand runs one of them with the pinned Node.
func serverCommand(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	packages := npm.Install(t, "servers")
	program := filepath.Join(packages, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	return exec.CommandContext(t.Context(), node(packages), append([]string{program}, args...)...)
}

// stdio speaks to a program, which is ended without much ado.
func stdio(cmd *exec.Cmd) *officialMCP.CommandTransport {
	return &officialMCP.CommandTransport{Command: cmd, TerminateDuration: 50 * time.Millisecond}
}

// overHTTP serves a server that speaks over its standard streams over Streamable HTTP.
// Messages pass as they are.
type overHTTP struct {
	conn officialMCP.Connection

	mu      sync.Mutex
	waiting map[any]chan *jsonrpc.Response
}

// bridged starts the program and serves it until the test ends.
func bridged(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	conn, err := stdio(cmd).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &overHTTP{conn: conn, waiting: map[any]chan *jsonrpc.Response{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(t)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return serve(t, b) + "/mcp"
}

func (b *overHTTP) read(t *testing.T) {
	for {
		message, err := b.conn.Read(t.Context())
		if err != nil {
			return
		}
		if response, ok := message.(*jsonrpc.Response); ok {
			b.mu.Lock()
			waiting := b.waiting[response.ID.Raw()]
			delete(b.waiting, response.ID.Raw())
			b.mu.Unlock()
			if waiting != nil {
				waiting <- response
			}
		}
	}
}

func (b *overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	request, ok := message.(*jsonrpc.Request)
	call := ok && request.IsCall()
	answer := make(chan *jsonrpc.Response, 1)
	if call {
		b.mu.Lock()
		b.waiting[request.ID.Raw()] = answer
		b.mu.Unlock()
	}
	if err := b.conn.Write(r.Context(), message); err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if !call {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case response := <-answer:
		if raw, err := jsonrpc.EncodeMessage(response); err == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(raw)
		}
	case <-r.Context().Done():
	}
}

// everything starts server-everything's own HTTP server, which speaks over SSE and
// gives out session ids.
func everything(t *testing.T, transport string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := serverCommand(t, everythingServer, transport)
	cmd.Env = append(os.Environ(), "PORT="+port)
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(says); lines.Scan(); {
		if strings.Contains(lines.Text(), port) {
			go func() { _, _ = io.Copy(io.Discard, says) }() // ends with the process
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatal("server-everything did not start")
	return ""
}

// offered is what another client sees of a server's tools: input schemas by name.
func offered(t *testing.T, transport officialMCP.Transport) map[string]json.RawMessage {
	t.Helper()
	client := officialMCP.NewClient(&officialMCP.Implementation{Name: "witness", Version: "1"},
		&officialMCP.ClientOptions{Capabilities: &officialMCP.ClientCapabilities{}}) // as ours; some servers offer more to those who can more
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	out := map[string]json.RawMessage{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		out[tool.Name] = raw
	}
	if len(out) == 0 {
		t.Fatal("no tools")
	}
	t.Log(strconv.Itoa(len(out)) + " tools")
	return out
}
