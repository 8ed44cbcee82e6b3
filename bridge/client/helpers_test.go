package client

import (
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

const (
	podToken  = "pod-token-one"
	execToken = "execution.token"
)

// kernelServer is a TLS server that speaks HTTP/2 and counts connections.
type kernelServer struct {
	*httptest.Server
	conns atomic.Int32
}

func serve(t *testing.T, handler http.HandlerFunc) *kernelServer {
	t.Helper()
	return serveOn(t, nil, handler)
}

func serveOn(t *testing.T, listener net.Listener, handler http.HandlerFunc) *kernelServer {
	t.Helper()
	s := &kernelServer{Server: httptest.NewUnstartedServer(handler)}
	if listener != nil {
		_ = s.Listener.Close()
		s.Listener = listener
	}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = nil
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *kernelServer) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// listen binds an address on loopback; port 0 is a free one.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	writeToken(t, path, token)
	return path
}

func writeToken(t *testing.T, path, token string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, s *kernelServer, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{BaseURL: s.URL, RootCAs: s.ca(), TokenFile: tokenFile(t, podToken), Clock: newJumpClock()}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// attachedTo is connect with an execution token in place.
func attachedTo(t *testing.T, s *kernelServer, change ...func(*Options)) *Client {
	t.Helper()
	c := connect(t, s, change...)
	if err := c.setExecutionToken(execToken); err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(t *testing.T, w http.ResponseWriter, v any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

func refuse(w http.ResponseWriter, status int, code string, retryable bool) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(bridge.ErrorBody{Error: bridge.Error{Code: code, Message: "no", Retryable: retryable}})
}

func attachAnswer() bridge.AttachResponse {
	at := contract.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return bridge.AttachResponse{
		ExecutionID: "e-1", NamespaceID: "team-a", Actor: "agent:a", TraceID: "t-1",
		ExecutionToken: execToken, CatalogHash: "h", Harness: "custom",
		Message: contract.MessageEnvelope{
			Version: contract.Version, ID: "m-1",
			Sender:   contract.Address{Kind: contract.KindHuman, ID: "alice"},
			Receiver: contract.Address{Kind: contract.KindAgent, ID: "a"},
			Purpose:  "p", Payload: contract.Value(`"hello"`), TraceID: "t-1", CreatedAt: at,
		},
	}
}

func call(id string) bridge.InvokeRequest {
	return bridge.InvokeRequest{CallID: id, Tool: "files.read", Arguments: contract.Object(`{"path":["a"]}`)}
}

func readCall(t *testing.T, r *http.Request) bridge.InvokeRequest {
	t.Helper()
	var got bridge.InvokeRequest
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		t.Error(err)
	}
	return got
}

func succeeded(id string) contract.ToolResult {
	return contract.ToolResult{
		CallID: id, Tool: "files.read", Status: contract.StatusSucceeded, Output: contract.Value(`"x"`),
		CompletedAt: contract.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
}
