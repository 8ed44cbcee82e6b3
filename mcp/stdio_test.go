package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

func TestServeStdio(t *testing.T) {
	t.Parallel()
	ping := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	// padded is a message of exactly n bytes.
	padded := func(n int) string {
		head := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`
		return head + strings.Repeat("x", n-len(head)-3) + `"}}`
	}
	tests := map[string]struct{ in, want string }{
		"nothing":               {"", ""},
		"blank lines":           {"\n \r\n\t\n", ""},
		"one":                   {ping("1") + "\n", pong("1") + "\n"},
		"carriage return":       {ping("1") + "\r\n", pong("1") + "\n"},
		"last line unfinished":  {ping("1"), pong("1") + "\n"},
		"in order":              {ping("1") + "\n" + noteBody + "\n{\n" + ping("2") + "\n", pong("1") + "\n" + unreadable("syntax") + "\n" + pong("2") + "\n"},
		"batch":                 {"[" + ping("1") + "," + ping("2") + "]\n", "[" + pong("1") + "," + pong("2") + "]\n"},
		"duplicate keys":        {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}` + "\n", unreadable("duplicate_key") + "\n"},
		"longest line":          {padded(mcp.MaxLine) + "\n" + ping("2") + "\n", pong("1") + "\n" + pong("2") + "\n"},
		"line too long":         {padded(mcp.MaxLine+2) + "\n" + ping("2") + "\n", unreadable("too_long") + "\n" + pong("2") + "\n"},
		"far too long, the end": {strings.Repeat("x", 2*mcp.MaxLine), unreadable("too_long") + "\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := mcp.ServeStdio(t.Context(), newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), strings.NewReader(tt.in), &out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%.2000s", diff)
			}
		})
	}
	if err := mcp.ServeStdio(t.Context(), nil, strings.NewReader(""), io.Discard); !errors.Is(err, mcp.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
}

// TestStdioIsSequential: no two calls of one stream ever run at once.
func TestStdioIsSequential(t *testing.T) {
	t.Parallel()
	const calls = 200
	f := newFake(t)
	var in, want strings.Builder
	running := 0
	f.answer = func(_ context.Context, call mcp.Invocation) (contract.ToolResult, error) {
		running++ // unsynchronised: the race detector watches
		defer func() { running-- }()
		if running != 1 {
			t.Errorf("%d calls at once", running)
		}
		return succeed(call, string(call.Arguments)), nil
	}
	for i := range calls {
		n := strconv.Itoa(i)
		in.WriteString(`{"jsonrpc":"2.0","id":` + n + `,"method":"tools/call","params":{"name":"files.read","arguments":{"n":` + n + `}}}` + "\n")
		want.WriteString(`{"jsonrpc":"2.0","id":` + n + `,"result":{"content":[{"type":"text","text":"{\"n\":` + n + `}"}],"isError":false}}` + "\n")
	}
	var out bytes.Buffer
	if err := mcp.ServeStdio(t.Context(), newServer(t, mcp.ServerOptions{Invoker: f}), strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestStdioCancellation: it overtakes the line that runs, which then has no answer.
func TestStdioCancellation(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started := make(chan struct{})
	f.answer = func(ctx context.Context, _ mcp.Invocation) (contract.ToolResult, error) {
		close(started)
		<-ctx.Done()
		return contract.ToolResult{}, ctx.Err()
	}
	in, feed := io.Pipe()
	var out bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- mcp.ServeStdio(t.Context(), newServer(t, mcp.ServerOptions{Invoker: f}), in, &out) }()
	write := func(line string) {
		if _, err := io.WriteString(feed, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	write(callBody)
	<-started
	write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	write(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pong("2")+"\n", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestStdioContext: the end of the turn ends the serving, although the input is open.
func TestStdioContext(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	started := make(chan struct{})
	f.answer = func(ctx context.Context, _ mcp.Invocation) (contract.ToolResult, error) {
		close(started)
		<-ctx.Done()
		return contract.ToolResult{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	var out bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- mcp.ServeStdio(ctx, newServer(t, mcp.ServerOptions{Invoker: f}), in, &out) }()
	if _, err := io.WriteString(feed, callBody+"\n"); err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the end of the context is an error: %v", err)
	}
	if out.Len() != 0 {
		t.Errorf("output %s", out.String())
	}
	if _, err := io.WriteString(feed, pingBody+"\n"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the input is still read: %v", err)
	}
}

func TestStdioFaults(t *testing.T) {
	t.Parallel()
	server := newServer(t, mcp.ServerOptions{Invoker: newFake(t)})
	in, feed := io.Pipe()
	feed.CloseWithError(errBroken)
	if err := mcp.ServeStdio(t.Context(), server, in, io.Discard); !errors.Is(err, errBroken) {
		t.Errorf("broken input: %v", err)
	}
	out, sink := io.Pipe()
	if err := out.CloseWithError(errBroken); err != nil {
		t.Fatal(err)
	}
	if err := mcp.ServeStdio(t.Context(), server, strings.NewReader(pingBody+"\n"), sink); !errors.Is(err, errBroken) {
		t.Errorf("broken output: %v", err)
	}
}

// TestStdioBackPressure: lines that wait are bounded, and none is lost.
func TestStdioBackPressure(t *testing.T) {
	t.Parallel()
	const lines, size = 4, mcp.MaxLine - 1024
	in, feed := io.Pipe()
	out, sink := io.Pipe()
	go func() {
		_ = mcp.ServeStdio(t.Context(), newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), in, sink)
		_ = sink.Close()
	}()
	go func() {
		for i := range lines {
			_, _ = io.WriteString(feed, `{"jsonrpc":"2.0","id":`+strconv.Itoa(i)+`,"method":"ping","params":{"x":"`+strings.Repeat("x", size)+`"}}`+"\n")
		}
		_ = feed.Close()
	}()
	scan := bufio.NewScanner(out)
	n := 0
	for scan.Scan() {
		if scan.Text() != pong(strconv.Itoa(n)) {
			t.Fatalf("answer %d is %s", n, scan.Text())
		}
		n++
	}
	if n != lines {
		t.Errorf("%d answers, want %d", n, lines)
	}
}
