package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// leakCalls is how many calls TestNoAnswerLeaks makes: a million when the variable
// SHAREDOS_MCP_CALLS says so.
func leakCalls(tb testing.TB) int {
	tb.Helper()
	text := os.Getenv("SHAREDOS_MCP_CALLS")
	if text == "" {
		return 20000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestNoAnswerLeaks: many clients of two bridges share ids and interleave, and each
// gets the answers to its own calls only, in its own session.
func TestNoAnswerLeaks(t *testing.T) {
	t.Parallel()
	const clients = 8
	bridges := make([]*mcp.HTTPServer, 2)
	for b := range bridges {
		f := newFake(t)
		f.answer = nil
		bridges[b] = serveHTTP(t, mcp.HTTPOptions{Server: newServer(t, mcp.ServerOptions{Invoker: &echo{catalogue: f.catalogue, bridge: b}})})
	}
	each := leakCalls(t) / clients
	var wait sync.WaitGroup
	for client := range clients {
		bridge := client % 2
		conn := dial(t, bridges[bridge])
		if err := conn.SetDeadline(noDeadline); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			r := bufio.NewReader(conn)
			for n := range each {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files.read","arguments":{"c":%d,"n":%d}}}`, n%7, client, n)
				if _, err := io.WriteString(conn, rawPost(body, "Host: 127.0.0.1", "Mcp-Session-Id: "+bridges[bridge].SessionID())); err != nil {
					t.Error(err)
					return
				}
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"bridge %d {\"c\":%d,\"n\":%d}"}],"isError":false}}`, n%7, bridge, client, n)
				if err != nil || string(got) != want || res.Header.Get("Mcp-Session-Id") != bridges[bridge].SessionID() {
					t.Errorf("client %d, call %d: %s (%v)", client, n, got, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// echo answers with its number and the arguments.
type echo struct {
	catalogue contract.Catalogue
	bridge    int
}

func (e *echo) Catalog(context.Context) (contract.Catalogue, error) { return e.catalogue, nil }

func (e *echo) Invoke(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
	return succeed(call, strconv.Quote("bridge "+strconv.Itoa(e.bridge)+" "+string(call.Arguments))), nil
}
