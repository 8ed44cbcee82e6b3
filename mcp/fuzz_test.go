package mcp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/mcp"
)

func seedMessages(f *testing.F) {
	f.Helper()
	for _, s := range []string{
		"", "{}", "[]", "1", "null", pingBody, callBody, noteBody, "[" + callBody + "," + noteBody + ",[" + pingBody + "]]",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","Name":"x","arguments":{"a":1,"a":2}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", strings.Repeat("[", 300),
	} {
		f.Add([]byte(s))
	}
}

// messagesIn counts what may be answered: the entries of a batch, else one.
func messagesIn(data []byte) int {
	var entries []json.RawMessage
	if json.Unmarshal(data, &entries) == nil && len(entries) > 0 {
		return len(entries)
	}
	return 1
}

// FuzzHandle: no panic, at most one answer per message, every answer is one JSON-RPC
// message that echoes an id that was sent, and no message calls a tool twice.
func FuzzHandle(f *testing.F) {
	seedMessages(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		invoker := newFake(t)
		out := newServer(t, mcp.ServerOptions{Invoker: invoker}).Handle(t.Context(), bytes.Clone(data))
		messages := messagesIn(data)
		if calls := len(invoker.seen()); calls > messages {
			t.Fatalf("%d calls for %d messages", calls, messages)
		}
		if out == nil {
			return
		}
		answers := []json.RawMessage{out}
		if out[0] == '[' {
			if err := json.Unmarshal(out, &answers); err != nil {
				t.Fatalf("batch %s: %v", out, err)
			}
		}
		if len(answers) > messages {
			t.Fatalf("%d answers to %d messages", len(answers), messages)
		}
		for _, raw := range answers {
			var a struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Result  json.RawMessage `json:"result"`
				Error   json.RawMessage `json:"error"`
			}
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatalf("answer %s: %v", raw, err)
			}
			if a.Version != "2.0" || (a.Result == nil) == (a.Error == nil) {
				t.Fatalf("answer %s", raw)
			}
			if string(a.ID) != "null" && !bytes.Contains(data, a.ID) {
				t.Fatalf("the id %s was never sent", a.ID)
			}
		}
	})
}

// FuzzServeStdio: never more lines out than lines in, and all of them JSON.
func FuzzServeStdio(f *testing.F) {
	seedMessages(f)
	f.Add([]byte(pingBody + "\n\n" + callBody + "\r\n{\n" + noteBody))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		if err := mcp.ServeStdio(t.Context(), newServer(t, mcp.ServerOptions{Invoker: newFake(t)}), bytes.NewReader(data), &out); err != nil {
			t.Fatal(err)
		}
		in := 0
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			if len(bytes.Trim(line, " \t\r")) > 0 {
				in++
			}
		}
		lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), []byte{'\n'})
		if out.Len() == 0 {
			return
		}
		if len(lines) > in {
			t.Fatalf("%d lines out, %d in", len(lines), in)
		}
		for _, line := range lines {
			if !json.Valid(line) {
				t.Fatalf("line %q", line)
			}
		}
	})
}

// FuzzHTTP: every answer is a row of the table, and a tool is reached only by an
// authorized POST from loopback.
func FuzzHTTP(f *testing.F) {
	add := func(method, path, host, origin, kind, accept, auth, session, body string) {
		f.Add(method, path, host, origin, kind, accept, auth, session, []byte(body))
	}
	add("POST", "/mcp", "127.0.0.1:80", "", "application/json", "", "Bearer t", "", callBody)
	add("POST", "/mcp", "evil", "http://evil", "text/plain", "text/event-stream;q=0", "bearer  t ", "s", "[]")
	add("GET", "/", "[::1", "null", ";", ",;,", "Basic", "session-1", "{")
	add("DELETE", "/mcp/", "localhost", "http://[::1]", "a,b", "text/event-stream", "Bearer", "session-1", "")
	f.Fuzz(func(t *testing.T, method, path, host, origin, kind, accept, auth, session string, body []byte) {
		invoker := newFake(t)
		handler, err := mcp.NewHTTPHandler(mcp.HTTPOptions{
			Server: newServer(t, mcp.ServerOptions{Invoker: invoker}), CreateSessionID: func() string { return "session-1" },
			Authorize: func(bearer string, present bool) bool { return present && bearer == "t" },
		})
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{
			Method: method, URL: &url.URL{Path: path}, Host: host, Header: http.Header{},
			Body: http.NoBody, ContentLength: int64(len(body)),
		}
		req.Body = readCloser{bytes.NewReader(body)}
		for name, value := range map[string]string{
			"Origin": origin, "Content-Type": kind, "Accept": accept, "Authorization": auth, "Mcp-Session-Id": session,
		} {
			if value != "" {
				req.Header[name] = []string{value}
			}
		}
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req.WithContext(t.Context()))
		if !slices.Contains([]int{200, 202, 400, 401, 403, 404, 405, 413, 415}, rec.Code) {
			t.Fatalf("status %d", rec.Code)
		}
		accepted := rec.Header().Get("Mcp-Session-Id") != ""
		if accepted && (path != "/mcp" || method != http.MethodPost || (session != "" && session != "session-1")) {
			t.Fatalf("accepted %s %q in session %q", method, path, session)
		}
		if rec.Code == 202 || rec.Code == 400 || (rec.Code == 200 && method == http.MethodPost) {
			if !accepted {
				t.Fatalf("status %d without a session", rec.Code)
			}
		} else if accepted || len(invoker.seen()) > 0 {
			t.Fatalf("status %d, session %v, %d calls", rec.Code, accepted, len(invoker.seen()))
		}
		switch rec.Header().Get("Content-Type") {
		case "application/json":
			if !json.Valid(rec.Body.Bytes()) {
				t.Fatalf("body %q", rec.Body)
			}
		case "text/event-stream":
			if !strings.HasPrefix(rec.Body.String(), "event: message\ndata: {") || !strings.HasSuffix(rec.Body.String(), "}\n\n") {
				t.Fatalf("body %q", rec.Body)
			}
		default:
			if rec.Body.Len() > 0 {
				t.Fatalf("body %q without a type", rec.Body)
			}
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
