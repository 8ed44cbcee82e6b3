package mcp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// TestSlowReader: an answer that its client does not take in is given up.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	output := strconv.Quote(strings.Repeat("x", 8<<20)) // more than the sockets hold
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		return succeed(call, output), nil
	}
	handler, err := mcp.NewHTTPHandler(mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: f}), WriteTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		handler.ServeHTTP(w, r)
	}))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", around.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = conn.Close()
		around.Close()
	}()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, rawPost(callBody, "Host: 127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the answer is still waited for")
	}
}
